"""What every imported model must do: become a workload, have mappings by hand, a memory plan, bounds that hold."""

from functools import cache

import numpy as np
import pytest

from autotune.decode_problem import DecodeProblem
from autotune.hand_mapping import HAND_MAPPINGS
from autotune.numerics_check import check_model
from autotune.reference_points import step_traffic
from autotune.scenario import make_scenario
from compiler.attention import AttentionShape
from compiler.memory.capacity import capacity_plan, host_bytes, stored_bytes
from compiler.memory.plan import Place
from compiler.memory.planner import plan_of
from compiler.memory.text import parse_plan, print_plan
from compiler.traffic import traffic_of
from compiler.workload import HostShape, StoredFormats
from configs.device import load_device
from configs.number_format import NumberFormat

pytest.importorskip("transformers")

MORE = ("llama", "gemma2", "qwen3_moe", "jamba", "phi3", "falcon", "olmo2")
MODELS = (
    *("gemma3_text", "gpt_oss", "deepseek_v3", "mamba2", "qwen3_next"),
    *(pytest.param(one, marks=pytest.mark.slow) for one in MORE),
)


@cache
def problem_of(model_type: str, batch: int = 1, formats: StoredFormats | None = None) -> DecodeProblem:
    from tests.imported_models import imported_workload

    workload = imported_workload(model_type, batch, formats or StoredFormats())
    return DecodeProblem(make_scenario(workload, load_device("gddr6-aim"), devices=1))


@pytest.fixture(params=MODELS)
def problem(request: pytest.FixtureRequest) -> DecodeProblem:
    return problem_of(request.param)


def test_baselines_are_legal_and_no_bound_is_beaten(problem: DecodeProblem) -> None:
    named = problem.named_baselines()
    assert set(HAND_MAPPINGS) <= set(named)
    codes = np.array(list(named.values()))
    assert problem.legal(codes).all()
    evaluations = [problem.evaluate(row) for row in codes]
    for evaluation in evaluations:
        assert all(task.cycles >= task.bound_cycles > 0 for task in evaluation.tasks)
    roofline = problem.metrics(codes, problem.bound_cycles(codes))
    assert (np.array([evaluation.metrics for evaluation in evaluations]) >= roofline * (1 - 1e-9)).all()


def test_latency_is_the_sum_of_tasks_and_fixed_work(problem: DecodeProblem) -> None:
    codes = problem.baselines()[:1]
    (evaluation,) = [problem.evaluate(row) for row in codes]
    cycles = np.array([[task.cycles for task in evaluation.tasks]])
    np.testing.assert_allclose(problem.metrics(codes, cycles)[0, 0], evaluation.latency_ns, rtol=0.05)


def test_a_memory_plan_has_a_place_for_everything(problem: DecodeProblem) -> None:
    scenario = problem.scenario
    schedules = problem.space.schedules(problem.baselines()[0])
    plan = plan_of(scenario.workload, schedules, scenario.system_of_base)
    assert parse_plan(print_plan(plan)) == plan
    fitting = capacity_plan(scenario.workload, schedules, scenario.system_of_base)
    regions = sum(region.copies * region.tensor_bytes for region in fitting.regions)
    assert regions == stored_bytes(scenario.workload)
    kept = sum(held.size for held in plan.held if held.place is Place.HOST and held.what in ("weights", "states"))
    assert kept == host_bytes(scenario.workload)


def test_what_a_step_reads_is_what_the_graph_says(problem: DecodeProblem) -> None:
    from tests.imported_models import imported_graph

    workload = problem.scenario.workload
    counted, found = traffic_of(imported_graph(workload.model)), step_traffic(workload)
    # Norms are the host's and not counted; what is worked out from parameters once may be wider than they are.
    assert found.moved_bytes == pytest.approx(
        counted.weight_bytes_per_token + counted.kv_read_bytes_per_token + _states_written(problem), rel=0.05
    )


def _states_written(problem: DecodeProblem) -> int:
    pairs = zip(problem.scenario.workload.shapes, problem.scenario.workload.multiplicities, strict=True)
    return sum(count * shape.state_bytes for shape, count in pairs if isinstance(shape, HostShape))


@pytest.mark.parametrize("model_type", ["gpt_oss", "deepseek_v3"])
def test_scheduled_shapes_pass_numerics(model_type: str) -> None:
    problem = problem_of(model_type)
    attentions = [shape for shape in problem.space.schedulables if isinstance(shape, AttentionShape)]
    checked = list(check_model(attentions[:1], problem.scenario.system_of_base, 0, 0))
    assert checked
    assert all(item.passed for item in checked)


@pytest.mark.parametrize("model_type", ["deepseek_v3", "gpt_oss", "jamba"])
def test_narrow_formats_and_several_sequences_keep_their_bounds(model_type: str) -> None:
    formats = StoredFormats(NumberFormat.INT8, NumberFormat.INT8)
    problem = problem_of(model_type, 3, formats)
    codes = problem.baselines()
    roofline = problem.metrics(codes, problem.bound_cycles(codes))
    for row, bound in zip(codes, roofline, strict=True):
        evaluation = problem.evaluate(row)
        assert all(task.cycles >= task.bound_cycles for task in evaluation.tasks)
        assert (np.array(evaluation.metrics) >= bound * (1 - 1e-9)).all()
