"""A finished run: what was asked for, every evaluation, and the verdicts; the only input of everything a run leaves.

A *point* is an evaluation named by its number in the run, counted from 0 in the order proposed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from autotune.decode_problem import DecodeProblem
from autotune.goals import DEFAULT_GOALS, Goals, Judged, judge_evaluations
from autotune.hand_mapping import hand_mapping, overlapped_mapping
from autotune.pareto import knee
from autotune.problem import HARDWARE_GROUP, Evaluation, Problem
from autotune.result import SearchResult
from autotune.scenario import Scenario
from autotune.space import Space
from compiler.schedule import Schedule
from configs.knobs import base_knobs

NEAREST_SHOWN = 5


class Explored(Problem, Protocol):
    """A problem on devices made of a base device: of one scenario or of several."""

    @property
    def scenario(self) -> Scenario:
        """The scenario, or the first of several, which have the base device in common."""
        ...

    @property
    def space(self) -> Space:
        """The knobs, hardware in front."""
        ...


LOWER_BOUNDS = "lower bounds alone"  # in place of a learned cost model, in the settings of a run


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run's folder, its resolved settings, its problem and result, and a verdict per Pareto point's codes."""

    folder: Path
    settings: Mapping[str, str | int]
    problem: Explored
    result: SearchResult
    numerics: Mapping[tuple[int, ...], str]

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """All evaluations; a point is an index into them."""
        return self.result.evaluations

    @property
    def goals(self) -> Goals:
        """The objectives and requirements that were searched for."""
        return self.result.goals

    @property
    def judged(self) -> Judged:
        """The verdicts on all evaluations."""
        return judge_evaluations(self.problem, self.goals, self.evaluations)

    @property
    def predictor(self) -> str:
        """What predicted designs before they were simulated."""
        return "the lower bounds" if self.settings.get("cost_model") == LOWER_BOUNDS else "the learned cost model"

    @property
    def shown_settings(self) -> dict[str, str | int]:
        """The settings without paths of this machine: a device file is named without its folder."""
        return {name: Path(str(value)).name if name == "hardware" else value for name, value in self.settings.items()}


@dataclass(frozen=True, slots=True)
class FinishedRun(JudgedRun):
    """A run of one scenario."""

    problem: DecodeProblem


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A point that figures and tables show, and why."""

    name: str
    point: int


def front_points(problem: Problem, evaluations: Sequence[Evaluation], goals: Goals = DEFAULT_GOALS) -> tuple[int, ...]:
    """Return the feasible points that no other feasible one beats, the best in the first objective first."""
    judged = judge_evaluations(problem, goals, evaluations)
    order = {point: judged.objectives[point].tolist() for point in judged.front().tolist()}
    return tuple(sorted(order, key=lambda point: (order[point], evaluations[point].codes)))


def front_of(run: JudgedRun) -> tuple[int, ...]:
    """Return the Pareto points of a run, the best in the first objective first."""
    return front_points(run.problem, run.evaluations, run.goals)


def nearest_points(
    problem: Problem, evaluations: Sequence[Evaluation], goals: Goals, count: int = NEAREST_SHOWN
) -> tuple[int, ...]:
    """Return the points that miss the requirements least, the nearest first; none where any point meets them."""
    judged = judge_evaluations(problem, goals, evaluations)
    if judged.feasible.any():
        return ()
    violations, objectives = judged.violations.tolist(), judged.objectives.tolist()
    ranked = sorted(range(len(evaluations)), key=lambda point: (violations[point], objectives[point], point))
    return tuple(ranked[:count])


def nearest_of(run: JudgedRun) -> tuple[int, ...]:
    """Return the points of a run that miss the requirements least; none where any point meets them."""
    return nearest_points(run.problem, run.evaluations, run.goals)


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
    """Return the points worth a look each: the ends of the front, its knee, and the hand mapping; each point once.

    Without a front, the point that misses the requirements least stands in for it.
    """
    front = front_of(run)
    if front:
        objectives = run.judged.objectives[list(front)]
        ends = objectives.argmin(axis=0).tolist()
        best = [NamedPoint(merit.best, front[end]) for merit, end in zip(run.goals.objectives, ends, strict=True)]
        named = [best[0], NamedPoint("balanced", front[knee(objectives)]), *best[1:]]
    else:
        named = [NamedPoint("nearest to feasible", point) for point in nearest_of(run)[:1]]
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


def hardware_values(run: JudgedRun, point: int) -> dict[str, int | str]:
    """Return the hardware knobs of a point by name."""
    pairs = zip(run.problem.knobs, run.evaluations[point].codes, strict=True)
    return {knob.name: knob.values[code] for knob, code in pairs if knob.group == HARDWARE_GROUP}


def changed_knobs(run: JudgedRun, point: int) -> tuple[tuple[str, int | str], ...]:
    """Return the hardware knobs of a point that are not the base device's, with their values."""
    own = base_knobs(run.problem.scenario.base)
    return tuple((name, value) for name, value in hardware_values(run, point).items() if value != getattr(own, name))


def varied_knobs(run: JudgedRun, points: Sequence[int]) -> tuple[str, ...]:
    """Return the hardware knobs in which some of the points differ from the base device or from each other."""
    names = {name for point in points for name, _ in changed_knobs(run, point)}
    return tuple(knob.name for knob in run.problem.knobs if knob.group == HARDWARE_GROUP and knob.name in names)


def _point_of(run: FinishedRun, schedules: Mapping[str, Schedule]) -> int | None:
    codes = run.problem.space.encode(base_knobs(run.problem.scenario.base), schedules)
    if codes is None:
        return None
    wanted = tuple(run.problem.canonical(codes[None, :])[0].tolist())
    return next((point for point, item in enumerate(run.evaluations) if item.codes == wanted), None)
