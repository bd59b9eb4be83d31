"""What the declared order of additions gives for y = x W^T, straight from the matrices: no program, no layout.

An independent second opinion for the functional simulator: it must give the same bits. The order: the reduction is cut
into contiguous parts, one per channel; in a part, columns of `lanes` products are added by a balanced fp32 tree,
adjacent lanes first, and join the fp32 accumulator column by column; the accumulator is rounded to bf16 where it is
read out, at the end of every segment when partial sums spill and at the end of the part otherwise; the host adds the
bf16 parts in fp32 in channel order and keeps the sum as bf16.

Error bound (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1): each product of bf16 values
is exact in fp32, and on its way to y is changed by the factor (1 + d) of every rounding of a sum it is part of, with
|d| <= u32 = 2^-24 in fp32 and |d| <= u16 = 2^-8 for rounding to bf16 (8 significant bits). So

    |y - sum w x| <= gamma * sum |w| |x|,   gamma = (1 + u32)^a * (1 + u16)^b - 1
    a = log2(lanes) + columns of a part + (parts - 1)
    b = segments of a part if it spills else 1, plus 1 where parts are added

Values stay far from the ends of the exponent range, so that underflow adds nothing.
"""

from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from simulator.bf16 import BF16_ROUNDOFF, FP32_ROUNDOFF, round_to_bf16

Floats = NDArray[np.float32]
CHUNK_VALUES = 1 << 16  # products made at a time; they stay in the cache


@dataclass(frozen=True, slots=True)
class ReductionOrder:
    """In which order products are added, as the module's text says."""

    lanes: int
    segment_columns: int
    spills: bool = False
    parts: int = 1

    def part_columns(self, inputs: int) -> int:
        """Return the columns of one part of a reduction over so many inputs."""
        part = -(-inputs // self.parts)
        return -(-part // self.lanes)

    def gamma(self, inputs: int) -> float:
        """Return the bound's factor on sum |w| |x| for a reduction over so many inputs."""
        columns = self.part_columns(inputs)
        single = log2(self.lanes) + columns + self.parts - 1
        halves = -(-columns // self.segment_columns) if self.spills else 1
        halves += self.parts > 1
        return float(np.expm1(single * np.log1p(FP32_ROUNDOFF) + halves * np.log1p(BF16_ROUNDOFF)))


def emulate_linear(weights: Floats, vectors: Floats, order: ReductionOrder) -> Floats:
    """Return bf16 y[v, n] for weights[n, k] and vectors[v, k], all in float32, as the device and the host make it."""
    outputs, inputs = weights.shape
    part = -(-inputs // order.parts)
    total = np.zeros((len(vectors), outputs), dtype=np.float32)
    for number in range(order.parts):
        own = slice(number * part, (number + 1) * part)
        columns = _columns_first(weights[:, own], order, inputs)
        own_vectors = _columns_first(vectors[:, own], order, inputs)
        for vector in range(len(vectors)):
            total[vector] += _reduce(columns, own_vectors[:, :, vector], order)
    return round_to_bf16(total)


def exact_linear(weights: Floats, vectors: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return y[v, n] in fp64, and the bound's sum |w| |x|."""
    exact = np.einsum("nk,vk->vn", weights, vectors, dtype=np.float64)
    size = np.einsum("nk,vk->vn", np.abs(weights), np.abs(vectors), dtype=np.float64)
    return exact, size


def _columns_first(rows: Floats, order: ReductionOrder, inputs: int) -> Floats:
    """Return values[column, lane, row], padded with zeros to whole columns."""
    columns = order.part_columns(inputs)
    padded = np.zeros((columns * order.lanes, len(rows)), dtype=np.float32)
    padded[: rows.shape[1]] = rows.T
    return padded.reshape(columns, order.lanes, len(rows))


def _reduce(weights: Floats, vector: Floats, order: ReductionOrder) -> Floats:
    """Return one part's bf16 sums from weights[column, lane, output] and vector[column, lane]."""
    columns, lanes, outputs = weights.shape
    accumulator = np.zeros(outputs, dtype=np.float32)
    at_once = max(1, CHUNK_VALUES // (lanes * outputs))
    step = order.segment_columns if order.spills else columns
    for segment in range(0, columns, step):
        end = min(columns, segment + step)
        for first in range(segment, end, at_once):
            last = min(end, first + at_once)
            sums = weights[first:last] * vector[first:last, :, None]
            while sums.shape[1] > 1:
                sums = sums[:, 0::2] + sums[:, 1::2]
            for column in range(last - first):
                accumulator += sums[column, 0]
        accumulator = round_to_bf16(accumulator)
    return accumulator
