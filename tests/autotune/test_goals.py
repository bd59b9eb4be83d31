"""Searching for goals: requirements hold, exact ones before any simulation; any objectives; no is an answer."""

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from autotune import baselines
from autotune.enumerate import enumerate_legal
from autotune.finished import front_points, nearest_points
from autotune.goals import DEFAULT_GOALS, Goals, goals_of, judge, judge_evaluations
from autotune.layout import clean
from autotune.pareto import box_of, hypervolume
from autotune.problem import Codes, Evaluation, Problem
from autotune.record import open_record, recorded
from autotune.result import SearchResult, StopReason
from autotune.search import search
from autotune.study import StudyView
from tests.analytic_problem import AnalyticProblem, small_problem, tiny_problem
from tests.autotune.finished_runs import QUICK
from tests.small_workloads import small_problem as small_decode_problem

DEFAULT = ("latency", "energy", "area")
AREA_LIMIT = 120.0
TWO, FOUR = ("throughput", "cost"), ("tokens_per_s_per_w", "edp", "tokens_per_s_per_mm2", "latency")


def _evaluate(problem: Problem, designs: Codes) -> list[Evaluation]:
    return [problem.evaluate(codes) for codes in designs]


def _goals(*requirements: str, objectives: tuple[str, ...] = DEFAULT) -> Goals:
    return goals_of(objectives, requirements, small_problem().knobs)


def _run(problem: AnalyticProblem, goals: Goals, budget: int = 60, seed: int = 0) -> SearchResult:
    return search(problem, budget, seed, partial(_evaluate, problem), goals=goals)


def _share(problem: AnalyticProblem, goals: Goals, found: tuple[Evaluation, ...]) -> float:
    codes = enumerate_legal(problem)
    exact = judge(problem, goals, codes, problem.true_metrics(codes))
    judged, front = judge_evaluations(problem, goals, found), exact.objectives[exact.front()]
    box = box_of(front)
    return hypervolume(judged.objectives[judged.feasible], box) / hypervolume(front, box)


def test_goals_that_are_spelled_out_take_the_same_way_as_the_default() -> None:
    problem = small_problem()
    assert _run(problem, _goals()).evaluations == _run(problem, DEFAULT_GOALS).evaluations


@pytest.mark.parametrize("name", ["ours", *baselines.STRATEGIES])
def test_no_design_above_a_limit_of_area_is_simulated_but_the_baselines(name: str) -> None:
    problem, goals = small_problem(), _goals(f"area_mm2 <= {AREA_LIMIT}")
    first = {tuple(codes) for codes in clean(problem, problem.baselines()).tolist()}
    if name == "ours":
        found = _run(problem, goals).evaluations
    else:
        found = baselines.STRATEGIES[name](problem, 60, 0, partial(_evaluate, problem), goals)
    above = [item for item in found if item.area_mm2 > AREA_LIMIT]
    assert len(found) == 60
    assert {item.codes for item in above} == first


@pytest.mark.parametrize(
    "requirements",
    [("latency_ms <= 0.0126",), ("power_avg_w <= 1.19",), ("energy_mj <= 0.4674", "power_avg_w >= 6.1")],
    ids=("latency", "power", "energy and power"),
)
def test_rare_feasible_designs_are_found_and_better_than_by_chance(requirements: tuple[str, ...]) -> None:
    problem, goals = small_problem(), _goals(*requirements)
    ours = np.mean([_share(problem, goals, _run(problem, goals, 120, seed).evaluations) for seed in (0, 1)])
    chance = baselines.STRATEGIES["random"](problem, 120, 0, partial(_evaluate, problem), goals)
    assert ours > 0.8
    assert ours > _share(problem, goals, chance) + 0.2


def test_tightening_a_requirement_never_enlarges_the_feasible_front() -> None:
    problem = small_problem()
    found = _run(problem, DEFAULT_GOALS, 120).evaluations
    box = box_of(judge_evaluations(problem, DEFAULT_GOALS, found).objectives)
    for figure, limits in (("area_mm2", (1e4, 400, 200, 100, 70, 10)), ("power_avg_w", (1e4, 20, 6, 3, 1.2, 0.1))):
        volumes, fronts, feasible = [], [], []
        for limit in limits:
            goals = _goals(f"{figure} <= {limit}")
            judged = judge_evaluations(problem, goals, found)
            volumes.append(hypervolume(judged.objectives[judged.feasible], box))
            feasible.append(set(np.flatnonzero(judged.feasible).tolist()))
            fronts.append(set(front_points(problem, found, goals)))
        assert all(tight <= loose for loose, tight in pairwise(feasible))
        assert volumes == sorted(volumes, reverse=True)
        assert fronts[-1] == set()
        if figure == "area_mm2":  # What beats a feasible design is smaller or as small, so feasible itself.
            assert all(tight <= loose for loose, tight in pairwise(fronts))


