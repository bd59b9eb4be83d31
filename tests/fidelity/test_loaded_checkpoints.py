"""Does transformers, given the same folder, load the weights that are read from it here?"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from compiler.checkpoint.quantisers import quantise
from compiler.checkpoint.reading import open_checkpoint, read_layer
from configs.number_format import NumberFormat
from tests.tiny_checkpoints import FP8, MXFP4

transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")
pytest.importorskip("accelerate")  # transformers loads nothing quantised without it
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "vocab_size": 64}


def loaded(folder: Path, config: Any, tensors: dict[str, torch.Tensor], settings: dict[str, Any]) -> Any:
    """Write a checkpoint and return transformers' model of it, dequantised to fp32 for want of a GPU."""
    kept = config.to_dict() | {"quantization_config": settings, "dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")
    safetensors_torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def test_fp8_blocks_of_ours_load_as_they_are_read(tmp_path: Path) -> None:
    config = transformers.LlamaConfig(hidden_size=256, intermediate_size=384, head_dim=64, **HEADS)
    tensors = {}
    for name, value in transformers.AutoModelForCausalLM.from_config(config).state_dict().items():
        tensors[name] = value.to(torch.bfloat16).contiguous()
        if name.endswith("proj.weight"):
            found = quantise(value.float().numpy(), NumberFormat.FP8_BLOCK)
            tensors[name] = torch.tensor(found.elements).to(torch.float8_e4m3fn)
            tensors[f"{name}_scale_inv"] = torch.tensor(found.scales)
    model = loaded(tmp_path, config, tensors, FP8)
    checkpoint = open_checkpoint(tmp_path)
    projections = [name for name in tensors if name.endswith("proj.weight")]
    assert len(projections) == 7
    for name in projections:
        found = read_layer(checkpoint, name.removesuffix(".weight")).values_float32()
        assert np.array_equal(found, model.state_dict()[name].numpy()), name


def test_experts_of_gpt_oss_load_as_they_are_read(tmp_path: Path) -> None:
    config = transformers.GptOssConfig(
        hidden_size=64, intermediate_size=96, head_dim=16, num_local_experts=4, num_experts_per_tok=2, **HEADS
    )
    generator, tensors, experts = torch.Generator().manual_seed(1), {}, []
    for name, value in transformers.AutoModelForCausalLM.from_config(config).state_dict().items():
        if not name.endswith(("gate_up_proj", "down_proj")):
            tensors[name] = value.to(torch.bfloat16).contiguous()
            continue
        count, inputs, outputs = value.shape
        experts.append(name)
        blocks = torch.randint(0, 256, (count, outputs, inputs // 32, 16), generator=generator)
        tensors[f"{name}_blocks"] = blocks.to(torch.uint8)
        tensors[f"{name}_scales"] = torch.randint(118, 128, blocks.shape[:-1], generator=generator).to(torch.uint8)
    model = loaded(tmp_path, config, tensors, MXFP4)
    checkpoint = open_checkpoint(tmp_path)
    assert len(experts) == 2
    for name in experts:
        for expert, expected in enumerate(model.state_dict()[name]):
            assert np.array_equal(read_layer(checkpoint, name, expert).values_float32().T, expected.numpy())
