"""Small random models of every family, structured like the real ones: grouped queries, two layers, a short context."""

from functools import cache

import torch

from compiler.architectures import LanguageModel
from compiler.frontend import import_model
from compiler.graph import Graph
from configs.json_fields import JsonFields
from configs.model_config import ModelConfig, load_model_config, parse_model_config

CONTEXT = 20

LLAMA3_SCALING = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

BASE = {
    "hidden_act": "silu",
    "hidden_size": 32,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100.0,
    "vocab_size": 50,
}

# One entry a structure that differs; the window of 6 is passed well before the context of 20.
FAMILIES: dict[str, dict[str, object]] = {
    "llama": {"model_type": "llama", "rope_scaling": LLAMA3_SCALING},
    "llama-tied": {"model_type": "llama", "tie_word_embeddings": True, "num_key_value_heads": 4},
    "llama-biased": {"model_type": "llama", "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1},
    "mistral": {"model_type": "mistral", "sliding_window": 6},
    "qwen3": {"model_type": "qwen3", "head_dim": 16},
    "mixtral": {"model_type": "mixtral", "sliding_window": None, "num_local_experts": 4, "num_experts_per_tok": 2},
}


def raw_config(family: str, **changes: object) -> dict[str, object]:
    """Return the HuggingFace-style configuration of a tiny model."""
    return {**BASE, **FAMILIES[family], **changes}


def tiny_config(family: str, **changes: object) -> ModelConfig:
    """Return the checked configuration of a tiny model."""
    return parse_model_config(JsonFields("tiny", raw_config(family, **changes)), f"tiny-{family}")


@cache
def built_in_graph(name: str) -> Graph:
    """Return the graph of a full-size built-in model at batch 1 and context 4096, imported once for all tests."""
    return import_model(load_model_config(name), 1, 4096)


def random_model(config: ModelConfig, seed: int = 0) -> LanguageModel:
    """Return a model with random float64 parameters, norms and biases included."""
    generator = torch.Generator().manual_seed(seed)
    model = LanguageModel(config).to(torch.float64).requires_grad_(False)
    for parameter in model.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.3)
    return model
