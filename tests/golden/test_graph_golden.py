"""Is the text of the imported tiny graphs what was looked at and agreed on?"""

from pathlib import Path

import pytest

from compiler.frontend import import_model
from compiler.graph_text import print_graph
from tests.conftest import Golden
from tests.tiny_models import CONTEXT, tiny_config


@pytest.mark.parametrize("family", ["llama", "qwen3", "mixtral"])
def test_the_graph_of_a_tiny_model_is_unchanged(family: str, golden: Golden) -> None:
    graph = import_model(tiny_config(family, num_hidden_layers=1), 2, CONTEXT)
    golden.check(Path(__file__).parent / f"tiny-{family}.graph", print_graph(graph))
