"""How keys and values become each cache format; a cache is [heads, tokens, head dimension], in bf16 before.

    int8    a scale per head and token, a / 127 of the largest magnitude a, in fp32
    fp8     e4m3 with one fp32 scale, which a checkpoint may give and is 1 otherwise          vLLM, kv_cache.py
    int4    groups of 64 along the head dimension between their least l and greatest h: scale (h - l) / 15, shift -l,
            code round((x + shift) / scale), value code * scale - shift, every operation rounded to bf16; the last 128
            tokens stay in bf16      transformers, cache_utils.py, QuantizedLayer and its quanto backend (MaxOptimizer)

Transformers codes its 128 last tokens together when there are so many, so that it has from 0 to 127 of them; here 128
always stay. Its backend divides by zero where all values of a group are equal: here the scale is then 1.
"""

from dataclasses import dataclass

import numpy as np

from compiler.checkpoint.matrix import Floats
from compiler.checkpoint.quantisers import SMALLEST_FP32
from configs.errors import UserError
from configs.number_format import CACHE_STORAGE, NumberFormat
from simulator.bf16 import round_to_bf16
from simulator.number_codes import elements, round_to_elements

INT4_GROUP, INT4_RECENT = 64, 128  # transformers 5.24: q_group_size and residual_length of QuantizedLayer
MOST = 2.0**126  # two values of a group less each other are finite below it


@dataclass(frozen=True, slots=True, eq=False)
class CodedCache:
    """elements[heads, coded tokens, head dimension] with a scale and a shift of each group; `recent` is not coded.

    `scales` and `shifts` are [heads or 1, tokens or 1, groups] of `group` values each; all float32.
    """

    elements: Floats
    scales: Floats
    shifts: Floats
    group: int
    recent: Floats

    def values(self) -> Floats:
        """Return what the cache stands for: element x scale in fp32, or in bf16 arithmetic with shifts."""
        width = self.elements.shape[-1]
        scales, shifts = (np.repeat(item, self.group, axis=-1)[..., :width] for item in (self.scales, self.shifts))
        coded = self.elements * scales
        if shifts.any():
            coded = round_to_bf16(round_to_bf16(coded) - shifts)
        return np.concatenate([coded, self.recent], axis=1)


def code_cache(values: Floats, number_format: NumberFormat, tensor_scale: float = 1.0) -> CodedCache:
    """Return a cache [heads, tokens, head dimension] in a format; `tensor_scale` is that of fp8.

    Raises UserError for a format that caches do not have, and for values that are not finite or too large.
    """
    values = np.asarray(values, dtype=np.float32)
    if number_format not in CACHE_STORAGE:
        raise UserError(
            where="KV cache",
            expected=f"one of {', '.join(CACHE_STORAGE)}",
            found=str(number_format),
            way_out="choose one of these with --kv",
        )
    if not (np.abs(values) < MOST).all():
        raise UserError(
            where=f"KV cache to be stored as {number_format}",
            expected="finite values below 2^126",
            found="a NaN, an infinity or a larger value",
            way_out="check the values that were computed",
        )
    match number_format:
        case NumberFormat.INT4:
            return _int4(values)
        case NumberFormat.INT8:
            largest = np.abs(values).max(axis=2, keepdims=True, initial=0)
            limit = np.float32(elements(number_format)[-1])
            scales = np.where(largest > 0, np.maximum(largest / limit, SMALLEST_FP32), 1).astype(np.float32)
        case NumberFormat.FP8:
            scales = np.full((1, 1, 1), tensor_scale, dtype=np.float32)
        case _:
            scales = np.ones((1, 1, 1), dtype=np.float32)
    coded = round_to_elements(values / scales, number_format)
    return CodedCache(coded, scales, np.zeros_like(scales), values.shape[2], values[:, values.shape[1] :])


def coded_tokens(number_format: NumberFormat, tokens: int) -> int:
    """Return how many of a cache's tokens are coded; the newest are not in int4."""
    return max(tokens - INT4_RECENT, 0) if number_format is NumberFormat.INT4 else tokens


def _int4(values: Floats) -> CodedCache:
    old = coded_tokens(NumberFormat.INT4, values.shape[1])
    coded, recent = round_to_bf16(values[:, :old]), round_to_bf16(values[:, old:])
    heads, _, width = coded.shape
    groups = -(-width // INT4_GROUP)
    ragged = ((0, 0), (0, 0), (0, groups * INT4_GROUP - width))
    grouped = np.pad(coded, ragged, mode="edge").reshape(heads, old, groups, INT4_GROUP)
    low, high = grouped.min(axis=-1), grouped.max(axis=-1)
    span = round_to_bf16(round_to_bf16(high - low) / np.float32(15))
    scales = np.where(span > 0, span, np.float32(1))
    shifted = round_to_bf16(grouped - low[..., None])
    codes = np.clip(np.rint(round_to_bf16(shifted / scales[..., None])), 0, 15)
    return CodedCache(codes.reshape(heads, old, groups * INT4_GROUP)[..., :width], scales, -low, INT4_GROUP, recent)
