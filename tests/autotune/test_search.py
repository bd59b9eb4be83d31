"""The search: quality on an enumerated space, its ends, its stops, and what it reports."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from autotune import baselines
from autotune.enumerate import enumerate_legal
from autotune.layout import layout_of
from autotune.learning import metrics_of
from autotune.pareto import box_of, hypervolume, nondominated
from autotune.problem import Codes, Evaluation
from autotune.result import StopReason
from autotune.roofline import roofline
from autotune.search import search
from autotune.search_settings import SearchSettings
from autotune.workers import Workers
from tests.analytic_problem import AnalyticProblem, infeasible_problem, large_problem, small_problem, tiny_problem

SEEDS = (0, 1, 2)


def evaluator(problem: AnalyticProblem) -> "partial[list[Evaluation]]":
    return partial(_evaluate, problem)


def _evaluate(problem: AnalyticProblem, designs: Codes) -> list[Evaluation]:
    return [problem.evaluate(codes) for codes in designs]


def _share(found: Sequence[Evaluation], exact: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    box = box_of(exact)
    return hypervolume(metrics_of(found), box) / hypervolume(exact, box)


def test_search_comes_within_a_percent_of_the_exact_front_and_beats_the_samplers() -> None:
    problem = small_problem()
    everything = problem.true_metrics(enumerate_legal(problem))
    exact = everything[nondominated(everything)]
    assert len(exact) > 30
    ours = [_share(search(problem, 200, seed, evaluator(problem)).evaluations, exact) for seed in SEEDS]
    assert np.mean(ours) >= 0.99
    for name in ("random", "nsga2-20"):
        others = [_share(baselines.STRATEGIES[name](problem, 200, seed, evaluator(problem)), exact) for seed in SEEDS]
        assert np.mean(ours) > np.mean(others) + 0.01, name


def test_first_designs_hold_both_ends_of_the_roofline_front_even_for_a_small_budget() -> None:
    problem = small_problem()
    result = search(problem, 20, 0, evaluator(problem))
    codes = np.array([evaluation.codes for evaluation in result.evaluations[:4]])
    ends = roofline(problem, codes)
    assert ends[:, 0].min() == result.roofline.objectives[:, 0].min()
    assert ends[:, 2].min() == result.roofline.objectives[:, 2].min()


def test_roofline_front_is_never_beaten() -> None:
    problem = small_problem()
    result = search(problem, 60, 0, evaluator(problem))
    assert all(report.hypervolume <= report.bound_hypervolume for report in result.batches)
    growth = [report.hypervolume for report in result.batches]
    assert growth == sorted(growth)


def test_accuracy_is_reported_for_latency_and_each_task_after_the_first_batch() -> None:
    problem = small_problem()
    reports = search(problem, 80, 0, evaluator(problem)).batches
    assert reports[0].accuracy == ()
    assert [name for name, _ in reports[-1].accuracy] == ["latency", *problem.tasks]
    assert dict(reports[-1].accuracy)["latency"].pairwise > 0.8


def test_a_small_space_is_enumerated_and_the_search_says_so() -> None:
    problem = tiny_problem()
    result = search(problem, 500, 0, evaluator(problem))
    assert (result.stop, len(result.evaluations)) == (StopReason.ENUMERATED, len(enumerate_legal(problem)))
    assert "12 legal designs" in result.note


def test_a_space_too_large_to_enumerate_but_smaller_than_the_budget_is_exhausted() -> None:
    problem = tiny_problem()
    result = search(problem, 500, 0, evaluator(problem), settings=SearchSettings(enumerable=0))
    assert (result.stop, len(result.evaluations)) == (StopReason.EXHAUSTED, len(enumerate_legal(problem)))


def test_nothing_legal_gives_the_reasons_with_counts() -> None:
    problem = infeasible_problem()
    result = search(problem, 20, 0, evaluator(problem))
    assert (result.stop, result.evaluations, result.box) == (StopReason.INFEASIBLE, (), None)
    reasons = {reason.reason: reason for reason in result.feasibility.reasons}
    overflow = reasons["ffn needs N B of buffer, the device has N B"]
    assert overflow.count == result.feasibility.explained == 200
    assert "the device has" in overflow.example
    assert any(character.isdigit() for character in overflow.example)


def test_a_stop_request_keeps_what_is_finished() -> None:
    problem = small_problem()
    whole = search(problem, 60, 0, evaluator(problem))
    calls: list[int] = []

    def stopping(designs: Codes) -> list[Evaluation]:
        calls.append(len(designs))
        return _evaluate(problem, designs if len(calls) < 3 else designs[:2])

    result = search(problem, 60, 0, stopping)
    assert result.stop is StopReason.INTERRUPTED
    assert result.evaluations == whole.evaluations[: sum(calls[:-1]) + 2]


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    problem = small_problem()
    with Workers(small_problem, 2) as pool:
        two = search(problem, 40, 5, lambda designs: pool.evaluate(designs, lambda evaluation: None))
    assert two.evaluations == search(problem, 40, 5, evaluator(problem)).evaluations


def test_baselines_that_exceed_the_budget_are_cut() -> None:
    problem = small_problem()
    legal = enumerate_legal(problem)[:8]
    crowded = AnalyticProblem(problem.hardware, problem.specs, problem.schedule, tuple(map(tuple, legal.tolist())))
    found = search(crowded, 5, 0, evaluator(crowded)).evaluations
    assert [evaluation.codes for evaluation in found] == [tuple(codes) for codes in legal[:5].tolist()]


@pytest.mark.parametrize(("budget", "first", "batch"), [(500, 40, 10), (100, 40, 10), (20, 8, 4), (3, 3, 0)])
def test_small_budgets_shrink_the_first_designs_and_batches(budget: int, first: int, batch: int) -> None:
    settings = SearchSettings()
    assert settings.first_count(budget, baselines=1) == first
    assert settings.batch_count(budget, first) == batch


def test_layout_separates_hardware_from_each_task() -> None:
    layout = layout_of(large_problem())
    assert len(layout.hardware) == 6
    assert [len(columns) for columns in layout.schedules] == [4] * 5
    assert layout.tasks == large_problem().tasks
