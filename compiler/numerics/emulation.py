"""What the declared order of additions gives for y = x W^T, straight from the matrices: no program, no layout.

An independent second opinion for the functional simulator: it must give the same bits. The order: the reduction is cut
into contiguous parts, one per channel; in a part, columns of `lanes` products are added by a balanced fp32 tree,
adjacent lanes first, and join the fp32 accumulator column by column; the accumulator is rounded to bf16 where it is
read out, at the end of every segment when partial sums spill and at the end of the part otherwise; the host adds the
bf16 parts in fp32 in channel order and keeps the sum as bf16. Where values share scales, a column's sum is multiplied
by its scale in fp32 before it joins the accumulator; where parts have weights, or outputs scales, the host multiplies
by them in fp32.

Error bound (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1): each product of an element
and a bf16 value is exact in fp32, and on its way to y is changed by the factor (1 + d) of every rounding of a sum or a
scaling it is part of, with |d| <= u32 = 2^-24 in fp32 and |d| <= u16 = 2^-8 for rounding to bf16 (8 significant bits).
So

    |y - sum w x| <= gamma * sum |w| |x|,   gamma = (1 + u32)^a * (1 + u16)^b - 1
    a = log2(lanes) + columns of a part + (parts - 1) + 1 for each scale or weight on the way
    b = segments of a part if it spills else 1, plus 1 where parts are added

Where lanes add in fp16, with u = 2^-11, a product is rounded once and each of its sums once:

    gamma = (1 + u)^(columns + 1) * (1 + u32)^a * (1 + u16)^b - 1,   a = log2(lanes) + (parts - 1) + scalings

Values stay far from the ends of the exponent range, so that underflow adds nothing.
"""

from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from simulator.bf16 import BF16_ROUNDOFF, FP16_ROUNDOFF, FP32_ROUNDOFF, round_to_bf16

Floats = NDArray[np.float32]
CHUNK_VALUES = 1 << 16  # products made at a time; they stay in the cache


@dataclass(frozen=True, slots=True)
class ReductionOrder:
    """In which order products are added, as the module's text says; `scales` counts multiplications on a value's way.

    `group_columns` columns share a scale of the unit (0: none do). With `half_precision` every lane adds its products
    column by column, both rounded to fp16, and the host adds the lanes by a tree in fp32, rounded to bf16.
    """

    lanes: int
    segment_columns: int
    spills: bool = False
    parts: int = 1
    group_columns: int = 0
    scales: int = 0
    half_precision: bool = False

    def part_columns(self, inputs: int) -> int:
        """Return the columns of one part of a reduction over so many inputs."""
        part = -(-inputs // self.parts)
        return -(-part // self.lanes)

    def gamma(self, inputs: int) -> float:
        """Return the bound's factor on sum |w| |x| for a reduction over so many inputs."""
        return self.gamma_of_columns(self.part_columns(inputs))

    def gamma_of_columns(self, columns: int) -> float:
        """Return the bound's factor where no part has more columns."""
        if self.half_precision:
            return self._gamma_of_half(columns)
        single = log2(self.lanes) + columns + self.parts - 1 + self.scales
        halves = -(-columns // self.segment_columns) if self.spills else 1
        halves += self.parts > 1 or self.scales > 0
        return float(np.expm1(single * np.log1p(FP32_ROUNDOFF) + halves * np.log1p(BF16_ROUNDOFF)))

    def _gamma_of_half(self, columns: int) -> float:
        """Return the factor where lanes add in fp16, and the host adds the lanes."""
        single, halves = log2(self.lanes) + self.parts - 1 + self.scales, 1 + (self.parts > 1 or self.scales > 0)
        roundings = (columns + 1, FP16_ROUNDOFF), (single, FP32_ROUNDOFF), (halves, BF16_ROUNDOFF)
        return float(np.expm1(sum(count * np.log1p(roundoff) for count, roundoff in roundings)))


def emulate_linear(
    weights: Floats, vectors: Floats, order: ReductionOrder, scales: Floats | None = None, host: Floats | None = None
) -> Floats:
    """Return bf16 y[v, n] for elements weights[n, k] and vectors[v, k], all in float32, as device and host make it.

    `scales` float32[n, groups] are the unit's, `host` float32[n] the host's, one per output.
    """
    total = np.zeros((len(vectors), len(weights)), dtype=np.float32)
    for part in emulate_parts(weights, vectors, order, scales):
        total += part
    return round_to_bf16(total if host is None else total * host)


def emulate_parts(weights: Floats, vectors: Floats, order: ReductionOrder, scales: Floats | None = None) -> Floats:
    """Return the bf16 sums of every part before the host adds them: float32[parts, v, n]."""
    outputs, inputs = weights.shape
    part = -(-inputs // order.parts)
    groups = order.part_columns(inputs) // order.group_columns if scales is not None else 0
    found = np.zeros((order.parts, len(vectors), outputs), dtype=np.float32)
    for number in range(order.parts):
        own = slice(number * part, (number + 1) * part)
        columns = _columns_first(weights[:, own], order, inputs)
        own_vectors = _columns_first(vectors[:, own], order, inputs)
        own_scales = None
        if scales is not None:
            of_part = scales if order.parts == 1 else scales[:, number * groups : (number + 1) * groups]
            own_scales = np.repeat(of_part.T, order.group_columns, axis=0)[: len(columns)]
        for vector in range(len(vectors)):
            found[number, vector] = _reduce(columns, own_vectors[:, :, vector], order, own_scales)
    return found


def exact_linear(weights: NDArray[np.floating], vectors: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def _reduce(weights: Floats, vector: Floats, order: ReductionOrder, scales: Floats | None) -> Floats:
    """Return one part's bf16 sums of weights[column, lane, output], vector[column, lane], scales[column, output]."""
    if order.half_precision:
        return _reduce_lanes(weights, vector)
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
            if scales is not None:
                sums[:, 0] *= scales[first:last]
            for column in range(last - first):
                accumulator += sums[column, 0]
        accumulator = round_to_bf16(accumulator)
    return accumulator


def _reduce_lanes(weights: Floats, vector: Floats) -> Floats:
    """Return one part's bf16 sums where every lane multiplies and adds in fp16."""
    half = np.float16
    sums = np.zeros(weights.shape[1:], dtype=half)
    for column, factors in zip(weights.astype(half), vector.astype(half), strict=True):
        sums = sums + column * factors[:, None]
    lanes = sums.astype(np.float32)
    while len(lanes) > 1:
        lanes = lanes[0::2] + lanes[1::2]
    return round_to_bf16(lanes[0])
