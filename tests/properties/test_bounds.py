"""Closed forms against simulation, over random legal designs on random devices: bounds hold and counts are exact."""

from dataclasses import replace

import numpy as np
import pytest

from autotune.layout import clean, layout_of
from autotune.sampling import stratified
from compiler.lowering import lower_steps
from compiler.workload import StoredFormats
from configs.device import load_device
from configs.knobs import base_knobs
from configs.number_format import NumberFormat
from configs.refresh import Refresh, RefreshPolicy
from simulator.isa import CODE_OF, Kind
from simulator.laws.device import scaled_device
from simulator.timeline import StepSimulator
from tests.small_workloads import small_problem

COUNTED = (
    Kind.SCALE16,
    Kind.MAC16,
    Kind.MACL16,
    Kind.LATCH16,
    Kind.WRGB,
    Kind.WRMAC16,
    Kind.RDMAC16,
    Kind.TMOD,
    Kind.WRA16,
    Kind.WR,
)


def _designs(problem, count, seed=0):
    rng = np.random.default_rng(seed)
    donors = clean(problem, problem.baselines())
    designs = stratified(problem, layout_of(problem), rng, 4 * count, donors)
    return designs[rng.permutation(len(designs))[:count]]


NARROW = StoredFormats(NumberFormat.MXFP4, NumberFormat.INT4)
PROBLEMS = {
    "llama": {},
    "llama, batch 3": {"batch": 3},
    "mixtral": {"family": "mixtral"},
    "mixtral, batch 4": {"family": "mixtral", "batch": 4},
    "int8 and fp8": {"formats": StoredFormats(NumberFormat.INT8, NumberFormat.FP8), "context": 4000},
    "mxfp4 and int4, 3 queries": {"formats": NARROW, "context": 4000, "queries": 3},
    "awq-int4 and int8": {"formats": StoredFormats(NumberFormat.AWQ_INT4, NumberFormat.INT8), "context": 4000},
}


@pytest.fixture(scope="module", params=PROBLEMS.values(), ids=PROBLEMS)
def evaluated(request):
    problem = small_problem(**request.param)
    designs = _designs(problem, 40)
    return problem, designs, [problem.evaluate(design) for design in designs]


def test_no_task_beats_its_lower_bound(evaluated):
    _, _, evaluations = evaluated
    for evaluation in evaluations:
        for task in evaluation.tasks:
            assert task.cycles >= task.bound_cycles, task


def test_no_design_beats_its_roofline_in_any_objective(evaluated):
    problem, designs, evaluations = evaluated
    roofline = problem.metrics(designs, problem.bound_cycles(designs))
    measured = np.array([evaluation.metrics for evaluation in evaluations])
    assert (measured >= roofline * (1 - 1e-9)).all()


def test_latency_is_the_sum_of_its_tasks_and_the_fixed_work(evaluated):
    problem, designs, evaluations = evaluated
    cycles = np.array([[task.cycles for task in evaluation.tasks] for evaluation in evaluations])
    latency_ns = problem.metrics(designs, cycles)[:, 0]
    measured = np.array([evaluation.latency_ns for evaluation in evaluations])
    np.testing.assert_allclose(latency_ns, measured, rtol=0.05)


REFRESH = [
    Refresh(policy=RefreshPolicy.NONE),
    Refresh(temperature_c=95),
    Refresh(postponed=4),
    Refresh(policy=RefreshPolicy.PER_BANK),
]


@pytest.mark.parametrize("refresh", REFRESH, ids=["none", "hot", "postponed", "per-bank"])
def test_no_refresh_policy_beats_the_lower_bounds(refresh):
    problem = small_problem(base=load_device("gddr6-aim").model_copy(update={"refresh": refresh}))
    designs = _designs(problem, 25, seed=2)
    evaluations = [problem.evaluate(design) for design in designs]
    assert all(task.cycles >= task.bound_cycles for evaluation in evaluations for task in evaluation.tasks)
    roofline = problem.metrics(designs, problem.bound_cycles(designs))
    measured = np.array([evaluation.metrics for evaluation in evaluations])
    assert (measured >= roofline * (1 - 1e-9)).all()


SLOW_UNITS = {
    "channels": 8,
    "banks_per_channel": 64,
    "rows_per_subarray": 1024,
    "column_bytes": 128,
    "lanes": 8,
    "mac_power_cap_percent": 25,
}


def test_refresh_hides_behind_multiplies_that_are_further_apart_than_rows():
    """Closing, refreshing and opening the row again takes less beside such a multiply than a refresh does."""
    attacc = load_device("attacc")
    slow = scaled_device(attacc, replace(base_knobs(attacc), **SLOW_UNITS))
    timing = slow.timing
    assert timing["nCCDMAC"] > 2 * (timing["nRTP"] + timing["nRP"] + timing["nRCDRDMAC"])
    problem = small_problem(base=slow, context=4000)
    evaluations = [problem.evaluate(design) for design in problem.baselines()]
    assert all(task.cycles >= task.bound_cycles for evaluation in evaluations for task in evaluation.tasks)


@pytest.mark.parametrize("name", ["llama", "llama, batch 3", "int8 and fp8", "mxfp4 and int4, 3 queries"])
def test_closed_form_counts_are_those_of_the_simulated_step(name):
    problem = small_problem(**PROBLEMS[name])
    for design in _designs(problem, 25, seed=1):
        system = problem.scenario.system(design)
        (step,) = lower_steps(problem.scenario.workload, problem.space.schedules(design), system, ((),))
        counts = StepSimulator(system.device).run(step).counts
        expected = problem.commands(design[None, :])[0]
        for kind in COUNTED:
            assert counts[CODE_OF[kind]] == pytest.approx(expected[CODE_OF[kind]], rel=1e-9), kind
