"""Are tiny models of every type small, complete in their features and random?"""

import pytest

pytest.importorskip("transformers")

import torch
from transformers.models.auto import modeling_auto

from compiler.huggingface.shrinking import shrunk
from compiler.huggingface.tiny import decoder_only_types, random_model, tiny_config

VARIED_TYPES = ("llama", "gemma3_text", "deepseek_v3", "gpt_oss", "jamba", "mamba2", "qwen3_next", "gpt2")


def test_halves_of_encoder_decoders_and_encoders_are_left_out() -> None:
    left_out = set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - set(decoder_only_types())
    assert {"bert", "bart", "whisper", "trocr", "llama4", "gemma3"} <= left_out


def test_text_parts_of_composites_are_kept() -> None:
    assert {"llama4_text", "gemma3_text", "llama", "mamba", "reformer"} <= set(decoder_only_types())


def test_every_kind_of_layer_is_kept_once() -> None:
    fields: dict[str, object] = {
        "num_hidden_layers": 5,
        "layer_types": ["sliding", "sliding", "full", "sliding", "full"],
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse", "sparse"],
    }
    kept = shrunk(fields)
    assert kept["num_hidden_layers"] == 3
    assert kept["layer_types"] == ["sliding", "sliding", "full"]
    assert kept["mlp_layer_types"] == ["dense", "sparse", "sparse"]


def test_a_feature_that_is_off_stays_off() -> None:
    assert shrunk({"sliding_window": None, "q_lora_rank": None}) == {}


def test_latent_attention_has_as_many_key_value_heads_as_heads() -> None:
    config = tiny_config("deepseek_v3")
    assert config.num_key_value_heads == config.num_attention_heads == 4


@pytest.mark.parametrize("model_type", VARIED_TYPES)
def test_a_tiny_model_is_tiny(model_type: str) -> None:
    model = random_model(tiny_config(model_type))
    assert sum(parameter.numel() for parameter in model.parameters()) < 1_000_000


@pytest.mark.parametrize("model_type", VARIED_TYPES)
def test_no_parameter_is_constant(model_type: str) -> None:
    parameters = random_model(tiny_config(model_type)).named_parameters()
    assert [name for name, parameter in parameters if parameter.unique().numel() < parameter.numel() // 2] == []


def test_biases_of_routers_that_are_buffers_are_random() -> None:
    buffers = dict(random_model(tiny_config("deepseek_v3")).named_buffers())
    biases = [buffer for name, buffer in buffers.items() if name.endswith("e_score_correction_bias")]
    assert biases
    assert all(bias.unique().numel() > 1 for bias in biases)


def test_one_seed_gives_one_model() -> None:
    first, second = (random_model(tiny_config("gpt_oss"), seed=3).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_seed_gives_the_same_numbers_in_every_precision() -> None:
    single, double = (
        random_model(tiny_config("gpt_oss"), 3, dtype).state_dict() for dtype in (torch.float32, torch.float64)
    )
    assert all(torch.equal(single[name].double(), double[name]) for name in single)


def test_a_float64_model_has_float64_tables_of_decays() -> None:
    exact = random_model(tiny_config("minimax"), dtype=torch.float64).state_dict()
    rounded = random_model(tiny_config("minimax")).state_dict()
    name = "model.layers.1.self_attn.slope_rate"
    assert exact[name].dtype is torch.float64
    assert not torch.equal(exact[name], rounded[name].double())


def test_a_float64_model_has_float64_rotary_tables() -> None:
    table = random_model(tiny_config("llama"), dtype=torch.float64).model.rotary_emb.inv_freq
    exact = 10000.0 ** (-torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    torch.testing.assert_close(table, exact, rtol=1e-15, atol=0)
