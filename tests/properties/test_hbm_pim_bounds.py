"""Closed forms of HBM-PIM against simulation, over random legal designs: bounds hold and counts are exact."""

import numpy as np
import pytest

from autotune.device_bounds import device_bounds
from autotune.layout import clean, layout_of
from autotune.sampling import stratified
from compiler.lowering import lower_steps
from configs.device import load_device
from simulator.isa import CODE_OF, Kind
from simulator.timeline import StepSimulator
from tests.small_workloads import small_problem

COUNTED = (Kind.ACT8, Kind.PRE8, Kind.RD8, Kind.WR8, Kind.ST8, Kind.WR)
SMALL = {"channels": 4, "rows": 2048}
PROBLEMS = {"one sequence": {}, "batch 3": {"batch": 3}}


def _problem(**arguments):
    device = load_device("hbm-pim")
    organisation = device.organisation.model_copy(update=SMALL)
    return small_problem(base=device.model_copy(update={"organisation": organisation}), **arguments)


def _designs(problem, count, seed=0):
    rng = np.random.default_rng(seed)
    donors = clean(problem, problem.baselines())
    designs = stratified(problem, layout_of(problem), rng, 4 * count, donors)
    return designs[rng.permutation(len(designs))[:count]]


@pytest.fixture(scope="module", params=PROBLEMS.values(), ids=PROBLEMS)
def evaluated(request):
    problem = _problem(**request.param)
    designs = _designs(problem, 25)
    return problem, designs, [problem.evaluate(design) for design in designs]


def test_there_are_designs_with_other_hardware_and_schedules(evaluated):
    problem, designs, _ = evaluated
    varied = {knob.label for index, knob in enumerate(problem.knobs) if len(set(designs[:, index].tolist())) > 1}
    assert {"channels", "host_link"} <= varied
    assert any(label.endswith("preactivate") for label in varied)
    assert not any(label.endswith(("segment_columns", "accumulators", "lanes")) for label in varied)


def test_no_task_beats_its_own_bound_nor_that_of_all_schedules(evaluated):
    problem, designs, evaluations = evaluated
    bounds = device_bounds(problem, designs)
    for index, evaluation in enumerate(evaluations):
        for task in evaluation.tasks:
            assert task.cycles >= task.bound_cycles, task
            least = np.broadcast_to(bounds[task.task].cycles, (len(designs),))[index]
            assert task.cycles >= least, (task, least)


def test_no_design_beats_its_roofline_in_any_objective(evaluated):
    problem, designs, evaluations = evaluated
    roofline = problem.metrics(designs, problem.bound_cycles(designs))
    measured = np.array([evaluation.metrics for evaluation in evaluations])
    assert (measured >= roofline * (1 - 1e-9)).all()


def test_closed_form_counts_are_those_of_the_simulated_step(evaluated):
    problem, designs, _ = evaluated
    for design in designs[:12]:
        system = problem.scenario.system(design)
        (step,) = lower_steps(problem.scenario.workload, problem.space.schedules(design), system, ((),))
        counts = StepSimulator(system.device).run(step).counts
        expected = problem.commands(design[None, :])[0]
        for kind in COUNTED:
            assert counts[CODE_OF[kind]] == pytest.approx(expected[CODE_OF[kind]], rel=1e-9), kind
