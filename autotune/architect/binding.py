"""Which limit of its device binds a point, what sets its multiply cadence, and what else it has nearly used up."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from autotune.causes import CHANNEL_CAUSES, Cause
from autotune.finished import FinishedRun, front_of
from autotune.learning import codes_of
from simulator.laws.figures import device_figures
from simulator.laws.timing import cadence_terms

TIGHT = 0.02  # a requirement whose value is within this share of its limit


class CadenceLimit(StrEnum):
    """What keeps all-bank multiplies apart."""

    COLUMN = "column access"
    PORTS = "buffer ports"
    UNIT = "unit clock"
    POWER = "power cap"


@dataclass(frozen=True, slots=True)
class BindingLimit:
    """The cause with the largest share of a point's simulated latency, all shares, and what is nearly used up.

    The shares are those of the lower bound and leave out `waiting`: what the simulation adds to it. `cadence_set_by`
    names the terms that are as long as the multiply cadence; relaxing it takes relaxing all of them.
    `tight_requirements` are those of the user whose value is within 2 % of the limit.
    """

    point: int
    cause: Cause
    share: float
    shares: tuple[tuple[Cause, float], ...]
    waiting: float
    cadence_set_by: tuple[CadenceLimit, ...]
    capacity_used_share: float
    power_average_w: float
    instructions_per_token: float
    dispatcher_busy_share: float
    tight_requirements: tuple[str, ...]


def binding_limits(run: FinishedRun) -> tuple[BindingLimit, ...]:
    """Return the binding limit of every Pareto point, fastest first."""
    return limits_of(run, front_of(run))


def limits_of(run: FinishedRun, points: Sequence[int]) -> tuple[BindingLimit, ...]:
    """Return the binding limits of some points."""
    if not points:
        return ()
    evaluations = [run.evaluations[point] for point in points]
    codes = codes_of(evaluations, len(run.problem.knobs))
    cycles, cadences = run.problem.cause_cycles(codes), cadence_limits(run, codes)
    clock_ns, margins = run.problem.scenario.base.nanoseconds(1), run.judged.margins
    found = []
    for row, (point, item) in enumerate(zip(points, evaluations, strict=True)):
        details = dict(item.details)
        bounds = {cause: float(values[row]) * clock_ns / item.latency_ns for cause, values in cycles.items()}
        shares = with_dispatcher(bounds, details["dispatcher_busy_share"])
        cause = max(shares, key=lambda name: shares[name])
        found.append(
            BindingLimit(
                point=point,
                cause=cause,
                share=shares[cause],
                shares=tuple(shares.items()),
                waiting=1 - sum(shares.values()),
                cadence_set_by=cadences[row],
                capacity_used_share=details["rows_used_per_bank"] / details["rows_available_per_bank"],
                power_average_w=details["power_average_w"],
                instructions_per_token=details["instructions_per_token"],
                dispatcher_busy_share=details["dispatcher_busy_share"],
                tight_requirements=tuple(
                    str(requirement)
                    for requirement, margin in zip(run.goals.requirements, margins[point].tolist(), strict=True)
                    if abs(margin) <= np.log1p(TIGHT)
                ),
            )
        )
    return tuple(found)


def with_dispatcher(bounds: dict[Cause, float], busy: float) -> dict[Cause, float]:
    """Return shares of latency with that of the dispatcher, which sends instructions beside what the channels do.

    Where it is busy for longer than the channels are in their lower bound, their work lies beside its own and it alone
    counts, up to what the latency leaves; where it is not, it holds nothing back for the step as a whole.
    """
    channel = sum(bounds[cause] for cause in CHANNEL_CAUSES)
    left = max(channel, 1 - (sum(bounds.values()) - channel))
    if busy <= channel:
        return bounds | {Cause.DISPATCHER: 0.0}
    return bounds | dict.fromkeys(CHANNEL_CAUSES, 0.0) | {Cause.DISPATCHER: min(busy, left)}


def cadence_limits(run: FinishedRun, codes: NDArray[np.int64]) -> list[tuple[CadenceLimit, ...]]:
    """Return which terms are as long as the multiply cadence of each design's device."""
    base, knobs = run.problem.scenario.base, run.problem.space.hardware_arrays(codes)
    figures = device_figures(base, knobs)
    terms = cadence_terms(figures.timing, base, knobs, figures.energy["all_bank_mac_pj"])
    columns = terms.column_access, terms.buffer_ports, terms.unit_clock, terms.power_cap
    rows = zip(*(np.broadcast_to(np.asarray(item), (len(codes),)).tolist() for item in columns), strict=True)
    return [_longest(*row) for row in rows]


def _longest(column: int, ports: int, unit: int, power: int) -> tuple[CadenceLimit, ...]:
    """Return the terms that are as long as the longest; ports only where they take longer than one column access."""
    longest = max(column, ports, unit, power)
    terms = (
        (CadenceLimit.COLUMN, column),
        (CadenceLimit.PORTS, ports if ports > column else 0),
        (CadenceLimit.UNIT, unit),
        (CadenceLimit.POWER, power),
    )
    return tuple(limit for limit, cycles in terms if cycles == longest)
