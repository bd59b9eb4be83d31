"""What every search strategy must keep: a new one is added to `STRATEGIES` and inherits the tests."""

from collections.abc import Callable

import numpy as np
import pytest

from autotune import baselines
from autotune.layout import clean
from autotune.problem import Codes, Evaluation, Problem
from autotune.result import EvaluateBatch
from autotune.search import search
from tests.analytic_problem import AnalyticProblem, infeasible_problem, large_problem, small_problem, tiny_problem

Strategy = Callable[[Problem, int, int, EvaluateBatch], tuple[Evaluation, ...]]


def ours(problem: Problem, budget: int, seed: int, evaluate_batch: EvaluateBatch) -> tuple[Evaluation, ...]:
    return search(problem, budget, seed, evaluate_batch).evaluations


STRATEGIES: dict[str, Strategy] = {"ours": ours, **baselines.STRATEGIES}
strategies = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())


class Counted:
    """Evaluates a problem and remembers every design that was simulated."""

    def __init__(self, problem: AnalyticProblem) -> None:
        self.problem = problem
        self.simulated: list[tuple[int, ...]] = []

    def __call__(self, designs: Codes) -> list[Evaluation]:
        self.simulated += [tuple(codes) for codes in designs.tolist()]
        # The analytic problem raises when an illegal design is evaluated.
        return [self.problem.evaluate(codes) for codes in designs]


@strategies
def test_the_budget_is_spent_on_distinct_legal_canonical_designs(strategy: Strategy) -> None:
    evaluate = Counted(small_problem())
    found = strategy(evaluate.problem, 60, 1, evaluate)
    assert len(found) == 60
    assert [evaluation.codes for evaluation in found] == evaluate.simulated
    codes = np.array(evaluate.simulated)
    assert len(set(evaluate.simulated)) == 60
    assert (clean(evaluate.problem, codes) == codes).all()


@strategies
def test_baselines_are_evaluated_first(strategy: Strategy) -> None:
    problem = small_problem()
    found = strategy(problem, 10, 1, Counted(problem))
    assert found[0].codes == tuple(problem.baselines()[0].tolist())


@strategies
@pytest.mark.parametrize("budget", [1, 2, 5])
def test_a_budget_of_few_designs_is_kept(strategy: Strategy, budget: int) -> None:
    problem = small_problem()
    assert len(strategy(problem, budget, 1, Counted(problem))) == budget


@strategies
def test_same_seed_gives_the_same_evaluations_in_the_same_order(strategy: Strategy) -> None:
    problem = small_problem()
    first = strategy(problem, 50, 3, Counted(problem))
    assert first == strategy(problem, 50, 3, Counted(problem))


@strategies
def test_a_space_smaller_than_the_budget_ends_the_run(strategy: Strategy) -> None:
    problem = tiny_problem()
    assert len(strategy(problem, 1000, 1, Counted(problem))) == 12


@strategies
def test_nothing_legal_gives_nothing(strategy: Strategy) -> None:
    problem = infeasible_problem()
    assert strategy(problem, 20, 1, Counted(problem)) == ()


@strategies
def test_many_knobs_are_no_hindrance(strategy: Strategy) -> None:
    problem = large_problem()
    assert len(strategy(problem, 40, 1, Counted(problem))) == 40
