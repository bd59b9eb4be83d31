"""Both families on one scenario: an operator that no units can run by hand is tuned, and the table says so."""

from compiler.frontend import import_model
from compiler.passes import run_passes
from compiler.tasks import tasks_of
from compiler.workload import workload_of
from experiments.two_families import HAND, TUNED, family_points, table_lines
from tests.tiny_models import tiny_config


def test_keys_too_long_for_the_registers_leave_attention_to_tuning():
    config = tiny_config("qwen3", head_dim=256)
    graph = run_passes(import_model(config, 1, 20))
    workload = workload_of(tasks_of(graph), config.name, 1, 20)
    points = {name: family_points(workload, name) for name in ("gddr6-aim", "hbm-pim")}
    assert [point.mapping for point in points["gddr6-aim"]] == [HAND, TUNED]
    assert [point.mapping for point in points["hbm-pim"]] == [f"{HAND}, but attention", TUNED]
    attention = next(task for task in points["hbm-pim"][0].tasks if task.task == "attention")
    assert attention.result_reads == 0
    assert f"hbm-pim     {HAND}, but attention" in "\n".join(table_lines(points["hbm-pim"]))
