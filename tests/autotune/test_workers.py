"""Workers: order, deaths survived, a deadly design named, errors told with their design."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from autotune.enumerate import enumerate_legal
from autotune.interrupt import StopFlag
from autotune.problem import Codes, Evaluation
from autotune.workers import WorkerDeathError, Workers
from tests.analytic_problem import AnalyticProblem, tiny_problem


def die_once(marker: Path, codes: Codes) -> None:
    """Kill the process that evaluates the fourth design, the first time."""
    if codes.tolist() == _designs()[3].tolist() and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def die_always(codes: Codes) -> None:
    if codes.tolist() == _designs()[3].tolist():
        os.kill(os.getpid(), signal.SIGKILL)


def fail(codes: Codes) -> None:
    if codes.tolist() == _designs()[3].tolist():
        raise ArithmeticError("a bug of ours")


def _designs() -> Codes:
    return enumerate_legal(tiny_problem())


def _expected() -> tuple[Evaluation, ...]:
    problem = tiny_problem()
    return tuple(problem.evaluate(codes) for codes in _designs())


def _watched(marker: Path) -> "partial[AnalyticProblem]":
    return partial(tiny_problem, partial(die_once, marker))


@pytest.mark.parametrize("count", [1, 2])
def test_results_come_in_the_order_of_submission_and_each_is_handed_on_once(count: int) -> None:
    finished: list[Evaluation] = []
    with Workers(tiny_problem, count) as pool:
        assert pool.evaluate(_designs(), finished.append) == _expected()
    assert sorted(finished, key=lambda e: e.codes) == sorted(_expected(), key=lambda e: e.codes)


def test_a_killed_worker_is_survived(tmp_path: Path) -> None:
    finished: list[Evaluation] = []
    with Workers(_watched(tmp_path / "died"), 2) as pool:
        assert pool.evaluate(_designs(), finished.append) == _expected()
    assert (tmp_path / "died").exists()
    assert len(finished) == len(_designs())


def test_a_design_that_always_kills_its_worker_is_named() -> None:
    with Workers(partial(tiny_problem, die_always), 2) as pool, pytest.raises(WorkerDeathError) as caught:
        pool.evaluate(_designs(), lambda evaluation: None)
    assert caught.value.codes == tuple(_designs()[3].tolist())
    assert caught.value.deaths == 4


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_is_a_bug_and_names_its_design(count: int) -> None:
    with Workers(partial(tiny_problem, fail), count) as pool, pytest.raises(ArithmeticError) as caught:
        pool.evaluate(_designs(), lambda evaluation: None)
    assert str(tuple(_designs()[3].tolist())) in caught.value.__notes__[0]


@pytest.mark.parametrize("count", [1, 2])
def test_a_stop_request_returns_what_is_finished(count: int) -> None:
    stop = StopFlag()
    finished: list[Evaluation] = []

    def request(evaluation: Evaluation) -> None:
        finished.append(evaluation)
        stop.requested = len(finished) >= 3

    with Workers(tiny_problem, count, stop) as pool:
        found = pool.evaluate(_designs(), request)
    assert 3 <= len(found) <= 3 + count
    assert set(finished) == set(found)
