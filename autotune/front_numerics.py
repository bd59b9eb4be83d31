"""Numerics of the reported designs: every schedule of every Pareto point runs functionally before it is shown."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np

from autotune.decode_problem import DecodeProblem
from autotune.problem import Evaluation
from compiler.attention import AttentionShape
from compiler.numerics.check import NumericsReport, numerics_of
from compiler.schedule import Schedule, pool_shape, schedule_text
from configs.device import Device
from configs.number_format import NumberFormat

PASSED = "passed"
Check = tuple[Schedule, Device, NumberFormat, int]


class NumericsFailureError(Exception):
    """Raised when a design that was about to be reported computes wrong values: a bug of the compiler."""


def front_verdicts(problem: DecodeProblem, front: Sequence[Evaluation], workers: int) -> dict[tuple[int, ...], str]:
    """Return "passed" for every design; raises NumericsFailureError for the first program that is wrong."""
    checks: dict[str, Check] = {}
    for evaluation in front:
        device = problem.scenario.system(np.array(evaluation.codes)).device
        schedules = problem.space.schedules(np.array(evaluation.codes))
        for shape in problem.space.schedulables:
            queries = shape.queries if isinstance(shape, AttentionShape) else 1
            check = schedules[shape.name], device, shape.stored, queries
            checks.setdefault(_structure(*check), check)
    for report in _reports(list(checks.values()), workers):
        if not report.passed:
            raise NumericsFailureError(str(report))
    return {evaluation.codes: PASSED for evaluation in front}


def _structure(schedule: Schedule, device: Device, stored: NumberFormat, queries: int) -> str:
    """Return what decides the values that a schedule computes: designs that share it share the check."""
    pool = replace(pool_shape(device, 1), channels=1, rows=0)
    return f"{schedule_text(schedule)} on {pool} in {stored}, {queries} queries"


def _reports(checks: list[Check], workers: int) -> list[NumericsReport]:
    if workers <= 1 or len(checks) < 2:
        return [_report(check) for check in checks]
    with ProcessPoolExecutor(workers, get_context("forkserver")) as pool:
        return list(pool.map(_report, checks, chunksize=4))


def _report(check: Check) -> NumericsReport:
    return numerics_of(*check)
