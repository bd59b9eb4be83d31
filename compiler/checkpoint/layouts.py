"""Which tensors make up a linear layer, what each is for, and how the layer is stored.

A tensor's name is its layer's followed by a suffix. The suffixes and element types of a layer's tensors tell the
layout; only what they leave open (the block of fp8, GPTQ's zero points) comes from the quantisation settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from compiler.checkpoint.listing import StoredTensor
from configs.errors import UserError
from configs.quantization import Method, Quantization


class Role(StrEnum):
    """What a tensor of a linear layer is for."""

    VALUES = "values"
    SCALES = "scales"
    ZERO_POINTS = "zero points"
    ORDER = "order"
    RUN_TIME = "run time"  # scales of inputs and of the cache: not weights


class Layout(StrEnum):
    """How a linear layer is stored; `integers` and `floats` say what each means."""

    PLAIN = "plain"
    INT8 = "int8"
    AWQ = "awq"
    GPTQ = "gptq"
    PACKED_INT4 = "packed int4"
    FP8 = "fp8"
    MXFP4_BLOCKS = "mxfp4 blocks"
    MXFP4_PACKED = "mxfp4 packed"
    NVFP4 = "nvfp4"
    NVFP4_PACKED = "nvfp4 packed"


# Suffix of a tensor's name -> what it is for; the longest that fits counts. Sources: `integers`, `floats`.
ROLES = {
    ".qweight": Role.VALUES,
    ".qzeros": Role.ZERO_POINTS,
    ".scales": Role.SCALES,
    ".g_idx": Role.ORDER,
    ".weight": Role.VALUES,
    ".weight_packed": Role.VALUES,
    ".weight_scale": Role.SCALES,
    ".weight_scale_inv": Role.SCALES,
    ".weight_scale_2": Role.SCALES,
    ".weight_global_scale": Role.SCALES,
    ".weight_zero_point": Role.ZERO_POINTS,
    ".weight_g_idx": Role.ORDER,
    ".weight_shape": Role.ORDER,
    "_blocks": Role.VALUES,
    "_scales": Role.SCALES,
    ".input_scale": Role.RUN_TIME,
    ".input_global_scale": Role.RUN_TIME,
    ".activation_scale": Role.RUN_TIME,
    ".k_scale": Role.RUN_TIME,
    ".v_scale": Role.RUN_TIME,
}
BY_LENGTH = sorted(ROLES, key=len, reverse=True)

# Layouts by the suffixes that must be there and the element type of the first; AWQ and GPTQ differ by the settings.
SIGNATURES = (
    (Layout.AWQ, (".qweight", ".scales", ".qzeros"), "I32", Method.AWQ),
    (Layout.GPTQ, (".qweight", ".scales", ".qzeros"), "I32", Method.GPTQ),
    (Layout.PACKED_INT4, (".weight_packed", ".weight_scale", ".weight_shape"), "I32", None),
    (Layout.NVFP4_PACKED, (".weight_packed", ".weight_scale", ".weight_global_scale"), "U8", None),
    (Layout.MXFP4_PACKED, (".weight_packed", ".weight_scale"), "U8", None),
    (Layout.NVFP4, (".weight", ".weight_scale", ".weight_scale_2"), "U8", None),
    (Layout.FP8, (".weight", ".weight_scale_inv"), "F8_E4M3", None),
    (Layout.FP8, (".weight", ".weight_scale"), "F8_E4M3", None),
    (Layout.INT8, (".weight", ".weight_scale"), "I8", None),
    (Layout.MXFP4_BLOCKS, ("_blocks", "_scales"), "U8", None),
)
PLAIN_TYPES = ("BF16", "F16", "F32")


@dataclass(frozen=True, slots=True)
class StoredLayer:
    """The tensors that share a layer's name, by suffix, and how its weight is stored."""

    name: str
    layout: Layout
    tensors: Mapping[str, StoredTensor]


def layers_of(tensors: Mapping[str, StoredTensor], quantization: Quantization | None) -> tuple[StoredLayer, ...]:
    """Return the layers of a checkpoint in its order; norms and biases are not of a layer.

    Raises UserError naming a layer whose tensors make up no layout that is known.
    """
    grouped: dict[str, dict[str, StoredTensor]] = {}
    for tensor in tensors.values():
        suffix = suffix_of(tensor.name)
        if suffix:
            grouped.setdefault(tensor.name.removesuffix(suffix), {})[suffix] = tensor
    weighted = {name: own for name, own in grouped.items() if any(ROLES[suffix] is Role.VALUES for suffix in own)}
    return tuple(StoredLayer(name, _layout(name, own, quantization), own) for name, own in weighted.items())


def suffix_of(name: str) -> str:
    """Return the suffix that says what a tensor is for; empty for one of no quantised or linear layer."""
    return next((suffix for suffix in BY_LENGTH if name.endswith(suffix)), "")


def _layout(name: str, own: Mapping[str, StoredTensor], quantization: Quantization | None) -> Layout:
    method = quantization.method if quantization else None
    for layout, suffixes, element_type, needed in SIGNATURES:
        fits = all(suffix in own for suffix in suffixes) and own[suffixes[0]].element_type == element_type
        if fits and needed in (None, method):
            return layout
    weight = own.get(".weight")
    scaled = any(ROLES[suffix] in (Role.SCALES, Role.ZERO_POINTS) for suffix in own)
    if weight is not None and weight.element_type in PLAIN_TYPES and not scaled:
        return Layout.PLAIN
    raise UserError(
        where=f"tensors of {name}",
        expected=f"a layout of {method or 'an unquantised checkpoint'}",
        found=", ".join(f"{suffix} {tensor.element_type} {list(tensor.shape)}" for suffix, tensor in own.items()),
        way_out="check that config.json is that of these files",
    )
