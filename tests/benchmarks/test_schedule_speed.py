"""How many schedules of an operator, and how many whole designs, are judged in a second of one core?"""

import time

import numpy as np
import pytest

from autotune.goals import DEFAULT_GOALS, judge
from autotune.layout import clean, layout_of
from autotune.learning import predict_cycles, rows_of
from autotune.problem_spec import import_workload, problem_spec
from autotune.proposals import children
from autotune.run_settings import RunSettings
from autotune.sampling import stratified
from autotune.tuning import bounded_schedules
from compiler.lowering import System
from configs.device import load_device
from costmodel.model import train

SCHEDULES_PER_S = 1e5
DESIGNS_PER_S = 5e3
ROUNDS = 8


@pytest.mark.benchmark(timer=time.process_time)
def test_a_hundred_thousand_schedules_a_second(benchmark) -> None:
    shapes, system = import_workload("llama-3.1-8b", 1, 4096).schedulables, System(load_device("gddr6-aim"), 1)
    found = benchmark(lambda: sum(len(bounded_schedules(shape, system)[0]) for shape in shapes))
    assert found / benchmark.stats.stats.min >= SCHEDULES_PER_S


@pytest.mark.benchmark(timer=time.process_time)
def test_five_thousand_designs_a_second(benchmark) -> None:
    """Designs come as in a search, bred from good ones and new in every round: bounded, predicted and compared."""
    problem = problem_spec(RunSettings("llama"))()
    layout, rng = layout_of(problem), np.random.default_rng(0)
    known = stratified(problem, layout, rng, 400, clean(problem, problem.baselines()))
    model = train(rows_of(problem, [problem.evaluate(codes) for codes in known[:40]]), 0)
    judged: list[int] = []

    def young() -> tuple[tuple[object], dict[str, object]]:
        return (children(problem, layout, rng, known, 4000),), {}

    def screen(codes) -> None:
        judged.append(len(codes))
        judge(problem, DEFAULT_GOALS, codes, problem.metrics(codes, predict_cycles(problem, model, codes)))

    benchmark.pedantic(screen, setup=young, rounds=ROUNDS)
    benchmark.extra_info["designs"] = judged
    assert min(judged) / benchmark.stats.stats.median >= DESIGNS_PER_S
