"""Decoders of integer weights: int8 per output, and 4-bit codes of AWQ, GPTQ and compressed-tensors.

Shapes and orders (K inputs, N outputs, G groups along K):

    int8        weight[N, K] int8, weight_scale[N] or [N, 1]: w = q * s[n], as torch._weight_int8pack_mm
    awq         qweight[K, N/8], qzeros[G, N/8], eight outputs a word, AWQ_ORDER; scales[G, N]: w = (q - z) * s
    gptq        qweight[K/8, N], eight inputs a word; qzeros[G, N/8], eight outputs; scales[G, N]; g_idx[K]
                w = (q - (z + offset)) * s, offset 1 in the first version of the format and 0 in the second
    packed      weight_packed[N, K/8], eight inputs a word, code + 8; weight_scale[N, G]; weight_zero_point[N/8, G]

Codes are 4 bits and unsigned. `z + offset` is not wrapped to 4 bits: a stored 15 is 16 (AutoGPTQ, qlinear_cuda.py).
"""

import numpy as np
from numpy.typing import NDArray

from compiler.checkpoint.matrix import DecodedMatrix, Floats, whole_block
from compiler.checkpoint.packing import AWQ_ORDER, Codes, unpack_words

Words = NDArray[np.int32]
MIDDLE_CODE = 8  # the zero point of symmetric 4-bit codes


def decode_int8(weight: NDArray[np.int8], scale: Floats) -> DecodedMatrix:
    """Return a matrix of int8 with a scale per output, or one scale."""
    outputs, inputs = weight.shape
    scales = scale.reshape(-1, 1).astype(np.float32)
    return DecodedMatrix(weight.astype(np.float32), scales, whole_block((outputs, inputs), (outputs // len(scales), 0)))


def decode_awq(qweight: Words, qzeros: Words, scales: Floats, group: int) -> DecodedMatrix:
    """Return a matrix of AWQ's GEMM layout, in groups of `group` inputs."""
    codes = unpack_words(qweight, 1, AWQ_ORDER)
    zeros = unpack_words(qzeros, 1, AWQ_ORDER)
    return _grouped(codes, zeros.astype(np.int64), scales, np.arange(len(codes)) // group, group)


def decode_gptq(
    qweight: Words, qzeros: Words, scales: Floats, groups_of: NDArray[np.int32] | None, zero_offset: int, group: int
) -> DecodedMatrix:
    """Return a matrix of GPTQ's layout; `groups_of` is g_idx, the group of each input, None where they are in order."""
    codes = unpack_words(qweight, 0)
    zeros = unpack_words(qzeros, 1).astype(np.int64) + zero_offset
    columns = np.arange(len(codes)) // group if groups_of is None else groups_of.astype(np.int64)
    return _grouped(codes, zeros, scales, columns, group)


def gptq_zero_offset(qzeros: Words, symmetric: bool, labelled: int) -> int:
    """Return what to add to stored zero points: what the file's label says, unless it is symmetric and shows better.

    Symmetric files have the middle code, 8, throughout: those that store 8 are of the second version whatever their
    label, those that store 7 of the first. Some are mislabelled (vLLM pull request 38966).
    """
    stored = np.unique(unpack_words(qzeros, 1))
    if symmetric and len(stored) == 1 and MIDDLE_CODE - int(stored[0]) in (0, 1):
        return MIDDLE_CODE - int(stored[0])
    return labelled


def decode_packed(
    packed: Words, scales: Floats, zeros: Words | None, shape: tuple[int, int], group: int
) -> DecodedMatrix:
    """Return a matrix of compressed-tensors' pack-quantized layout; `shape` is (N, K) before packing."""
    outputs, inputs = shape
    codes = unpack_words(packed, 1)[:, :inputs].astype(np.float32)
    points = np.full(scales.shape, MIDDLE_CODE, dtype=np.float32)
    if zeros is not None:
        points = unpack_words(zeros, 0)[:outputs].astype(np.float32)
    return DecodedMatrix(codes - np.repeat(points, group, axis=1)[:, :inputs], scales.astype(np.float32), (1, group))


def _grouped(
    codes: Codes, zeros: NDArray[np.int64], scales: Floats, columns: NDArray[np.int64], group: int
) -> DecodedMatrix:
    """Return the matrix of codes[k, n] with zeros[g, n] and scales[g, n], where input k is of group columns[k]."""
    elements = codes.astype(np.int64) - zeros[columns]
    return DecodedMatrix(
        np.ascontiguousarray(elements.T, dtype=np.float32),
        np.ascontiguousarray(scales.T, dtype=np.float32),
        (1, group),
        columns=columns,
    )
