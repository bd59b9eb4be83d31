"""Do the counts of the graph equal the closed-form hand formulas, exactly?"""

import pytest

from compiler.frontend import import_model
from compiler.traffic import Traffic, traffic_of
from configs import formulas
from configs.model_config import ModelConfig, built_in_models, load_model_config
from tests.tiny_models import CONTEXT, FAMILIES, built_in_graph, tiny_config


def traffic_by_hand(config: ModelConfig, batch: int, context: int) -> Traffic:
    """Return the record for two-byte elements; the caches hold whole contexts."""
    written = 2 * formulas.kv_elements_written_per_token(config)
    return Traffic(
        parameters=formulas.parameters(config),
        weight_capacity_bytes=2 * formulas.parameters(config),
        weight_bytes_per_token=2 * formulas.weights_read_per_token(config),
        kv_capacity_bytes=batch * context * written,
        kv_read_bytes_per_token=2 * formulas.kv_elements_read_per_token(config, context),
        kv_written_bytes_per_token=written,
        flops_per_token=formulas.operations_per_token(config, context),
    )


@pytest.mark.parametrize("name", built_in_models())
def test_every_built_in_model_counts_as_by_hand(name: str) -> None:
    config = load_model_config(name)
    assert traffic_of(built_in_graph(name)) == traffic_by_hand(config, 1, 4096)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_counts_as_by_hand(family: str, batch: int) -> None:
    config = tiny_config(family)
    assert traffic_of(import_model(config, batch, CONTEXT)) == traffic_by_hand(config, batch, CONTEXT)


def test_llama_moves_fifteen_gigabytes_of_weights_and_half_a_gibibyte_of_cache() -> None:
    traffic = traffic_of(built_in_graph("llama-3.1-8b"))
    assert traffic.parameters == 8_030_261_248
    assert round(traffic.weight_bytes_per_token / 1e9, 2) == 15.01
    assert traffic.kv_read_bytes_per_token == 2**29


def test_a_window_bounds_the_cache_read_but_not_its_capacity() -> None:
    config = tiny_config("mistral")
    short, long = (traffic_of(import_model(config, 1, context)) for context in (10, 20))
    assert long.kv_read_bytes_per_token == short.kv_read_bytes_per_token
    assert long.kv_capacity_bytes == 2 * short.kv_capacity_bytes
