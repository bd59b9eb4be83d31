"""Choosing a batch: greedily the candidate that adds most hypervolume, taking predictions for those chosen before.

Gains only shrink as the front grows, so that a stale gain is an upper bound and few have to be computed again.
"""

import heapq

import numpy as np
from numpy.typing import NDArray

from autotune.pareto import REFERENCE, nondominated, scaled_hypervolume

Floats = NDArray[np.float64]
LAYERS = 3


def gain(front: Floats, candidate: Floats) -> float:
    """Return the hypervolume a scaled candidate adds to a scaled front: its own box less what is dominated in it."""
    if (candidate >= REFERENCE).any():
        return 0.0
    own = float(np.prod(REFERENCE - candidate))
    return max(own - scaled_hypervolume(np.maximum(front, candidate)), 0.0)


def choose(front: Floats, candidates: Floats, count: int) -> list[int]:
    """Return the rows of up to `count` scaled candidates, best first; those that add nothing follow, nearest first."""
    chosen = _greedy(front, candidates, count)
    if len(chosen) < min(count, len(candidates)):
        chosen += _nearest(front, candidates, count - len(chosen), set(chosen))
    return chosen


def _greedy(front: Floats, candidates: Floats, count: int) -> list[int]:
    heap = [(-gain(front, candidates[row]), row) for row in _promising(candidates)]
    heap = [entry for entry in heap if entry[0] < 0.0]
    heapq.heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < count:
        _, row = heapq.heappop(heap)
        current = gain(front, candidates[row])
        if heap and current < -heap[0][0]:
            if current > 0.0:
                heapq.heappush(heap, (-current, row))
            continue
        if current > 0.0:
            chosen.append(row)
            front = np.concatenate([front, candidates[row : row + 1]])
    return chosen


def _promising(candidates: Floats) -> list[int]:
    """Return the rows in the first few non-dominated layers: what lies behind can only add less."""
    remaining = np.arange(len(candidates))
    kept: list[int] = []
    for _ in range(LAYERS):
        layer = nondominated(candidates[remaining])
        kept += remaining[layer].tolist()
        remaining = remaining[~layer]
    return kept


def _nearest(front: Floats, candidates: Floats, count: int, taken: set[int]) -> list[int]:
    """Return the rows that would have to improve least to join the front."""
    rows = np.array([row for row in range(len(candidates)) if row not in taken], dtype=np.int64)
    if len(front) == 0:
        return [int(row) for row in rows[:count]]
    # One objective better than a member is enough to escape it, and every member has to be escaped.
    behind = (candidates[rows, None, :] - front[None, :, :]).min(axis=2).max(axis=1)
    order = np.argsort(behind, kind="stable")
    return [int(row) for row in rows[order[:count]]]