def test_limits_that_no_design_meets_in_closed_form_end_the_run_with_a_ranking() -> None:
    problem, goals = small_problem(), _goals("area_mm2 <= 1")
    result = _run(problem, goals)
    assert result.stop is StopReason.OUT_OF_REACH
    assert "area_mm2 <= 1" in result.note
    assert front_points(problem, result.evaluations, goals) == ()
    nearest = nearest_points(problem, result.evaluations, goals)
    smallest = problem.true_metrics(enumerate_legal(problem))[:, 2].min()
    assert result.evaluations[nearest[0]].area_mm2 == smallest


def test_limits_that_only_bounds_rule_out_spend_the_budget_on_what_misses_least() -> None:
    problem, goals = small_problem(), _goals("latency_ms <= 0.001")
    result = _run(problem, goals)
    assert (result.stop, len(result.evaluations)) == (StopReason.BUDGET, 60)
    assert "lower bounds" in result.note
    nearest = result.evaluations[nearest_points(problem, result.evaluations, goals)[0]]
    assert nearest.latency_ns == min(item.latency_ns for item in result.evaluations)
    fastest = problem.true_metrics(enumerate_legal(problem))[:, 0].min()
    assert nearest.latency_ns <= 1.05 * fastest


@pytest.mark.parametrize("objectives", [TWO, FOUR], ids=("two", "four"))
def test_two_and_four_objectives_run_to_the_end(objectives: tuple[str, ...]) -> None:
    tiny, small = tiny_problem(), small_problem()
    goals = _goals(objectives=objectives)
    whole = search(tiny, 500, 0, partial(_evaluate, tiny), goals=goals)
    assert whole.stop is StopReason.ENUMERATED
    result = _run(small, goals, 120)
    assert result.roofline.objectives.shape[1] == len(objectives)
    assert all(report.hypervolume <= report.bound_hypervolume for report in result.batches)
    assert _share(small, goals, result.evaluations) > 0.95


@pytest.mark.parametrize("objectives", [TWO, FOUR], ids=("two", "four"))
def test_a_decode_problem_is_searched_for_other_objectives(objectives: tuple[str, ...]) -> None:
    problem = small_decode_problem()
    goals = goals_of(objectives, ("area_mm2 <= 700", "channels >= 16"), problem.knobs)
    result = search(problem, 16, 0, partial(_evaluate, problem), settings=QUICK, goals=goals)
    starts = len(clean(problem, problem.baselines()))
    assert len(result.evaluations) == 16
    assert all(item.area_mm2 <= 700 for item in result.evaluations[starts:])
    assert front_points(problem, result.evaluations, goals)


def test_a_resumed_run_with_goals_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    problem, goals = small_problem(), _goals("power_avg_w <= 3", "area_mm2 <= 400", objectives=TWO)
    whole = _run(problem, goals)

    def run(folder: Path, most: int) -> SearchResult:
        left = [most]

        def evaluate_new(designs: Codes, on_result: object) -> list[Evaluation]:
            done = []
            for codes in designs[: left[0]]:
                done.append(problem.evaluate(codes))
                on_result(done[-1])
            left[0] -= len(done)
            return done

        with open_record(folder, problem, resume=True) as record:
            return search(problem, 60, 0, recorded(record, evaluate_new, lambda item: None), goals=goals)

    assert run(tmp_path, 33).stop is StopReason.INTERRUPTED
    assert run(tmp_path, 1000).evaluations == whole.evaluations


def test_the_study_shows_objectives_with_their_sense_and_constraints(tmp_path: Path) -> None:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    problem, goals = small_problem(), _goals("area_mm2 <= 200", objectives=TWO)
    found = _run(problem, goals, 10).evaluations
    StudyView(tmp_path, problem, goals).sync(found)
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "study.journal")))
    study = optuna.load_study(study_name="explore", storage=storage)
    assert [str(item.name) for item in study.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert study.metric_names == ["throughput_tokens_per_s", "cost_wafer_mm2"]
    judged = judge_evaluations(problem, goals, found)
    if hasattr(optuna.trial.FrozenTrial, "set_constraint"):
        told = [trial.constraints["area_mm2 <= 200"] for trial in study.trials]
        assert told == judged.margins[:, 0].tolist()
    assert study.trials[0].values[0] == pytest.approx(1e9 / found[0].latency_ns)
