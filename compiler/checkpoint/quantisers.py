"""How values become each number format: the one definition of every format that `--weights` can name.

Rounding is to nearest, ties to the even code, beyond the ends to the ends; no data calibrate it (a checkpoint that AWQ
or GPTQ made with data is read, not made). Per format, of the largest magnitude a of a block, or of its least value l
and greatest h with 0 among them:

    int8        1 x K       s = a / 127 in fp32                                  what torch._weight_int8pack_mm takes
    int4        1 x 128     s = the least bf16 value above a / 7                  symmetric, codes -7..7
    awq-int4    1 x 128     s = fp16(max(h - l, 1e-5) / 15), z = -round(l / s)    AutoAWQ, quantizer.py; with 0 in range
    gptq-int4   1 x 128     s = fp16(2 a / 15), z = 8                             GPTQ, quantizer.find_params, sym
    fp8         N x K       s = a / 448 in fp32                                   DeepSeek-V3, inference/kernel.py
    fp8-block   128 x 128   s = a / 448 in fp32                                   the same
    mxfp4       1 x 32      s = 2^(floor(log2 a) - 2), from 2^-127                OCP MX 1.0, section 6.3; torchao to_mx
    nvfp4       1 x 16      t = A / (448 * 6) of the whole matrix, s = e4m3(a / 6 / t) from 2^-6; a value is
                            multiplied by (1 / t) / s, all in fp32                torchao nvfp4_quantize
"""

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from compiler.checkpoint.matrix import DecodedMatrix, Floats, whole_block
from configs.errors import UserError
from configs.number_format import STORAGE, NumberFormat
from simulator.number_codes import elements, round_to_elements, round_to_scale

FP8_BLOCK = (128, 128)  # DeepSeek-V3, README_WEIGHTS.md
SMALLEST_FP32, SMALLEST_FP16 = 2.0**-149, 2.0**-24
LEAST_AWQ_RANGE = 1e-5  # AutoAWQ, quantizer.py, pseudo_quantize_tensor
LEAST_NVFP4_SCALE = 2.0**-6  # torchao, E4M3_EPS: the smallest normal e4m3 value
LEAST_TENSOR_SCALE = 2.0**-120  # ours: keeps (1 / t) / s finite; only matrices below 2^-108 throughout see it
MX_EXPONENTS = (-127, 127)  # of e8m0


def quantise(values: Floats, number_format: NumberFormat) -> DecodedMatrix:
    """Return a matrix [outputs, inputs] rounded to a format; raises UserError for NaN and infinities."""
    values = np.asarray(values, dtype=np.float32)
    if not np.isfinite(values).all():
        raise UserError(
            where=f"weights to be stored as {number_format}",
            expected="finite values",
            found="a NaN or an infinity",
            way_out="check the checkpoint, its values are damaged",
        )
    shape = (values.shape[0], values.shape[1])
    match number_format:
        case NumberFormat.BF16 | NumberFormat.FP16:
            rounded = round_to_elements(values, number_format)
            return DecodedMatrix(rounded, np.ones((1, 1), dtype=np.float32), whole_block(shape, (0, 0)))
        case NumberFormat.INT8:
            return _scaled(values, number_format, (1, 0))
        case NumberFormat.FP8:
            return _scaled(values, number_format, (0, 0))
        case NumberFormat.FP8_BLOCK:
            return _scaled(values, number_format, FP8_BLOCK)
        case NumberFormat.INT4:
            block = (1, STORAGE[number_format].group)
            wanted = _magnitudes(values, block) / np.float32(elements(number_format)[-1])
            return _rounded(values, number_format, block, round_to_scale(wanted, number_format))
        case NumberFormat.AWQ_INT4:
            return _with_zero_points(values)
        case NumberFormat.GPTQ_INT4:
            return _around_the_middle(values)
        case NumberFormat.MXFP4:
            return _mxfp4(values)
        case NumberFormat.NVFP4:
            return _nvfp4(values)
        case _:
            assert_never(number_format)


def _scaled(values: Floats, number_format: NumberFormat, block: tuple[int, int]) -> DecodedMatrix:
    """Scale the largest magnitude of each block to the largest element; a block of zeros has a scale of 1."""
    sides = whole_block((values.shape[0], values.shape[1]), block)
    largest = _magnitudes(values, sides)
    scales = np.maximum(largest / np.float32(elements(number_format)[-1]), np.float32(SMALLEST_FP32))
    return _rounded(values, number_format, sides, np.where(largest > 0, scales, np.float32(1)))


