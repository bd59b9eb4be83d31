"""Decoders of floating-point weights: fp8 per tensor, output or block, mxfp4 and nvfp4.

Shapes (K inputs, N outputs):

    fp8         weight[N, K] e4m3; weight_scale_inv (or weight_scale) one, [N, 1], or [N/b, K/c] of blocks b x c with
                ragged last ones; fp32, or e8m0 codes: w = q * scale (DeepSeek-V3, README_WEIGHTS.md)
    mxfp4       blocks[..., N, K/32, 16] of two codes a byte, scales[..., N, K/32] e8m0 (GPT-OSS), or the same as
                weight_packed[N, K/2] and weight_scale[N, K/32] (compressed-tensors)
    nvfp4       weight[N, K/2] of two codes a byte, weight_scale[N, K/16] e4m3, weight_scale_2 fp32, which multiplies
                (ModelOpt); weight_packed and weight_global_scale, which divides (compressed-tensors)
"""

import numpy as np

from compiler.checkpoint.matrix import DecodedMatrix, Floats, whole_block
from compiler.checkpoint.packing import Codes, unpack_bytes
from configs.number_format import STORAGE, NumberFormat
from simulator.number_codes import code_values

E8M0_BIAS, E8M0_NAN = 127, 255  # OCP MX 1.0, section 5.4.1: 2^(code - 127), no zero, no infinity


def e8m0_values(codes: Codes) -> Floats:
    """Return the powers of two that e8m0 codes stand for, as float32 (2^-127 is subnormal there)."""
    values = np.ldexp(np.float32(1), codes.astype(np.int32) - E8M0_BIAS, where=codes != E8M0_NAN, out=_nans(codes))
    return np.asarray(values, dtype=np.float32)


def decode_fp8(weight: Codes, scales: Floats, block: tuple[int, int]) -> DecodedMatrix:
    """Return a matrix of e4m3 codes with scales[block rows, block columns]; a side of 0 is the whole one."""
    sides = whole_block((weight.shape[0], weight.shape[1]), block)
    return DecodedMatrix(code_values(NumberFormat.FP8)[weight], scales.astype(np.float32), sides)


def decode_mxfp4(packed: Codes, scales: Codes) -> DecodedMatrix:
    """Return a matrix of packed[n, k / 2] bytes and scales[n, k / 32] e8m0 codes."""
    elements = code_values(NumberFormat.MXFP4)[unpack_bytes(packed)]
    return DecodedMatrix(elements, e8m0_values(scales), (1, STORAGE[NumberFormat.MXFP4].group))


def decode_nvfp4(packed: Codes, scales: Codes, tensor_scale: float) -> DecodedMatrix:
    """Return a matrix of packed[n, k / 2] bytes and scales[n, k / 16] e4m3 codes, with a scale of the tensor."""
    elements = code_values(NumberFormat.NVFP4)[unpack_bytes(packed)]
    group = STORAGE[NumberFormat.NVFP4].group
    return DecodedMatrix(elements, code_values(NumberFormat.FP8)[scales], (1, group), tensor_scale)


def _nans(codes: Codes) -> Floats:
    return np.full(codes.shape, np.nan, dtype=np.float32)
