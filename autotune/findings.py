"""What a run tells an architect of its knobs: where each stops paying, what a step of one, or on the front, costs.

Every finding names the simulated points that back it; nothing here is a prediction.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2

from autotune.finished import FinishedRun, front_of, hardware_values
from autotune.problem import HARDWARE_GROUP, Evaluation

LEAST_GAIN_PER_DOUBLING = 0.05
LEAST_SUPPORT = 5
LEAST_SPREAD = 0.01


@dataclass(frozen=True, slots=True)
class BestAtValue:
    """The fastest simulated point with one value of a hardware knob, and how many points have that value."""

    value: int | str
    point: int
    latency_ns: float
    simulated: int = LEAST_SUPPORT
    energy_pj: float = 0.0
    area_mm2: float = 0.0


@dataclass(frozen=True, slots=True)
class Knee:
    """Best latency by value of a hardware knob; `knee` is where it stops paying, None where it pays to the end.

    A knob whose values are names has no knee: its values have no order. `spread` is by which share the best latency at
    the worst value that enough points have exceeds that at the best one.
    """

    knob: str
    unit: str
    best: tuple[BestAtValue, ...]
    knee: int | None
    spread: float = 0.0

    @property
    def supported(self) -> tuple[BestAtValue, ...]:
        """The values that enough points have to say something."""
        return tuple(item for item in self.best if item.simulated >= LEAST_SUPPORT)

    @property
    def pays(self) -> bool:
        """Whether the best latency differs enough between values to be worth a sentence of its own."""
        return self.spread >= LEAST_SPREAD


@dataclass(frozen=True, slots=True)
class Step:
    """From one simulated point to another: changes as fractions, and the hardware knobs that differ."""

    start: int
    end: int
    latency_change: float
    energy_change: float
    area_change: float
    knobs: tuple[tuple[str, int | str, int | str], ...]


def knees(run: FinishedRun) -> tuple[Knee, ...]:
    """Return the knee of every hardware knob over the simulated points: beyond it a doubling gains less than 5 %."""
    return tuple(
        _knee(run, column, knob.name, knob.unit)
        for column, knob in enumerate(run.problem.knobs)
        if knob.group == HARDWARE_GROUP and run.evaluations
    )


def front_steps(run: FinishedRun) -> tuple[Step, ...]:
    """Return what one step along the front costs and buys, from the fastest point on."""
    return tuple(_step(run, start, end) for start, end in pairwise(front_of(run)))


def knob_steps(run: FinishedRun) -> tuple[Step, ...]:
    """Return what one step up of each hardware knob alone costs and buys, by the fastest pair of devices simulated.

    Both points are the fastest of their device, and the devices differ in this knob only, by neighbouring values.
    """
    columns = [column for column, knob in enumerate(run.problem.knobs) if knob.group == HARDWARE_GROUP]
    fastest: dict[tuple[int, ...], int] = {}
    for point, item in enumerate(run.evaluations):
        device = tuple(item.codes[column] for column in columns)
        if device not in fastest or item.latency_ns < run.evaluations[fastest[device]].latency_ns:
            fastest[device] = point
    found: dict[tuple[int, int], tuple[float, Step]] = {}
    for device, start in fastest.items():
        for position, column in enumerate(columns):
            code = _next_code(run.problem.knobs[column].values, device[position])
            end = fastest.get((*device[:position], code, *device[position + 1 :]))
            if end is not None:
                latency_ns = run.evaluations[end].latency_ns
                key = column, device[position]
                if key not in found or latency_ns < found[key][0]:
                    found[key] = latency_ns, _step(run, start, end)
    return tuple(found[key][1] for key in sorted(found))


def _knee(run: FinishedRun, column: int, name: str, unit: str) -> Knee:
    values = run.problem.knobs[column].values
    fastest: dict[int | str, int] = {}
    for point, item in enumerate(run.evaluations):
        value = values[item.codes[column]]
        if value not in fastest or item.latency_ns < run.evaluations[fastest[value]].latency_ns:
            fastest[value] = point
    simulated = Counter(values[item.codes[column]] for item in run.evaluations)
    best = tuple(
        _best_at(value, fastest[value], run.evaluations[fastest[value]], simulated[value])
        for value in in_order(values)
        if value in fastest
    )
    found = Knee(name, unit, best, knee_of(best))
    latencies = [item.latency_ns for item in found.supported]
    return replace(found, spread=max(latencies) / min(latencies) - 1) if latencies else found


def _best_at(value: int | str, point: int, item: Evaluation, simulated: int) -> BestAtValue:
    return BestAtValue(value, point, item.latency_ns, simulated, item.energy_pj, item.area_mm2)


def in_order(values: Sequence[int | str]) -> list[int | str]:
    """Return the values of a knob from small to large; names as they were declared."""
    numbers = [value for value in values if isinstance(value, int)]
    return list(values) if len(numbers) < len(values) else sorted(numbers)


def knee_of(best: tuple[BestAtValue, ...]) -> int | None:
    """Return the smallest value beyond which no doubling gains enough; None where the last does, or for one value.

    A value that too few points have says nothing: its best schedule was hardly looked for.
    """
    best = tuple(item for item in best if item.simulated >= LEAST_SUPPORT)
    if len(best) < 2:
        return None
    knee = best[-1].value
    if not isinstance(knee, int):
        return None
    for lower, higher in reversed(list(pairwise(best))):
        per_doubling = (higher.latency_ns / lower.latency_ns) ** (1 / _doublings(lower, higher))
        if 1 - per_doubling >= LEAST_GAIN_PER_DOUBLING:
            return None if higher is best[-1] else knee
        knee = int(lower.value)
    return knee


def _doublings(lower: BestAtValue, higher: BestAtValue) -> float:
    """Return how often the lower value doubles up to the higher one; from none to some counts as once."""
    return log2(int(higher.value) / int(lower.value)) if lower.value else 1.0


def _next_code(values: tuple[int | str, ...], code: int) -> int:
    """Return the code of the next value in order; -1 for the last."""
    ordered = in_order(values)
    place = ordered.index(values[code]) + 1
    return values.index(ordered[place]) if place < len(ordered) else -1


def _step(run: FinishedRun, start: int, end: int) -> Step:
    before, after = run.evaluations[start], run.evaluations[end]
    own, other = hardware_values(run, start), hardware_values(run, end)
    return Step(
        start=start,
        end=end,
        latency_change=after.latency_ns / before.latency_ns - 1,
        energy_change=after.energy_pj / before.energy_pj - 1,
        area_change=after.area_mm2 / before.area_mm2 - 1,
        knobs=tuple((name, own[name], other[name]) for name in own if own[name] != other[name]),
    )
