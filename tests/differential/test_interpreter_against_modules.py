"""Does the raised graph mean what the module computes? Teacher-forced steps in float64 from an empty cache."""

import pytest
import torch

from compiler.frontend import capture, import_model
from compiler.graph import Graph, OpKind
from compiler.interpreter import execute, next_states
from compiler.passes import PASSES, run_passes
from compiler.raising.assemble import raise_program
from configs.model_config import ModelConfig
from tests.tiny_models import CONTEXT, FAMILIES, random_model, tiny_config


def assert_steps_agree(config: ModelConfig, graph: Graph, batch: int) -> None:
    model = random_model(config)
    weights = dict(model.named_parameters(remove_duplicate=False))
    shape = (batch, config.kv_heads, CONTEXT, config.head_dim)
    keys = [torch.zeros(shape, dtype=torch.float64) for _ in range(config.layers)]
    values = [torch.zeros(shape, dtype=torch.float64) for _ in range(config.layers)]
    caches = {value.name: torch.zeros(value.type.shape) for value in graph.inputs if len(value.type.shape) == 4}
    tokens = torch.randint(config.vocabulary, (CONTEXT, batch), generator=torch.Generator().manual_seed(1))
    sample = next(op for op in graph.ops if op.kind is OpKind.SAMPLE)
    for step, ids in enumerate(tokens):
        position = torch.tensor([step])
        expected = model.logits(ids, position, keys, values)
        found = execute(graph, {"token_ids": ids, "position": position, **caches}, weights)
        torch.testing.assert_close(found[sample.inputs[0]], expected, rtol=1e-9, atol=1e-9)
        assert torch.equal(found[sample.name], expected.argmax(-1))
        caches = next_states(graph, found)
    inputs = [value.name for value in graph.inputs[2:]]
    for name, expected_cache in zip(inputs, (*keys, *values), strict=True):
        torch.testing.assert_close(caches[name], expected_cache, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_graph_of_every_family_computes_what_its_module_computes(family: str, batch: int) -> None:
    config = tiny_config(family)
    assert_steps_agree(config, import_model(config, batch, CONTEXT, "f64"), batch)


@pytest.mark.parametrize("count", range(len(PASSES) + 1))
@pytest.mark.parametrize("family", ["llama-biased", "mixtral"])
def test_every_prefix_of_the_passes_keeps_the_values(family: str, count: int) -> None:
    config = tiny_config(family)
    graph = run_passes(raise_program(capture(config, 2, CONTEXT, "f64"), "raised").graph, PASSES[:count])
    assert_steps_agree(config, graph, 2)


def test_a_window_changes_the_result_once_it_is_passed() -> None:
    windowed, full = tiny_config("mistral"), tiny_config("mistral", sliding_window=None)
    with pytest.raises(AssertionError):
        assert_steps_agree(full, import_model(windowed, 1, CONTEXT, "f64"), 1)
