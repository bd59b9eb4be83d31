"""A small model that still has several layers, grouped queries and ragged tiles, made ready for searches."""

from functools import cache

from autotune.decode_problem import DecodeProblem
from autotune.problem_spec import ProblemSpec
from autotune.scenario import make_scenario
from compiler.frontend import import_model
from compiler.passes import run_passes
from compiler.tasks import tasks_of
from compiler.workload import Workload, workload_of
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
def small_workload(family: str = "llama", batch: int = 1, context: int = 700) -> Workload:
    config = tiny_config(family, **SIZES)
    return workload_of(tasks_of(run_passes(import_model(config, batch, context))), config.name, batch, context)


def small_spec(base: Device | None = None, **restrictions: tuple[int | str, ...]) -> ProblemSpec:
    return ProblemSpec(small_workload(), base or load_device("gddr6-aim"), 1, restrictions)


def small_problem(family: str = "llama", batch: int = 1, base: Device | None = None) -> DecodeProblem:
    scenario = make_scenario(small_workload(family, batch), base or load_device("gddr6-aim"), devices=1)
    return DecodeProblem(scenario)
