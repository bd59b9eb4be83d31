"""Bytes of stored weights and caches by what they are for: values, scales, zero points, everything else."""

from dataclasses import dataclass

from compiler.checkpoint.cache import INT4_GROUP, INT4_RECENT, coded_tokens
from compiler.checkpoint.matrix import whole_block
from compiler.checkpoint.quantisers import FP8_BLOCK
from configs.number_format import CACHE_STORAGE, STORAGE, NumberFormat

FP32_BYTES, BF16_BYTES = 4, 2


@dataclass(frozen=True, slots=True)
class PartBytes:
    """Bytes of a matrix, a cache or a checkpoint; `other` are orders of inputs and scales of inputs and caches."""

    values: int = 0
    scales: int = 0
    zero_points: int = 0
    other: int = 0

    def __add__(self, more: "PartBytes") -> "PartBytes":
        """Return the sums of both, part by part."""
        return PartBytes(
            self.values + more.values,
            self.scales + more.scales,
            self.zero_points + more.zero_points,
            self.other + more.other,
        )

    @property
    def total(self) -> int:
        """All bytes."""
        return self.values + self.scales + self.zero_points + self.other


def weight_bytes(outputs: int, inputs: int, number_format: NumberFormat) -> PartBytes:
    """Return the bytes of one matrix as `quantisers` defines its format, as files store it."""
    storage = STORAGE[number_format]
    values = -(-outputs * inputs * storage.bits // 8)
    match number_format:
        case NumberFormat.BF16 | NumberFormat.FP16:
            return PartBytes(values)
        case NumberFormat.INT8:
            return PartBytes(values, outputs * FP32_BYTES)
        case NumberFormat.FP8:
            return PartBytes(values, FP32_BYTES)
        case NumberFormat.FP8_BLOCK:
            high, wide = whole_block((outputs, inputs), FP8_BLOCK)
            return PartBytes(values, -(-outputs // high) * -(-inputs // wide) * FP32_BYTES)
    groups = outputs * -(-inputs // storage.group)
    tensor = FP32_BYTES if storage.host_scale else 0
    return PartBytes(values, groups * storage.scale_bits // 8 + tensor, -(-groups * storage.zero_bits // 8))


def cache_bytes(heads: int, tokens: int, head_dim: int, number_format: NumberFormat) -> PartBytes:
    """Return the bytes of keys, or of values, of one layer and sequence, as `cache` defines the format."""
    coded = coded_tokens(number_format, tokens)
    values = -(-heads * coded * head_dim * CACHE_STORAGE[number_format].bits // 8)
    match number_format:
        case NumberFormat.INT4:
            groups = heads * coded * -(-head_dim // INT4_GROUP) * BF16_BYTES
            recent = heads * min(tokens, INT4_RECENT) * head_dim * BF16_BYTES
            return PartBytes(values + recent, groups, groups)
        case NumberFormat.INT8:
            return PartBytes(values, heads * tokens * FP32_BYTES)
        case NumberFormat.FP8:
            return PartBytes(values, FP32_BYTES)
    return PartBytes(values)
