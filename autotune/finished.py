"""A finished run: what was asked for, every evaluation, and the verdicts; the only input of everything a run leaves.

A *point* is an evaluation named by its number in the run, counted from 0 in the order proposed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.decode_problem import DecodeProblem
from autotune.hand_mapping import hand_mapping, overlapped_mapping
from autotune.pareto import knee, nondominated
from autotune.problem import HARDWARE_GROUP, Evaluation
from autotune.result import SearchResult
from compiler.schedule import Schedule
from configs.knobs import base_knobs


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run's folder, its resolved settings, its problem and result, and a verdict per Pareto point's codes."""

    folder: Path
    settings: Mapping[str, str | int]
    problem: DecodeProblem
    result: SearchResult
    numerics: Mapping[tuple[int, ...], str]

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """All evaluations; a point is an index into them."""
        return self.result.evaluations

    @property
    def shown_settings(self) -> dict[str, str | int]:
        """The settings without paths of this machine: a device file is named without its folder."""
        return {name: Path(str(value)).name if name == "hardware" else value for name, value in self.settings.items()}


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A point that figures and tables show, and why."""

    name: str
    point: int


def front_points(evaluations: Sequence[Evaluation]) -> tuple[int, ...]:
    """Return the points that no other one beats, fastest first."""
    if not evaluations:
        return ()
    kept = np.flatnonzero(nondominated(np.array([item.objectives for item in evaluations]))).tolist()
    return tuple(sorted(kept, key=lambda point: (evaluations[point].objectives, evaluations[point].codes)))


def front_of(run: FinishedRun) -> tuple[int, ...]:
    """Return the Pareto points of a run, fastest first."""
    return front_points(run.evaluations)


def hand_point(run: FinishedRun) -> int | None:
    """Return the point of the hand mapping on the base device; None where it is not legal or not in the space."""
    system = run.problem.scenario.system_of_base
    return _point_of(run, hand_mapping(run.problem.space.schedulables, system))


def overlapped_point(run: FinishedRun) -> int | None:
    """Return the point of the overlapped hand mapping on the base device; None like `hand_point`."""
    system = run.problem.scenario.system_of_base
    return _point_of(run, overlapped_mapping(run.problem.space.schedulables, system))


def best_on_base(run: FinishedRun) -> int | None:
    """Return the fastest point whose device is the base device; None without any."""
    own = base_knobs(run.problem.scenario.base)
    points = [
        point for point, item in enumerate(run.evaluations) if run.problem.space.hardware(np.array(item.codes)) == own
    ]
    return min(points, key=lambda point: run.evaluations[point].latency_ns, default=None)


def shown_points(run: FinishedRun) -> tuple[NamedPoint, ...]:
    """Return the points worth a look each: the ends of the front, its knee, and the hand mapping; each point once."""
    front = front_of(run)
    if not front:
        return ()
    objectives = np.array([run.evaluations[point].objectives for point in front])
    ends = objectives.argmin(axis=0)
    named = [
        NamedPoint("fastest", front[int(ends[0])]),
        NamedPoint("balanced", front[knee(objectives)]),
        NamedPoint("least energy", front[int(ends[1])]),
        NamedPoint("smallest", front[int(ends[2])]),
    ]
    hand = hand_point(run)
    if hand is not None:
        named.append(NamedPoint("hand mapping", hand))
    first: dict[int, NamedPoint] = {}
    for item in named:
        first.setdefault(item.point, item)
    return tuple(first.values())


def written_points(run: FinishedRun) -> tuple[int, ...]:
    """Return the points that get a folder: the front, fastest first, then what else is shown."""
    return tuple(dict.fromkeys((*front_of(run), *(item.point for item in shown_points(run)))))


def hardware_values(run: FinishedRun, point: int) -> dict[str, int | str]:
    """Return the hardware knobs of a point by name."""
    pairs = zip(run.problem.knobs, run.evaluations[point].codes, strict=True)
    return {knob.name: knob.values[code] for knob, code in pairs if knob.group == HARDWARE_GROUP}


def _point_of(run: FinishedRun, schedules: Mapping[str, Schedule]) -> int | None:
    codes = run.problem.space.encode(base_knobs(run.problem.scenario.base), schedules)
    if codes is None:
        return None
    wanted = tuple(run.problem.canonical(codes[None, :])[0].tolist())
    return next((point for point, item in enumerate(run.evaluations) if item.codes == wanted), None)
