"""A small model that still has several layers, grouped queries and ragged tiles, made ready for searches."""

from functools import cache

from autotune.decode_problem import DecodeProblem
from autotune.problem_spec import ProblemSpec
from autotune.scenario import make_scenario
from compiler.frontend import import_model
from compiler.passes import run_passes
from compiler.tasks import tasks_of
from compiler.workload import BF16_THROUGHOUT, StoredFormats, Workload, workload_of
from configs.device import Device, load_device
from tests.tiny_models import tiny_config

SIZES = {
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 3000,
    "max_position_embeddings": 4096,
}


@cache
def small_workload(
    family: str = "llama",
    batch: int = 1,
    context: int = 700,
    formats: StoredFormats = BF16_THROUGHOUT,
    queries: int = 1,
) -> Workload:
    config = tiny_config(family, **SIZES)
    graph = run_passes(import_model(config, batch * queries, context))
    return workload_of(tasks_of(graph), config.name, batch, context, formats, queries)


def small_spec(base: Device | None = None, **restrictions: tuple[int | str, ...]) -> ProblemSpec:
    return ProblemSpec(small_workload(), base or load_device("gddr6-aim"), 1, restrictions)


def small_problem(
    family: str = "llama",
    batch: int = 1,
    base: Device | None = None,
    formats: StoredFormats = BF16_THROUGHOUT,
    context: int = 700,
    queries: int = 1,
) -> DecodeProblem:
    workload = small_workload(family, batch, context, formats, queries)
    return DecodeProblem(make_scenario(workload, base or load_device("gddr6-aim"), devices=1))
