"""Elements of every number format as float32, and the rounding of real tensors to elements and scales.

`elements` is the one definition of each grid, `code_values` gives what each bit pattern stands for, from that grid.
Values are rounded to the nearest element, ties to the even one. Elements of the formats with zero points are code -
zero point: codes are 0..15, zero points 0..15, or 1..16 in the older GPTQ files, which store one less.
`compiler.checkpoint` has the definition of each format as a whole: which scale a block gets, and how files store it.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from configs.number_format import STORAGE, NumberFormat
from simulator.bf16 import round_to_bf16

Floats = NDArray[np.float32]

FP4_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
FP8_LARGEST = 448.0
INTEGER_RANGES = {
    NumberFormat.INT8: (-127, 127),
    NumberFormat.INT4: (-7, 7),
    NumberFormat.AWQ_INT4: (-15, 15),
    NumberFormat.GPTQ_INT4: (-16, 15),
}
LOWEST_FP8_SCALE = 2.0**-9  # the smallest e4m3 value above zero


@lru_cache
def elements(number_format: NumberFormat) -> Floats:
    """Return every element of a format of up to 8 bits, in rising order (-0 and NaN codes left out)."""
    match number_format:
        case NumberFormat.INT8 | NumberFormat.INT4 | NumberFormat.AWQ_INT4 | NumberFormat.GPTQ_INT4:
            lowest, highest = INTEGER_RANGES[number_format]
            return np.arange(lowest, highest + 1, dtype=np.float32)
        case NumberFormat.FP8 | NumberFormat.FP8_BLOCK:
            return _mirrored(_fp8_magnitudes())
        case NumberFormat.MXFP4 | NumberFormat.NVFP4:
            return _mirrored(np.array(FP4_MAGNITUDES, dtype=np.float32))
        case NumberFormat.BF16 | NumberFormat.FP16:
            raise ValueError(f"{number_format}: its elements are not listed, they are rounded to")


@lru_cache
def code_values(number_format: NumberFormat) -> Floats:
    """Return what every code of an fp8 or fp4 format stands for, -0 and NaN included; codes are sign and magnitude."""
    grid = elements(number_format)
    magnitudes = grid[len(grid) // 2 :]
    half = np.full(1 << (STORAGE[number_format].bits - 1), np.nan, dtype=np.float32)
    half[: len(magnitudes)] = magnitudes
    return np.concatenate([half, -half])


def round_to_elements(values: Floats, number_format: NumberFormat) -> Floats:
    """Return the nearest elements; ties go to the even one, values beyond the ends to the ends."""
    match number_format:
        case NumberFormat.BF16:
            return round_to_bf16(values)
        case NumberFormat.FP16:
            limit = np.float32(np.finfo(np.float16).max)
            return np.clip(values, -limit, limit).astype(np.float16).astype(np.float32)
    grid = elements(number_format)
    above = np.clip(np.searchsorted(grid, values), 1, len(grid) - 1)
    low, high = grid[above - 1], grid[above]
    middle = (low + high) / 2
    zero = len(grid) // 2
    upper = (values > middle) | ((values == middle) & ((above - zero) % 2 == 0))
    return np.where(upper, high, low).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Quantised:
    """A matrix as devices store it: elements[n, k], scales[n, groups] (float32), and one host scale per output or 1."""

    elements: Floats
    scales: Floats
    host_scale: Floats

    def dequantised(self, group: int) -> NDArray[np.float64]:
        """Return what the matrix stands for: element x group scale x host scale, exactly, in fp64."""
        values = self.elements.astype(np.float64) * self.host_scale.astype(np.float64)[:, None]
        if group:
            values *= np.repeat(self.scales.astype(np.float64), group, axis=1)[:, : values.shape[1]]
        return values


def round_to_scale(wanted: Floats, number_format: NumberFormat) -> Floats:
    """Return scales of a group format that are as large as wanted, or the next larger: no element is cut off."""
    match number_format:
        case NumberFormat.MXFP4:
            return np.exp2(np.ceil(np.log2(_nonzero(wanted)))).astype(np.float32)
        case NumberFormat.NVFP4:
            grid = elements(NumberFormat.FP8)
            grid = grid[grid >= LOWEST_FP8_SCALE]
            return grid[np.minimum(np.searchsorted(grid, wanted), len(grid) - 1)]
        case NumberFormat.INT4:
            return _nonzero(round_to_bf16(wanted * np.float32(1 + 2.0**-8)))
        case NumberFormat.AWQ_INT4 | NumberFormat.GPTQ_INT4:
            return _nonzero(round_to_elements(wanted * np.float32(1 + 2.0**-10), NumberFormat.FP16))
    return _nonzero(wanted)


def _fp8_magnitudes() -> Floats:
    """Return 0 and all magnitudes of e4m3: exponents 1 to 15 with bias 7, subnormals below, 448 the largest."""
    subnormal = np.arange(8) / 8 * 2.0**-6
    normal = (1 + np.arange(8) / 8)[None, :] * np.exp2(np.arange(1, 16) - 7.0)[:, None]
    magnitudes = np.concatenate([subnormal, normal.ravel()])
    return magnitudes[magnitudes <= FP8_LARGEST].astype(np.float32)


def _mirrored(magnitudes: Floats) -> Floats:
    return np.concatenate([-magnitudes[:0:-1], magnitudes])


def _nonzero(scales: NDArray[np.floating]) -> Floats:
    """Return scales with 1 in place of 0: a block of zeros is zeros whatever its scale."""
    return np.where(scales > 0, scales, 1).astype(np.float32)
