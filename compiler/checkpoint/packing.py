"""Codes of four bits out of bytes and 32-bit words.

AWQ packs eight outputs into a word in the order its GEMM kernel reads them: AutoAWQ, awq/modules/linear/gemm.py, and
vLLM, awq_triton.py. GPTQ and compressed-tensors have the first code in the lowest bits.
"""

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint8]
IN_ORDER = (0, 1, 2, 3, 4, 5, 6, 7)
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # nibble i of a word is the code of output AWQ_ORDER[i] of its eight
CODES_PER_WORD = 8


def unpack_words(words: NDArray[np.int32], axis: int, order: tuple[int, ...] = IN_ORDER) -> Codes:
    """Return the eight codes of each 32-bit word, along `axis`; nibble i is code order[i]."""
    whole = np.moveaxis(words.view(np.uint32), axis, -1)
    codes = np.empty((*whole.shape, CODES_PER_WORD), dtype=np.uint8)
    for nibble, place in enumerate(order):
        codes[..., place] = (whole >> np.uint32(4 * nibble)) & np.uint32(15)
    return np.moveaxis(codes.reshape(*whole.shape[:-1], -1), -1, axis)


def pack_words(codes: Codes, axis: int, order: tuple[int, ...] = IN_ORDER) -> NDArray[np.int32]:
    """Return codes packed along `axis`, whose length is a multiple of eight: the inverse of `unpack_words`."""
    last = np.moveaxis(codes, axis, -1)
    eights = last.reshape(*last.shape[:-1], -1, CODES_PER_WORD).astype(np.uint32)
    words = np.zeros(eights.shape[:-1], dtype=np.uint32)
    for nibble, place in enumerate(order):
        words |= eights[..., place] << np.uint32(4 * nibble)
    return np.moveaxis(words.view(np.int32), -1, axis)


def unpack_bytes(packed: Codes) -> Codes:
    """Return the two codes of each byte along the last axis; the low one is the even element (OCP MX, GPT-OSS)."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def pack_bytes(codes: Codes) -> Codes:
    """Return codes packed two to a byte along the last axis, whose length is even: the inverse of `unpack_bytes`."""
    packed: Codes = codes[..., 0::2] | (codes[..., 1::2] << np.uint8(4))
    return packed
