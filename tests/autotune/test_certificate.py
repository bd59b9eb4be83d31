"""How much bounds leave to gain: the factor that the worst of them needs."""

import numpy as np

from autotune.certificate import left_factor
from autotune.result import StopReason
from autotune.search import search
from tests.analytic_problem import small_problem


def test_the_factor_is_that_of_the_bound_farthest_from_the_front() -> None:
    front = np.array([[2.0, 4.0], [4.0, 2.0]])
    # The first point is 1.25 times the first bound in its worse objective, the second is twice the second bound.
    bounds = np.array([[1.8, 3.2], [2.0, 1.0]])
    assert left_factor(front, bounds) == 2.0


def test_a_front_at_its_bounds_has_nothing_left() -> None:
    front = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert left_factor(front, front) == 1.0


def test_without_a_front_everything_is_left() -> None:
    assert left_factor(np.zeros((0, 2)), np.ones((1, 2))) == float("inf")


def test_a_search_ends_when_it_is_near_enough_to_its_bounds() -> None:
    problem = small_problem()

    def evaluate(designs):
        return [problem.evaluate(codes) for codes in designs]

    whole = search(problem, 200, 0, evaluate)
    reached = whole.batches[4].left_factor
    early = search(problem, 200, 0, evaluate, stop_within=reached - 1.0)
    assert early.stop is StopReason.WITHIN
    assert len(early.evaluations) <= whole.batches[4].evaluated
    assert early.batches[-1].left_factor <= reached
    assert early.evaluations == whole.evaluations[: len(early.evaluations)]
