"""Reads the weight of one linear layer of a checkpoint, whatever its layout, to the record of its exact values."""

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from compiler.checkpoint.floats import decode_fp8, decode_mxfp4, decode_nvfp4, e8m0_values
from compiler.checkpoint.integers import decode_awq, decode_gptq, decode_int8, decode_packed, gptq_zero_offset
from compiler.checkpoint.layouts import Layout, StoredLayer, layers_of
from compiler.checkpoint.listing import StoredTensor, list_tensors
from compiler.checkpoint.matrix import DecodedMatrix, whole_block
from compiler.checkpoint.packing import CODES_PER_WORD
from compiler.checkpoint.shapes import group_size, require_shapes
from compiler.checkpoint.tensors import read_tensor
from configs.errors import UserError
from configs.quantization import Quantization, load_quantization
from configs.quantization.record import WHOLE

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder of safetensors: its tensors, its linear layers by name, and how its settings say they are stored."""

    folder: Path
    tensors: dict[str, StoredTensor]
    layers: dict[str, StoredLayer]
    quantization: Quantization | None


def open_checkpoint(folder: Path) -> Checkpoint:
    """Return what a folder holds, from config.json and the headers of its files; raises UserError."""
    quantization = load_quantization(folder)
    tensors = list_tensors(folder)
    layers = {layer.name: layer for layer in layers_of(tensors, quantization)}
    return Checkpoint(folder, tensors, layers, quantization)


def read_layer(checkpoint: Checkpoint, name: str, expert: int | None = None) -> DecodedMatrix:
    """Return the weight [outputs, inputs] of a layer by its name, such as `model.layers.0.self_attn.q_proj`.

    Of a layer that holds the matrices of all experts, `expert` says which. Raises UserError for a name that is not
    there, and where the shapes of tensors do not fit together.
    """
    layer = checkpoint.layers.get(name)
    if layer is None:
        raise UserError(
            where=str(checkpoint.folder),
            expected="the name of a layer with a weight",
            found=repr(name),
            way_out=f"use one such as {next(iter(checkpoint.layers), 'none: the folder has no layers')}",
        )
    require_shapes(layer, checkpoint.quantization)
    return _decode(layer, checkpoint.quantization, expert)


def _decode(layer: StoredLayer, quantization: Quantization | None, expert: int | None) -> DecodedMatrix:
    def read(suffix: str) -> Array:
        found = read_tensor(layer.tensors[suffix])
        return found if expert is None else found[expert]

    def read_scale(suffix: str) -> Array:
        found = read(suffix)
        return e8m0_values(found) if found.dtype == np.uint8 else found

    match layer.layout:
        case Layout.PLAIN:
            return _plain(read(".weight"))
        case Layout.INT8:
            return decode_int8(read(".weight"), read_scale(".weight_scale"))
        case Layout.AWQ:
            qweight = read(".qweight")
            return decode_awq(qweight, read(".qzeros"), read(".scales"), group_size(quantization, len(qweight)))
        case Layout.GPTQ:
            return _gptq(layer, quantization)
        case Layout.PACKED_INT4:
            zeros = read(".weight_zero_point") if ".weight_zero_point" in layer.tensors else None
            outputs, inputs = read(".weight_shape").tolist()
            group = group_size(quantization, inputs)
            return decode_packed(read(".weight_packed"), read(".weight_scale"), zeros, (outputs, inputs), group)
        case Layout.FP8:
            suffix = ".weight_scale_inv" if ".weight_scale_inv" in layer.tensors else ".weight_scale"
            return _fp8(read(".weight"), read_scale(suffix), quantization)
        case Layout.MXFP4_BLOCKS:
            blocks = read("_blocks")
            return decode_mxfp4(blocks.reshape(*blocks.shape[:-2], -1), read("_scales"))
        case Layout.MXFP4_PACKED:
            return decode_mxfp4(read(".weight_packed"), read(".weight_scale"))
        case Layout.NVFP4:
            return decode_nvfp4(read(".weight"), read(".weight_scale"), read(".weight_scale_2").item())
        case Layout.NVFP4_PACKED:
            divisor = read(".weight_global_scale").item()
            return decode_nvfp4(read(".weight_packed"), read(".weight_scale"), 1 / divisor)
        case _:
            assert_never(layer.layout)


def _plain(weight: Array) -> DecodedMatrix:
    return DecodedMatrix(
        weight.astype(np.float32), np.ones((1, 1), dtype=np.float32), whole_block(weight.shape, (0, 0))
    )


def _gptq(layer: StoredLayer, quantization: Quantization | None) -> DecodedMatrix:
    assert quantization is not None  # the layout follows from the settings
    found = {suffix: read_tensor(tensor) for suffix, tensor in layer.tensors.items()}
    zeros = found[".qzeros"]
    offset = gptq_zero_offset(zeros, quantization.symmetric, quantization.zero_offset)
    group = group_size(quantization, len(found[".qweight"]) * CODES_PER_WORD)
    return decode_gptq(found[".qweight"], zeros, found[".scales"], found.get(".g_idx"), offset, group)


def _fp8(weight: Array, scales: Array, quantization: Quantization | None) -> DecodedMatrix:
    """Tell the block from the scales: one scale, one per output, or those of the settings."""
    outputs = weight.shape[0]
    if scales.size == 1:
        return decode_fp8(weight, scales.reshape(1, 1), (WHOLE, WHOLE))
    if prod(scales.shape) == outputs == scales.shape[0]:
        return decode_fp8(weight, scales.reshape(-1, 1), (1, WHOLE))
    assert quantization is not None  # `require_shapes` has seen that they fit its blocks
    rows, columns = whole_block(weight.shape, quantization.block)
    return decode_fp8(weight, scales.reshape(-(-outputs // rows), -1), (rows, columns))
