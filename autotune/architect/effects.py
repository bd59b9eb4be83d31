"""What simulated moves of hardware knobs change: ranked effects of one knob at a time, and interactions of two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log

from autotune.architect.neighbours import BALANCED, Centre, Move, Neighbour, Surroundings
from autotune.goals import Goals, judge_evaluations
from autotune.problem import Evaluation

LEAST_INTERACTION = 0.02
PAIRED_KNOBS = 4


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulated design, numbered; its figures of merit to be minimised, and whether it meets the requirements."""

    design: int
    evaluation: Evaluation
    objectives: tuple[float, ...]
    feasible: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What one move does at one centre, from its `reference` design to `design`.

    Changes of latency, energy and area are fractions; `objectives` are logarithms of ratios of minimised objectives.
    """

    centre: str
    point: int
    before: int | str
    after: int | str
    reference: int
    design: int
    latency: float
    energy: float
    area: float
    objectives: tuple[float, ...]
    feasible: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """One step of one knob: what it changes at every centre where it can be made."""

    knob: str
    unit: str
    step: str
    at: tuple[Change, ...]

    def interval(self, figure: str) -> tuple[float, float]:
        """Return the least and the largest change of latency, energy or area over the centres."""
        values = [float(getattr(item, figure)) for item in self.at]
        return min(values), max(values)

    def size(self, objective: int) -> float:
        """Return the largest logarithm of a ratio of an objective over the centres, without its sign."""
        return max(abs(item.objectives[objective]) for item in self.at)

    @property
    def latency_size(self) -> float:
        """The largest logarithm of a ratio of latencies over the centres, without its sign."""
        return max(abs(log(1 + item.latency)) for item in self.at)


@dataclass(frozen=True, slots=True)
class Interaction:
    """Two moves at once: by which factor the latency is other than if each did what it does alone, less one.

    `designs` are both moved, the first alone, the second alone, and neither; None stands for what could not be built.
    """

    moves: tuple[Move, Move]
    designs: tuple[int, ...]
    latency: float | None
    reason: str = ""

    @property
    def notable(self) -> bool:
        """Whether the factor is further from 1 than 2 %."""
        return self.latency is not None and abs(self.latency) >= LEAST_INTERACTION


def judged_designs(around: Surroundings, goals: Goals, evaluations: Sequence[Evaluation]) -> tuple[Simulated, ...]:
    """Number and judge designs in the order of the plan."""
    judged = judge_evaluations(around.problem, goals, evaluations)
    return tuple(
        Simulated(number, item, tuple(judged.objectives[number].tolist()), bool(judged.feasible[number]))
        for number, item in enumerate(evaluations)
    )


def best_of(centre: Centre, neighbour: Neighbour, simulated: Mapping[tuple[int, ...], Simulated]) -> Simulated | None:
    """Return the design that a device is judged by: the fastest, or the best in all objectives, then the fastest."""
    found = [simulated[codes] for codes in neighbour.designs]
    return min(found, key=lambda item: _rank(centre, item), default=None)


def _rank(centre: Centre, item: Simulated) -> tuple[float, float, int]:
    latency_ns = item.evaluation.latency_ns
    value = latency_ns if centre.by_latency else sum(log(value) for value in item.objectives)
    return value, latency_ns, item.design


def effects_of(
    centres: Sequence[Centre], found: Sequence[Neighbour], simulated: Mapping[tuple[int, ...], Simulated]
) -> tuple[Effect, ...]:
    """Return the effect of every step of one knob, that with the largest change of latency first."""
    references = {item.centre: best_of(centres[item.centre], item, simulated) for item in found if not item.moves}
    grouped: dict[tuple[str, str, str], list[Change]] = {}
    for item in found:
        centre = centres[item.centre]
        own, moved = references[item.centre], best_of(centre, item, simulated)
        if len(item.moves) == 1 and own is not None and moved is not None:
            move = item.moves[0]
            grouped.setdefault((move.knob, move.unit, move.step), []).append(_change(centre, move, own, moved))
    effects = [Effect(*key, tuple(changes)) for key, changes in grouped.items()]
    return tuple(sorted(effects, key=lambda item: (-item.latency_size, item.knob, item.step)))


def _change(centre: Centre, move: Move, own: Simulated, moved: Simulated) -> Change:
    before, after = own.evaluation, moved.evaluation
    return Change(
        centre=centre.name,
        point=centre.point,
        before=move.before,
        after=move.after,
        reference=own.design,
        design=moved.design,
        latency=after.latency_ns / before.latency_ns - 1,
        energy=after.energy_pj / before.energy_pj - 1,
        area=after.area_mm2 / before.area_mm2 - 1,
        objectives=tuple(log(new / old) for new, old in zip(moved.objectives, own.objectives, strict=True)),
        feasible=moved.feasible,
    )


def middle(centres: Sequence[Centre]) -> int:
    """Return the centre that pairs are moved around: the balanced one, or the first."""
    return next((row for row, item in enumerate(centres) if item.name == BALANCED), 0)


def pairs_to_move(
    centres: Sequence[Centre], found: Sequence[Neighbour], simulated: Mapping[tuple[int, ...], Simulated]
) -> tuple[tuple[Move, Move], ...]:
    """Return all pairs of the four knobs with the largest effect on latency at the middle, each by its largest step."""
    here = middle(centres)
    largest: dict[str, tuple[float, Move]] = {}
    own = _latency(centres, next(item for item in found if item.centre == here and not item.moves), simulated)
    for item in found:
        if item.centre == here and len(item.moves) == 1 and item.designs:
            size = abs(log(_latency(centres, item, simulated) / own))
            if size > largest.get(item.moves[0].knob, (0.0, None))[0]:
                largest[item.moves[0].knob] = size, item.moves[0]
    ranked = sorted(largest.values(), key=lambda pair: (-pair[0], pair[1].knob))[:PAIRED_KNOBS]
    return tuple(combinations((move for _, move in ranked), 2))


def interactions_of(
    centres: Sequence[Centre], found: Sequence[Neighbour], simulated: Mapping[tuple[int, ...], Simulated]
) -> tuple[Interaction, ...]:
    """Return what moving two knobs together adds to what each does alone, the largest first."""
    here = middle(centres)
    by_moves = {item.moves: item for item in found if item.centre == here}
    result = []
    for moves, item in by_moves.items():
        if len(moves) != 2:
            continue
        lots = (item, by_moves[moves[:1]], by_moves[moves[1:]], by_moves[()])
        best = [best_of(centres[here], lot, simulated) for lot in lots]
        designs = tuple(one.design for one in best if one is not None)
        if len(designs) < len(lots):
            result.append(Interaction((moves[0], moves[1]), designs, None, item.reason))
            continue
        both, first, second, own = (log(one.evaluation.latency_ns) for one in best if one is not None)
        result.append(Interaction((moves[0], moves[1]), designs, exp(both - first - second + own) - 1))
    return tuple(sorted(result, key=lambda item: -abs(item.latency or 0.0)))


def _latency(centres: Sequence[Centre], item: Neighbour, simulated: Mapping[tuple[int, ...], Simulated]) -> float:
    best = best_of(centres[item.centre], item, simulated)
    assert best is not None
    return best.evaluation.latency_ns
