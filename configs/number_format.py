"""The number formats of stored weights and KV caches: bits, scales and where each scale is applied.

A stored value is an element of a small grid; what it stands for is element x scale. Elements of every format have at
most 11 significant bits, so that their products with bf16 inputs are exact in fp32. A scale that all values of one
result share is the host's to multiply in; one that changes along the reduction (a `group`) lies in the row beside its
values and is the unit's. A zero point (awq-int4, gptq-int4) lies beside its group's scale; a decoder takes it off each
code, so that elements are code - zero point. `simulator.number_codes` holds the grids and the rounding to them.

Sources: AutoAWQ and GPTQModel (4-bit codes, 128 values to an fp16 scale and a 4-bit zero point); OCP Microscaling
Formats 1.0 (mxfp4: fp4 e2m1, 32 values to a power of two); NVIDIA's description of NVFP4 (fp4 e2m1, 16 values to an fp8
e4m3 scale, one fp32 scale per tensor); OCP 8-bit floating point 1.0 (e4m3); DeepSeek-V3 (fp8 in blocks of 128 x 128, a
fp32 scale each; every output keeps its own copy of its blocks' scales here).
"""

from dataclasses import dataclass
from enum import StrEnum


class NumberFormat(StrEnum):
    """What one value of a tensor is stored as."""

    BF16 = "bf16"
    FP16 = "fp16"
    INT8 = "int8"
    FP8 = "fp8"
    FP8_BLOCK = "fp8-block"
    INT4 = "int4"
    AWQ_INT4 = "awq-int4"
    GPTQ_INT4 = "gptq-int4"
    MXFP4 = "mxfp4"
    NVFP4 = "nvfp4"


@dataclass(frozen=True, slots=True)
class Storage:
    """`bits` of a value; `group` values along the reduction share a scale of `scale_bits` in the row (0: none does).

    A group with a zero point has `zero_bits` for it beside the scale.
    `host_scale` says that results are multiplied by a scale at the host: per output for weights, per token for caches.
    """

    bits: int
    group: int = 0
    scale_bits: int = 0
    host_scale: bool = False
    zero_bits: int = 0

    @property
    def group_bits(self) -> int:
        """Bits that lie in the row for each group: its scale and its zero point."""
        return self.scale_bits + self.zero_bits


STORAGE = {
    NumberFormat.BF16: Storage(16),
    NumberFormat.FP16: Storage(16),
    NumberFormat.INT8: Storage(8, host_scale=True),
    NumberFormat.FP8: Storage(8, host_scale=True),
    NumberFormat.FP8_BLOCK: Storage(8, group=128, scale_bits=32),
    NumberFormat.INT4: Storage(4, group=128, scale_bits=16),
    NumberFormat.AWQ_INT4: Storage(4, group=128, scale_bits=16, zero_bits=4),
    NumberFormat.GPTQ_INT4: Storage(4, group=128, scale_bits=16, zero_bits=4),
    NumberFormat.MXFP4: Storage(4, group=32, scale_bits=8),
    NumberFormat.NVFP4: Storage(4, group=16, scale_bits=8, host_scale=True),
}

# Formats of a KV cache. A token's K and V of one head have a scale each, which the host folds into scores and weights;
# fp8 has one scale per tensor, which costs nothing: it is part of the softmax's own factor.
CACHE_STORAGE = {
    NumberFormat.BF16: Storage(16),
    NumberFormat.FP16: Storage(16),
    NumberFormat.INT8: Storage(8, host_scale=True),
    NumberFormat.FP8: Storage(8),
    NumberFormat.INT4: Storage(4, host_scale=True),
}
INPUT_BITS = 16  # of a value in the global buffer: bf16


def accesses_per_column(storage: Storage) -> int:
    """Return into how many accesses, each of as many values as a unit has lanes, a column of bf16 width divides."""
    return INPUT_BITS // storage.bits


def stored_bytes(outputs: int, inputs: int, storage: Storage) -> int:
    """Return the bytes of a matrix of outputs x inputs with the scales and zero points that lie beside its values."""
    groups = -(-inputs // storage.group) if storage.group else 0
    return -(-outputs * (inputs * storage.bits + groups * storage.group_bits) // 8)
