"""Is one operator of a graph, alone, a valid graph of the same operator?"""

import pytest

from compiler.frontend import import_model
from compiler.graph_text import parse_graph, print_graph
from compiler.one_operator import graph_of_task
from compiler.tasks import tasks_of
from compiler.verify import verify
from tests.tiny_models import CONTEXT, FAMILIES, tiny_config


@pytest.mark.parametrize("family", ["llama", "mixtral"])
def test_every_task_alone_is_a_valid_graph_of_that_task(family: str) -> None:
    assert family in FAMILIES
    graph = import_model(tiny_config(family), 1, CONTEXT)
    for task in tasks_of(graph).tasks:
        alone = graph_of_task(graph, task.name)
        verify(alone)
        assert parse_graph(print_graph(alone)) == alone
        (found,) = tasks_of(alone).tasks
        assert (found.kind, found.attributes, found.inputs, found.results) == (
            task.kind,
            task.attributes,
            task.inputs,
            task.results,
        )


def test_an_unknown_task_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="q_proj"):
        graph_of_task(import_model(tiny_config("llama"), 1, CONTEXT), "q_proj")
