"""Designs beside a point of a run: one hardware knob, or two, moved to other values, with schedules that suit them.

Moves go through all declared values of a knob, also where the run had fixed it. A moved device is judged by the best of
up to three simulated schedules: the point's own; the one put together, operator by operator, from those known from the
run, as the cost model that has learned the whole run predicts them to be fastest; and that of least lower bounds, for
devices that no known schedule suits. The best is the fastest around the fastest point and of the least product of all
objectives around others: the least energy alone would leave all work to the host, whose energy is not counted. The
point's device is judged in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from autotune.architect.rescheduling import least_bounds
from autotune.architect.stored_run import StoredRun
from autotune.decode_problem import DecodeProblem
from autotune.findings import in_order
from autotune.finished import NamedPoint, front_of, shown_points
from autotune.layout import Layout, distinct, layout_of
from autotune.learning import codes_of, predict_cycles, rows_of
from autotune.merit import FIGURES, LATENCY_COLUMN
from autotune.problem import HARDWARE_GROUP, Codes, Knob
from autotune.problem_spec import ProblemSpec
from autotune.proposals import PredictCycles, composites
from costmodel.model import train

HAND = "hand mapping"
BALANCED = "balanced"
FASTEST = next(item.best for item in FIGURES if item.metric == LATENCY_COLUMN)
MOST_DONORS = 64
AT_ONCE = 8
UP, DOWN = "up", "down"


@dataclass(frozen=True, slots=True)
class Move:
    """One hardware knob, in its column, from one of its values to another; `step` is up, down or the name moved to."""

    column: int
    knob: str
    unit: str
    before: int | str
    after: int | str
    step: str


@dataclass(frozen=True, slots=True)
class Centre:
    """A point of the run that others are moved from; schedules there are judged by latency, or by all objectives."""

    name: str
    point: int
    codes: tuple[int, ...]
    by_latency: bool


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A centre with knobs moved, or none, and its designs to simulate; without any, `reason` says why not."""

    centre: int
    moves: tuple[Move, ...]
    designs: tuple[tuple[int, ...], ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The problem with every hardware knob free, the centres in it, and what schedules are chosen from."""

    spec: ProblemSpec
    problem: DecodeProblem
    layout: Layout
    centres: tuple[Centre, ...]
    donors: Codes
    predict: PredictCycles


def surroundings(stored: StoredRun, count: int) -> Surroundings:
    """Return what surrounds the first so many shown Pareto points of a run."""
    run = stored.run
    free = {name: values for name, values in stored.spec.restrictions.items() if "." in name}
    spec = replace(stored.spec, restrictions=free)
    problem = spec()
    codes = widened(run.problem.knobs, problem.knobs, codes_of(run.evaluations, len(run.problem.knobs)))
    moved = [replace(item, codes=tuple(row)) for item, row in zip(run.evaluations, codes.tolist(), strict=True)]
    model = train(rows_of(problem, moved), stored.settings.seed)
    named = [item for item in shown_points(run) if item.name != HAND][:count]
    front = front_of(run)
    others = sorted(set(range(len(codes))) - set(front), key=lambda point: run.evaluations[point].latency_ns)
    return Surroundings(
        spec=spec,
        problem=problem,
        layout=layout_of(problem),
        centres=tuple(_centre(item, codes) for item in named),
        donors=codes[[*front, *others][:MOST_DONORS]],
        predict=partial(predict_cycles, problem, model),
    )


def widened(narrow: Sequence[Knob], wide: Sequence[Knob], codes: Codes) -> Codes:
    """Return designs in the codes of the same knobs with more values."""
    result = np.empty_like(codes)
    for column, (before, after) in enumerate(zip(narrow, wide, strict=True)):
        places = np.array([after.values.index(value) for value in before.values], dtype=np.int64)
        result[:, column] = places[codes[:, column]]
    return result


def _centre(named: NamedPoint, codes: Codes) -> Centre:
    return Centre(named.name, named.point, tuple(codes[named.point].tolist()), named.name == FASTEST)


def moves_from(problem: DecodeProblem, codes: tuple[int, ...]) -> tuple[Move, ...]:
    """Return every move of one hardware knob: to the next values of a number, to every other name."""
    found = []
    for column, knob in enumerate(problem.knobs):
        if knob.group != HARDWARE_GROUP:
            continue
        own = knob.values[codes[column]]
        found += [Move(column, knob.name, knob.unit, own, value, step) for value, step in _steps(knob, own)]
    return tuple(found)


def _steps(knob: Knob, own: int | str) -> list[tuple[int | str, str]]:
    if not all(isinstance(value, int) for value in knob.values):
        return [(value, str(value)) for value in knob.values if value != own]
    ordered = in_order(knob.values)
    place = ordered.index(own)
    below = [(ordered[place - 1], DOWN)] if place else []
    above = [(ordered[place + 1], UP)] if place + 1 < len(ordered) else []
    return below + above


def neighbours(around: Surroundings, centre: int, moves: Sequence[tuple[Move, ...]]) -> tuple[Neighbour, ...]:
    """Return a centre with each of these moves made, and the designs of each that are to be simulated."""
    if not moves:
        return ()
    own = np.array(around.centres[centre].codes, dtype=np.int64)
    knobs, hardware = around.problem.knobs, around.layout.hardware
    asked = np.tile(own, (len(moves), 1))
    for row, made in enumerate(moves):
        for move in made:
            asked[row, move.column] = knobs[move.column].values.index(move.after)
    same = around.problem.canonical(asked)
    chosen = np.concatenate([_rechosen(around, same[:, hardware], own), _least_bounds(around, same)])
    legal = around.problem.legal(same)
    found = []
    for row, made in enumerate(moves):
        idle = [move.knob for move in made if same[row, move.column] != asked[row, move.column]]
        if idle:
            found.append(Neighbour(centre, made, (), f"{' and '.join(idle)} would have no effect"))
            continue
        fitting = chosen[(chosen[:, hardware] == same[row, hardware]).all(axis=1)]
        designs = distinct(np.concatenate([same[row : row + 1][legal[row : row + 1]], fitting]))
        reason = "" if len(designs) else "; ".join(around.problem.reasons(same[row]))
        found.append(Neighbour(centre, made, tuple(tuple(item) for item in designs.tolist()), reason))
    return tuple(found)


def _rechosen(around: Surroundings, hardware: Codes, own: Codes) -> Codes:
    """Return one design for each device that any known schedule suits, a few devices at a time to save memory."""
    donors = distinct(np.concatenate([own[None, :], around.donors]))
    lots = [
        composites(around.problem, around.layout, hardware[start : start + AT_ONCE], donors, around.predict)
        for start in range(0, len(hardware), AT_ONCE)
    ]
    return np.concatenate(lots)


def _least_bounds(around: Surroundings, designs: Codes) -> Codes:
    """Return the designs of least lower bounds of the devices that can be built."""
    return least_bounds(around.problem, designs[around.problem.scenario.candidates.buildable(designs)])
