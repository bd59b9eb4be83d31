"""Tiny models of every decoder-only type that the installed transformers knows, to try an import without weights.

`tiny_config` shrinks a type's own default configuration (`compiler.huggingface.shrinking`), `random_model` fills it.
"""

from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from compiler.huggingface.lifting import lifted_to_float64
from compiler.huggingface.quiet import quiet
from compiler.huggingface.random_weights import copy_filled, fill
from compiler.huggingface.shrinking import shrunk
from compiler.huggingface.tiny_overrides import OVERRIDES

# Causal types that no other mapping gives away, and the one type that another mapping excludes wrongly.
EXCLUDED = {
    "bert-generation": "the decoder half of an encoder-decoder",
    "moshi": "speaks: its text stream needs the audio codes beside it",
    "musicgen": "the decoder half of a text-to-music model, over audio codes",
    "musicgen_melody": "the decoder half of a text-to-music model, over audio codes",
    "trocr": "the decoder half of an image-to-text model",
    "whisper": "the decoder half of a speech-to-text model",
}
INCLUDED = {"reformer": "also has a masked language model, but its causal one is a decoder of its own"}


def decoder_only_types() -> tuple[str, ...]:
    """Return the model types of transformers' causal mapping that are decoder-only text models, in alphabetical order.

    The rule: a type that transformers also maps to a masked language model is an encoder with a causal head; one it
    maps to a sequence-to-sequence model is half of an encoder-decoder; one it maps to an image-text or multimodal
    model is a composite, whose text part has an entry of its own. `EXCLUDED` and `INCLUDED` hold the exceptions.
    """
    others = (
        modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
    )
    elsewhere = {name for mapping in others for name in mapping} | set(EXCLUDED)
    causal = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return tuple(sorted(name for name in causal if name not in elsewhere or name in INCLUDED))


def tiny_config(model_type: str) -> PreTrainedConfig:
    """Return the default configuration of a type, shrunk to a few thousand parameters a layer with all its features."""
    kind: Any = CONFIG_MAPPING[model_type]
    with quiet():
        config: PreTrainedConfig = kind(**(shrunk(kind().to_dict()) | OVERRIDES.get(model_type, {})))
    return config


def random_model(config: PreTrainedConfig, seed: int = 0, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Return an eager model in evaluation mode with seeded random parameters of `dtype`.

    The parameters of one seed are the same float32 numbers in every `dtype`, rounded. A float64 model computes its
    tables (rotary frequencies, decays) in float64 as well, which transformers itself would not.
    """
    with quiet(), torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        single = _eager(config, torch.float32)
        fill(single, seed)
        with lifted_to_float64(dtype is torch.float64):
            model = _eager(config, dtype)
        copy_filled(single, model)
    evaluated: PreTrainedModel = model.train(False).requires_grad_(False)
    return evaluated


def _eager(config: PreTrainedConfig, dtype: torch.dtype) -> PreTrainedModel:
    factory: Any = AutoModelForCausalLM
    model: PreTrainedModel = factory.from_config(
        config, dtype=dtype, attn_implementation="eager", experts_implementation="eager"
    )
    return model