def _with_zero_points(values: Floats) -> DecodedMatrix:
    """Codes 0..15 span the least to the greatest value of a group, and 0 is one of them."""
    block = (1, STORAGE[NumberFormat.AWQ_INT4].group)
    low, high = _extremes(values, block)
    width = np.maximum(high.astype(np.float64) - low, LEAST_AWQ_RANGE) / 15
    scales = round_to_elements(width.astype(np.float32), NumberFormat.FP16)
    zeros = np.clip(np.rint(-low / scales), 0, 15)
    return _from_codes(values, scales, zeros, block)


def _around_the_middle(values: Floats) -> DecodedMatrix:
    """Codes 0..15 stand for -8..7 times the scale."""
    block = (1, STORAGE[NumberFormat.GPTQ_INT4].group)
    largest = _magnitudes(values, block)
    rounded = round_to_elements((largest.astype(np.float64) * 2 / 15).astype(np.float32), NumberFormat.FP16)
    scales = np.where(largest > 0, np.maximum(rounded, np.float32(SMALLEST_FP16)), np.float32(1))
    return _from_codes(values, scales, np.full_like(scales, 8), block)


def _from_codes(values: Floats, scales: Floats, zeros: Floats, block: tuple[int, int]) -> DecodedMatrix:
    scale, zero = (DecodedMatrix(values, item, block).scale_of_each() for item in (scales, zeros))
    return DecodedMatrix(np.clip(np.rint(values / scale) + zero, 0, 15) - zero, scales, block)


def _mxfp4(values: Floats) -> DecodedMatrix:
    block = (1, STORAGE[NumberFormat.MXFP4].group)
    largest = _magnitudes(values, block)
    _, exponents = np.frexp(largest)  # largest = fraction * 2^exponent, fraction from 1/2
    wanted = np.where(largest > 0, exponents.astype(np.int64) - 1 - 2, MX_EXPONENTS[0])
    scales = np.ldexp(np.float32(1), np.clip(wanted, *MX_EXPONENTS)).astype(np.float32)
    return _rounded(values, NumberFormat.MXFP4, block, scales)


def _nvfp4(values: Floats) -> DecodedMatrix:
    block = (1, STORAGE[NumberFormat.NVFP4].group)
    largest = _magnitudes(values, block)
    fp4, fp8 = (np.float32(elements(item)[-1]) for item in (NumberFormat.NVFP4, NumberFormat.FP8))
    tensor = np.maximum(largest.max(initial=0) / (fp8 * fp4), np.float32(LEAST_TENSOR_SCALE))
    wanted = np.clip(largest / fp4 / tensor, np.float32(LEAST_NVFP4_SCALE), fp8)
    scales = round_to_elements(wanted, NumberFormat.FP8)
    factors = DecodedMatrix(values, (np.float32(1) / tensor) / scales, block).scale_of_each()
    return DecodedMatrix(round_to_elements(values * factors, NumberFormat.NVFP4), scales, block, float(tensor))


def _rounded(values: Floats, number_format: NumberFormat, block: tuple[int, int], scales: Floats) -> DecodedMatrix:
    scale = DecodedMatrix(values, scales, block).scale_of_each()
    return DecodedMatrix(round_to_elements(values / scale, number_format), scales, block)


def _magnitudes(values: Floats, block: tuple[int, int]) -> Floats:
    """Return the largest magnitude of each block."""
    low, high = _extremes(values, block)
    return np.maximum(-low, high)


def _extremes(values: Floats, block: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return the least and the greatest value of each block, or 0 where that is less or greater."""
    (rows, columns), (high, wide) = values.shape, block
    counts = -(-rows // high), -(-columns // wide)
    padded: NDArray[np.float32] = np.zeros((counts[0] * high, counts[1] * wide), dtype=np.float32)
    padded[:rows, :columns] = values
    blocks = padded.reshape(counts[0], high, counts[1], wide)
    return blocks.min(axis=(1, 3), initial=0), blocks.max(axis=(1, 3), initial=0)
