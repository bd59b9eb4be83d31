"""bf16 values kept in float32: the upper 16 bits of a float32, rounded to nearest even.

The unit roundoffs are those of binary formats with 8, 11 and 24 significant bits: half a unit in the last place of 1.
"""

import numpy as np
from numpy.typing import NDArray

from simulator.jit import inlined

BF16_ROUNDOFF = 2.0**-8  # 8 significant bits, one of them implicit
FP16_ROUNDOFF = 2.0**-11
FP32_ROUNDOFF = 2.0**-24

Floats = NDArray[np.float32]


def round_to_bf16(values: NDArray[np.floating]) -> Floats:
    """Return float32 values rounded to nearest even bf16; finite values expected (NaN payloads are not kept)."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    upper = np.uint32(0xFFFF0000)
    rounded: Floats = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & upper).view(np.float32)
    return rounded


def is_bf16(values: NDArray[np.float32]) -> bool:
    """Return whether every value is finite and has an exact bf16 form."""
    lower = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFF)
    return bool(np.isfinite(values).all()) and not lower.any()


def is_fp16(values: NDArray[np.float32]) -> bool:
    """Return whether every value is finite and has an exact fp16 form."""
    limit = np.finfo(np.float16).max
    return bool((np.abs(values) <= limit).all()) and bool((values.astype(np.float16) == values).all())


@inlined
def rounded_bits(bits: np.uint32) -> np.uint32:
    """Return the bits of one float32 value rounded to nearest even bf16, for compiled code."""
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return np.uint32((bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000))
