"""Random values and elements for checks of numerics: ordinary ones, cancelling ones, small integers with exact sums.

Rounding to bf16 at read-out hides in which order fp32 sums were made. Pairs of products that cancel leave nothing but
the rounding errors of that order, so that every change of order shows.
"""

import numpy as np
from numpy.typing import NDArray

from configs.number_format import NumberFormat
from simulator.number_codes import elements, round_to_elements, round_to_scale

Floats = NDArray[np.float32]

# 8 significant bits hold integers up to 256: 32 products of at most 2 x 2 stay below that whatever their order.
NONZERO_INTEGERS, LARGEST_INTEGER = 32, 2


def random_values(generator: np.random.Generator, *shape: int) -> Floats:
    """Return bf16 values of either sign, with all mantissas and magnitudes from 2^-7 to 2."""
    count = int(np.prod(shape))
    bits = np.frombuffer(generator.bytes(2 * count), dtype=np.uint16) & np.uint16(0x83FF)
    values: Floats = ((bits + np.uint16(0x3C00)).astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.reshape(shape)  # a new array, to be changed at will


def random_elements(generator: np.random.Generator, number_format: NumberFormat, *shape: int) -> Floats:
    """Return elements of a format, every code of the narrow ones."""
    match number_format:
        case NumberFormat.BF16:
            return random_values(generator, *shape)
        case NumberFormat.FP16:
            return round_to_elements(generator.standard_normal(shape).astype(np.float32), number_format)
    return generator.choice(elements(number_format), shape)


def random_scales(generator: np.random.Generator, number_format: NumberFormat, *shape: int) -> Floats:
    """Return scales that a format can have, from 1/16 to 16."""
    wanted = np.exp2(generator.uniform(-4, 4, shape)).astype(np.float32)
    return round_to_scale(wanted, number_format)


def random_integers(generator: np.random.Generator, *shape: int) -> Floats:
    """Return small integers."""
    return generator.integers(-LARGEST_INTEGER, LARGEST_INTEGER + 1, shape).astype(np.float32)


def sparse_integers(generator: np.random.Generator, length: int) -> Floats:
    """Return a vector of small integers with so few others than 0 that its products with integers add up exactly."""
    vector = np.zeros(length, dtype=np.float32)
    chosen = generator.choice(length, min(length, NONZERO_INTEGERS), replace=False)
    signs = generator.choice(np.array([-1, 1]), len(chosen))
    vector[chosen] = generator.integers(1, LARGEST_INTEGER + 1, len(chosen)) * signs
    return vector


def cancelling_pairs(
    generator: np.random.Generator, length: int, chunk: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two arrays of places, a pair at each index, drawn at random within each chunk of a vector."""
    left, right = [], []
    for start in range(0, length, chunk):
        places = start + generator.permutation(min(chunk, length - start))
        half = len(places) // 2
        left.append(places[:half])
        right.append(places[half : 2 * half])
    return np.concatenate(left), np.concatenate(right)
