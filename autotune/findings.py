"""What a run tells an architect: which limit binds, where each knob stops paying, what a step on the front costs.

Every finding names the simulated points that back it; nothing here is a prediction.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import log2

import numpy as np

from autotune.causes import Cause
from autotune.finished import FinishedRun, front_of, hardware_values
from autotune.problem import HARDWARE_GROUP

LEAST_GAIN_PER_DOUBLING = 0.05
LEAST_SUPPORT = 5


@dataclass(frozen=True, slots=True)
class BindingLimit:
    """The largest cause in a point's lower bound, and all causes as shares of its simulated latency.

    The shares leave out `waiting`: what the simulation adds to the closed form.
    """

    point: int
    cause: Cause
    share: float
    shares: tuple[tuple[Cause, float], ...]
    waiting: float


@dataclass(frozen=True, slots=True)
class BestAtValue:
    """The fastest simulated point with one value of a hardware knob, and how many points have that value."""

    value: int
    point: int
    latency_ns: float
    simulated: int = LEAST_SUPPORT


@dataclass(frozen=True, slots=True)
class Knee:
    """Best latency by value of a hardware knob; `knee` is where it stops paying, None where it pays to the end."""

    knob: str
    unit: str
    best: tuple[BestAtValue, ...]
    knee: int | None


@dataclass(frozen=True, slots=True)
class Step:
    """From one simulated point to another: changes as fractions, and the hardware knobs that differ."""

    start: int
    end: int
    latency_change: float
    energy_change: float
    area_change: float
    knobs: tuple[tuple[str, int | str, int | str], ...]


def binding_limits(run: FinishedRun) -> tuple[BindingLimit, ...]:
    """Return the binding limit of every Pareto point, fastest first."""
    front = front_of(run)
    if not front:
        return ()
    cycles = run.problem.cause_cycles(np.array([run.evaluations[point].codes for point in front], dtype=np.int64))
    clock_ns = run.problem.scenario.base.nanoseconds(1)
    found = []
    for row, point in enumerate(front):
        latency_ns = run.evaluations[point].latency_ns
        shares = tuple((cause, float(values[row]) * clock_ns / latency_ns) for cause, values in cycles.items())
        cause, share = max(shares, key=lambda item: item[1])
        found.append(BindingLimit(point, cause, share, shares, 1 - sum(value for _, value in shares)))
    return tuple(found)


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
    fastest: dict[int, int] = {}
    for point, item in enumerate(run.evaluations):
        value = int(values[item.codes[column]])
        if value not in fastest or item.latency_ns < run.evaluations[fastest[value]].latency_ns:
            fastest[value] = point
    simulated = Counter(int(values[item.codes[column]]) for item in run.evaluations)
    best = tuple(
        BestAtValue(value, point, run.evaluations[point].latency_ns, simulated[value])
        for value, point in sorted(fastest.items())
    )
    return Knee(name, unit, best, knee_of(best))


def knee_of(best: tuple[BestAtValue, ...]) -> int | None:
    """Return the smallest value beyond which no doubling gains enough; None where the last does, or for one value.

    A value that too few points have says nothing: its best schedule was hardly looked for.
    """
    best = tuple(item for item in best if item.simulated >= LEAST_SUPPORT)
    if len(best) < 2:
        return None
    knee = best[-1].value
    for lower, higher in reversed(list(pairwise(best))):
        per_doubling = (higher.latency_ns / lower.latency_ns) ** (1 / log2(higher.value / lower.value))
        if 1 - per_doubling >= LEAST_GAIN_PER_DOUBLING:
            return None if higher is best[-1] else knee
        knee = lower.value
    return knee


def _next_code(values: tuple[int | str, ...], code: int) -> int:
    """Return the code of the next larger value; -1 for the largest."""
    larger = [int(value) for value in values if int(value) > int(values[code])]
    return values.index(min(larger)) if larger else -1


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
