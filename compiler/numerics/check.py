"""Whether schedules compute what they should: lowered at a small size, executed on values, compared three ways.

Numerics have passed when all hold: results are bit-equal to an independent emulation of the declared order, exact on
integers whose partial sums are representable, and within the rounding bound of fp64. What a check depends on is the
schedule and a few numbers of the device; the search asks for every schedule it reports, so that answers are kept.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from compiler.numerics.attention import check_attention_case
from compiler.numerics.linear import check_linear_case
from compiler.numerics.report import Failure, NumericsReport, Rewrite, as_lowered, failed, passed
from compiler.numerics.shrink import case_text, outcome, smallest
from compiler.numerics.small_sizes import AttentionCase, LinearCase, attention_cases, linear_cases
from compiler.schedule import AttentionSchedule, LinearSchedule, Place, PoolShape, Schedule, pool_shape
from configs.device import Device
from configs.number_format import NumberFormat

__all__ = [
    "Failure",
    "NumericsReport",
    "check_attention",
    "check_linear",
    "numerics_of",
]

ON_HOST = "placed on host"
Case = TypeVar("Case", LinearCase, AttentionCase)


def numerics_of(
    schedule: Schedule, device: Device, stored: NumberFormat = NumberFormat.BF16, queries: int = 1
) -> NumericsReport:
    """Return the report of a schedule for weights or a cache of a format on a device.

    It is kept for schedules and devices that share their structure. `queries` tokens are appended at a time.
    """
    return _numerics(schedule, _structure(device), stored, queries)


def check_linear(
    schedule: LinearSchedule,
    device: Device,
    rewrite: Rewrite = as_lowered,
    weights: NumberFormat = NumberFormat.BF16,
) -> NumericsReport:
    """Check a linear schedule; `rewrite` may change each program, by name, before it is executed."""
    return _check_linear(schedule, _structure(device), rewrite, weights)


def check_attention(
    schedule: AttentionSchedule,
    device: Device,
    rewrite: Rewrite = as_lowered,
    cache: NumberFormat = NumberFormat.BF16,
    queries: int = 1,
) -> NumericsReport:
    """Check an attention schedule; `rewrite` may change each program, by name, before it is executed."""
    return _check_attention(schedule, _structure(device), rewrite, cache, queries)


def _structure(device: Device) -> PoolShape:
    """Return the numbers of a device that programs depend on; channels and rows are those of the small size."""
    return replace(pool_shape(device, 1), channels=0, rows=0)


@lru_cache(maxsize=4096)
def _numerics(schedule: Schedule, pool: PoolShape, stored: NumberFormat, queries: int) -> NumericsReport:
    match schedule:
        case LinearSchedule():
            return _check_linear(schedule, pool, as_lowered, stored)
        case AttentionSchedule():
            return _check_attention(schedule, pool, as_lowered, stored, queries)


def _check_linear(schedule: LinearSchedule, pool: PoolShape, rewrite: Rewrite, weights: NumberFormat) -> NumericsReport:
    if schedule.place is Place.HOST:
        return passed(schedule, 0, ON_HOST)
    cases = linear_cases(schedule, pool, weights)
    return _report(schedule, cases, lambda case: check_linear_case(case, rewrite))


def _check_attention(
    schedule: AttentionSchedule, pool: PoolShape, rewrite: Rewrite, cache: NumberFormat, queries: int
) -> NumericsReport:
    if schedule.place is Place.HOST:
        return passed(schedule, 0, ON_HOST)
    cases = attention_cases(schedule, pool, cache, queries)
    return _report(schedule, cases, lambda case: check_attention_case(case, rewrite))


def _report(schedule: Schedule, cases: tuple[Case, ...], check: Callable[[Case], int]) -> NumericsReport:
    """Check all cases; the first that fails is made as small as it can be."""
    executed = 0
    for case in cases:
        kernels, failure = outcome(case, check)
        if failure is not None:
            small, why = smallest(case, failure, check)
            return failed(schedule, executed, replace(why, case=case_text(small)))
        executed += kernels
    return passed(schedule, executed)
