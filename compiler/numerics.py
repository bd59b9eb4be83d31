"""Whether schedules compute what they should: lowered at a small size, executed on values, compared three ways.

Numerics have passed when all hold: results are bit-equal to an independent emulation of the declared order, exact on
integers whose partial sums are representable, and within the rounding bound of fp64. What a check depends on is the
schedule and a few numbers of the device; the search asks for every schedule it reports, so that answers are kept.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from compiler.numerics_attention import check_attention_case
from compiler.numerics_linear import check_linear_case
from compiler.numerics_report import Failure, MismatchError, NumericsReport, Rewrite, as_lowered, failed, passed
from compiler.schedule import AttentionSchedule, LinearSchedule, Place, PoolShape, Schedule, pool_shape
from compiler.small_sizes import attention_cases, linear_cases
from configs.device import Device
from simulator.functional_errors import FunctionalError

__all__ = [
    "Failure",
    "NumericsReport",
    "check_attention",
    "check_linear",
    "numerics_of",
]

ON_HOST = "placed on host"


def numerics_of(schedule: Schedule, device: Device) -> NumericsReport:
    """Return the report of a schedule on a device, kept for schedules and devices that share their structure."""
    return _numerics(schedule, _structure(device))


def check_linear(schedule: LinearSchedule, device: Device, rewrite: Rewrite = as_lowered) -> NumericsReport:
    """Check a linear schedule; `rewrite` may change each program, by name, before it is executed."""
    return _check_linear(schedule, _structure(device), rewrite)


def check_attention(schedule: AttentionSchedule, device: Device, rewrite: Rewrite = as_lowered) -> NumericsReport:
    """Check an attention schedule; `rewrite` may change each program, by name, before it is executed."""
    return _check_attention(schedule, _structure(device), rewrite)


def _structure(device: Device) -> PoolShape:
    """Return the numbers of a device that programs depend on; channels and rows are those of the small size."""
    return replace(pool_shape(device, 1), channels=0, rows=0)


@lru_cache(maxsize=4096)
def _numerics(schedule: Schedule, pool: PoolShape) -> NumericsReport:
    match schedule:
        case LinearSchedule():
            return _check_linear(schedule, pool, as_lowered)
        case AttentionSchedule():
            return _check_attention(schedule, pool, as_lowered)


def _check_linear(schedule: LinearSchedule, pool: PoolShape, rewrite: Rewrite) -> NumericsReport:
    if schedule.place is Place.HOST:
        return passed(schedule, 0, ON_HOST)
    cases = linear_cases(schedule, pool)
    return _report(schedule, [partial(check_linear_case, case, rewrite) for case in cases])


def _check_attention(schedule: AttentionSchedule, pool: PoolShape, rewrite: Rewrite) -> NumericsReport:
    if schedule.place is Place.HOST:
        return passed(schedule, 0, ON_HOST)
    cases = attention_cases(schedule, pool)
    return _report(schedule, [partial(check_attention_case, case, rewrite) for case in cases])


def _report(schedule: Schedule, cases: list[Callable[[], int]]) -> NumericsReport:
    executed = 0
    try:
        for case in cases:
            executed += case()
    except MismatchError as error:
        return failed(schedule, executed, error.failure)
    except FunctionalError as error:
        failure = Failure("a program that cannot be executed", "the first such command", "a legal program", str(error))
        return failed(schedule, executed, failure)
    return passed(schedule, executed)
