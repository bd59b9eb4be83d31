"""Tiny checkpoint folders, written through the safetensors library; tests that use them skip where it is missing."""

import json
from pathlib import Path
from typing import Any

import torch


def write_checkpoint(
    folder: Path, tensors: dict[str, torch.Tensor], settings: dict[str, Any] | None = None, shards: int = 1
) -> Path:
    """Write config.json and the tensors, in one file or dealt to several with an index."""
    from safetensors.torch import save_file

    config = {"model_type": "llama"} | ({"quantization_config": settings} if settings else {})
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return folder
    places = {
        name: f"model-{number % shards + 1:05d}-of-{shards:05d}.safetensors" for number, name in enumerate(tensors)
    }
    for place in set(places.values()):
        save_file({name: tensors[name] for name in tensors if places[name] == place}, folder / place)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}), encoding="utf-8")
    return folder


def words(*shape: int) -> torch.Tensor:
    """Return 32-bit words of random codes."""
    return torch.randint(-(2**31), 2**31, shape, generator=torch.Generator().manual_seed(1)).to(torch.int32)


def bytes_of(*shape: int, most: int = 120) -> torch.Tensor:
    """Return random bytes; up to 120 they are finite and positive as e4m3."""
    return torch.randint(1, most, shape, generator=torch.Generator().manual_seed(2)).to(torch.uint8)


AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "ignore": ["lm_head"]}
MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}


def awq_layer(name: str, inputs: int = 256, outputs: int = 16, group: int = 128) -> dict[str, torch.Tensor]:
    """Return the tensors of one layer as AutoAWQ stores them."""
    groups = -(-inputs // group)
    return {
        f"{name}.qweight": words(inputs, outputs // 8),
        f"{name}.qzeros": words(groups, outputs // 8),
        f"{name}.scales": torch.rand(groups, outputs).half(),
    }


def gptq_layer(name: str, stored_zero: int, inputs: int = 256, outputs: int = 16) -> dict[str, torch.Tensor]:
    """Return the tensors of one layer as GPTQModel stores them, with one zero point throughout."""
    zeros = int.from_bytes(bytes([stored_zero * 0x11] * 4), "little", signed=True)
    return {
        f"{name}.qweight": words(inputs // 8, outputs),
        f"{name}.qzeros": torch.full((inputs // 128, outputs // 8), zeros, dtype=torch.int32),
        f"{name}.scales": torch.rand(inputs // 128, outputs).half(),
        f"{name}.g_idx": (torch.arange(inputs) // 128).int(),
    }
