"""Do identical layers collapse, and can the step be put together again from the tasks?"""

import pytest

from compiler.frontend import import_model
from compiler.graph import Graph
from compiler.tasks import tasks_of
from tests.tiny_models import CONTEXT, FAMILIES, built_in_graph, tiny_config


@pytest.fixture(scope="module")
def llama() -> Graph:
    return built_in_graph("llama-3.1-8b")


def test_llama_has_exactly_these_tasks(llama: Graph) -> None:
    assert {task.name: task.multiplicity for task in tasks_of(llama).tasks} == {
        "embedding": 1,
        "rms_norm": 65,
        "qkv_proj": 32,
        "q_rotary": 32,
        "k_rotary": 32,
        "kv_append": 32,
        "attention": 32,
        "o_proj": 32,
        "residual_add": 64,
        "gate_up_proj": 32,
        "gated_activation": 32,
        "down_proj": 32,
        "lm_head": 1,
        "sample": 1,
    }


def test_the_sequence_names_the_task_of_every_operator(llama: Graph) -> None:
    graph = tasks_of(llama)
    for op, index in zip(llama.ops, graph.sequence, strict=True):
        assert (graph.tasks[index].kind, graph.tasks[index].attributes) == (op.kind, op.attributes)


def test_an_operator_depends_on_the_producers_of_its_operands(llama: Graph) -> None:
    graph = tasks_of(llama)
    for op, dependencies in zip(llama.ops, graph.dependencies, strict=True):
        produced = {result.name for index in dependencies for result in llama.ops[index].results}
        given = {value.name for value in (*llama.inputs, *llama.weights)}
        assert set(op.inputs) <= produced | given


def test_attention_waits_for_the_append_and_the_rotated_query(llama: Graph) -> None:
    graph = tasks_of(llama)
    names = [graph.tasks[index].name for index in graph.sequence]
    waits_for = graph.dependencies[names.index("attention")]
    assert sorted(names[index] for index in waits_for) == ["kv_append", "q_rotary"]


@pytest.mark.parametrize("family", FAMILIES)
def test_task_names_are_unique_and_multiplicities_add_up(family: str) -> None:
    graph = import_model(tiny_config(family), 2, CONTEXT)
    tasks = tasks_of(graph).tasks
    assert len({task.name for task in tasks}) == len(tasks)
    assert sum(task.multiplicity for task in tasks) == len(graph.ops)
    assert {task.batch for task in tasks} == {2}


def test_experts_replace_the_dense_projections_in_a_mixture() -> None:
    names = {task.name for task in tasks_of(import_model(tiny_config("mixtral"), 1, CONTEXT)).tasks}
    assert {"gate", "route", "experts"} <= names
    assert not {"gate_up_proj", "down_proj"} & names
