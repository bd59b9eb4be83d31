"""One small finished run that all tests of outputs share, and how to put it, or a changed one, into a folder."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from autotune.decode_problem import DecodeProblem
from autotune.finished import FinishedRun, front_of
from autotune.goals import Goals, goals_of
from autotune.problem import Codes, Evaluation
from autotune.result import SearchResult
from autotune.roofline import RooflineSettings
from autotune.screening import ScreeningSettings
from autotune.search import search
from autotune.search_settings import SearchSettings
from costmodel.model import ModelSettings
from tests.small_workloads import small_problem

BUDGET = 20
FEW = 12
# A small search is enough: what is tested is what a run leaves, not how well it searched.
QUICK = SearchSettings(
    roofline=RooflineSettings(pool=400, children=200, generations=4, most_generations=8),
    screening=ScreeningSettings(random=100, children=100, generations=1, generation_children=100, hardware=4, donors=4),
    model=ModelSettings(trees=20),
)


@cache
def small_result() -> tuple[DecodeProblem, SearchResult]:
    """Return a small problem and its search, done once for all tests."""
    problem = small_problem()

    def evaluate_batch(designs: Codes) -> list[Evaluation]:
        return [problem.evaluate(codes) for codes in designs]

    return problem, search(problem, BUDGET, 0, evaluate_batch, settings=QUICK)


def finished_run(folder: Path, **settings: str | int) -> FinishedRun:
    """Return the small run as if it had been made in a folder."""
    problem, result = small_result()
    plain = {"model": "tiny", "hardware": "gddr6-aim", "batch": 1, "budget": BUDGET, "seed": 0, **settings}
    run = FinishedRun(folder, plain, problem, result, {})
    return replace(run, numerics={run.evaluations[point].codes: "passed" for point in front_of(run)})


@cache
def _searched(goals: Goals) -> tuple[DecodeProblem, SearchResult]:
    problem, _ = small_result()

    def evaluate_batch(designs: Codes) -> list[Evaluation]:
        return [problem.evaluate(codes) for codes in designs]

    return problem, search(problem, FEW, 0, evaluate_batch, settings=QUICK, goals=goals)


def run_with_goals(folder: Path, objectives: tuple[str, ...], requirements: tuple[str, ...]) -> FinishedRun:
    """Return a run of the small problem that was searched for other goals."""
    problem, _ = small_result()
    key = goals_of(objectives, requirements, problem.knobs)
    problem, result = _searched(key)
    return FinishedRun(folder, {"model": "tiny", "hardware": "gddr6-aim", "seed": 0}, problem, result, {})


def empty_run(folder: Path) -> FinishedRun:
    """Return a run that was interrupted before its first evaluation."""
    run = finished_run(folder)
    return replace(run, result=replace(run.result, evaluations=(), batches=(), box=None), numerics={})
