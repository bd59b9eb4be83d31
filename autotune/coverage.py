"""Which pairs of knob values have been tried together: what no evaluation has shown, no model can predict.

Pairs count within the hardware together with one task's schedule, as a task's cost depends on these. A run that covers
pairs early does not overlook a corner that is legal only with a large buffer and many accumulators at once.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from autotune.layout import Layout
from autotune.problem import Codes

Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of columns with a number for every pair of values: first, second, offset and seconds are int32[pairs]."""

    first: Numbers
    second: Numbers
    offset: Numbers
    seconds: Numbers
    total: int

    def numbers(self, codes: Codes) -> Numbers:
        """Return the numbers of the value pairs in each design: int32[pairs, n]."""
        columns = np.ascontiguousarray(codes.T, dtype=np.int32)
        numbers = columns[self.first]
        numbers *= self.seconds[:, None]
        numbers += columns[self.second]
        numbers += self.offset[:, None]
        return numbers

    def covered(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which value pairs occur in any of the designs: bool[total]."""
        seen = np.zeros(self.total, dtype=np.bool_)
        seen[self.numbers(codes).ravel()] = True
        return seen


def pairs_of(layout: Layout) -> Pairs:
    """Return the pairs of knobs that act on the cost of one task."""
    groups = [(*layout.hardware.tolist(), *columns.tolist()) for columns in layout.schedules] or [
        tuple(layout.hardware.tolist())
    ]
    pairs = sorted({pair for columns in groups for pair in combinations(sorted(columns), 2)})
    first, second = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    counts = layout.sizes[first] * layout.sizes[second]
    offset = np.cumsum(counts) - counts
    return Pairs(first, second, offset.astype(np.int32), layout.sizes[second].astype(np.int32), int(counts.sum()))


def most_new(pairs: Pairs, seen: NDArray[np.bool_], candidates: Codes, count: int) -> list[int]:
    """Return the rows of up to `count` candidates that, one after the other, show most pairs not seen before."""
    numbers = pairs.numbers(candidates)
    unseen = ~seen[numbers]
    new = unseen.sum(axis=0)
    chosen: list[int] = []
    while len(chosen) < min(count, len(candidates)):
        row = int(new.argmax())
        if new[row] == 0:
            break
        chosen.append(row)
        shown = np.flatnonzero(unseen[:, row])
        same = unseen[shown] & (numbers[shown] == numbers[shown, row][:, None])
        unseen[shown] &= ~same
        new = new - same.sum(axis=0)
    return chosen
