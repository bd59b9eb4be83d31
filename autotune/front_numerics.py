"""Numerics of the reported designs: every schedule of every Pareto point runs functionally before it is shown."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from compiler.numerics import Check, NumericsReport, check_key, run_check

from autotune.decode_problem import DecodeProblem
from autotune.problem import Evaluation

PASSED = "passed"


class NumericsFailureError(Exception):
    """Raised when a design that was about to be reported computes wrong values: a bug of the compiler."""


def front_verdicts(problem: DecodeProblem, front: Sequence[Evaluation], workers: int) -> dict[tuple[int, ...], str]:
    """Return "passed" for every design; raises NumericsFailureError for the first program that is wrong."""
    checks: dict[str, Check] = {}
    for evaluation in front:
        for check in problem.checks(evaluation.codes):
            checks.setdefault(check_key(check), check)
    for report in _reports(list(checks.values()), workers):
        if not report.passed:
            raise NumericsFailureError(str(report))
    return {evaluation.codes: PASSED for evaluation in front}


def _reports(checks: list[Check], workers: int) -> list[NumericsReport]:
    if workers <= 1 or len(checks) < 2:
        return [run_check(check) for check in checks]
    with ProcessPoolExecutor(workers, get_context("forkserver")) as pool:
        return list(pool.map(run_check, checks))
