"""The measured decode layer computes what the layer of the model families does; readings of power are told apart."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from compiler.architectures import Attention, FeedForward, Layer, visible_slots
from configs.model_config import load_model_config
from experiments.gpu_decode import (
    LayerWeights,
    decode_layer,
    power_readings,
    random_layer,
    random_state,
)
from tests.tiny_models import tiny_config

CONTEXT = 20


def _plain_layer(config, weights: LayerWeights) -> Layer:
    layer = Layer(config).to(torch.float64).requires_grad_(False)
    attention, feed_forward = layer.self_attn, layer.mlp
    assert isinstance(attention, Attention)
    assert isinstance(feed_forward, FeedForward)
    kv = config.kv_heads * config.head_dim
    query, key, value = weights.qkv.split((config.heads * config.head_dim, kv, kv))
    gate, up = weights.gate_up.chunk(2)
    layer.input_layernorm.weight.copy_(weights.input_norm)
    layer.post_attention_layernorm.weight.copy_(weights.feed_forward_norm)
    for linear, weight in (
        (attention.q_proj, query),
        (attention.k_proj, key),
        (attention.v_proj, value),
        (attention.o_proj, weights.output),
        (feed_forward.gate_proj, gate),
        (feed_forward.up_proj, up),
        (feed_forward.down_proj, weights.down),
    ):
        linear.weight.copy_(weight)
    return layer


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("family", ["llama", "llama-tied"])
def test_the_layer_equals_the_plain_one(family, batch):
    config = tiny_config(family)
    generator = torch.Generator().manual_seed(1)
    weights = random_layer(config, generator, torch.float64)
    state = random_state(config, batch, CONTEXT, generator, torch.float64)
    x = torch.randn(batch, config.hidden, generator=generator, dtype=torch.float64)
    keys, values = state.keys.clone(), state.values.clone()
    position = torch.tensor([CONTEXT - 1])
    visible = visible_slots(position, CONTEXT, None)
    expected = _plain_layer(config, weights)(x, position, (state.cosine, state.sine), visible, keys, values)
    torch.testing.assert_close(decode_layer(x, weights, state, config), expected)
    torch.testing.assert_close(state.keys, keys)
    torch.testing.assert_close(state.values, values)


def test_another_token_in_the_cache_changes_the_result():
    config = tiny_config("llama")
    generator = torch.Generator().manual_seed(1)
    weights = random_layer(config, generator, torch.float64)
    state = random_state(config, 1, CONTEXT, generator, torch.float64)
    x = torch.randn(1, config.hidden, generator=generator, dtype=torch.float64)
    before = decode_layer(x, weights, state, config)
    other = replace(state, values=state.values.clone())
    other.values[:, :, 0] += 1
    assert not torch.allclose(before, decode_layer(x, weights, other, config))


def test_a_layer_of_llama_reads_as_many_bytes_as_its_matrices_have():
    config = load_model_config("llama")
    with torch.device("meta"):
        shapes = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]
        matrices = [torch.empty(shape, dtype=torch.bfloat16) for shape in shapes]
        norm = torch.empty(config.hidden, dtype=torch.bfloat16)
    weights = LayerWeights(norm, matrices[0], matrices[1], norm, matrices[2], matrices[3])
    assert weights.bytes == 2 * (6144 * 4096 + 4096 * 4096 + 28672 * 4096 + 4096 * 14336 + 2 * 4096)


def test_readings_that_are_no_numbers_are_left_out():
    assert power_readings("211.5\n[N/A]\n\n213\n") == [211.5, 213.0]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA GPU")
def test_without_a_gpu_it_says_so_and_ends_with_1(tmp_path):
    command = [sys.executable, "-m", "experiments.gpu_decode", "--json", str(tmp_path / "table.json")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "no CUDA GPU" in ended.stderr
    assert not (tmp_path / "table.json").exists()
