"""How much lower bounds leave to gain: for each of them, how many times worse the nearest found design is."""

import numpy as np
from numpy.typing import NDArray

from autotune.pareto import nondominated

Floats = NDArray[np.float64]


def cover_factors(front: Floats, bound: Floats) -> Floats:
    """Return how many times worse each front point (float[n, k]) is than each bound (float[m, k]): float[m, n]."""
    ratios: Floats = (front[None, :, :] / bound[:, None, :]).max(axis=2)
    return np.maximum(ratios, 1.0)


def left_factor(front: Floats, bound: Floats) -> float:
    """Return the factor within which every bound is reached: no design of these bounds beats the front by more.

    Objectives are minimised and positive: float[n, k] each. Without a front nothing is reached: infinity.
    """
    if len(front) == 0 or len(bound) == 0:
        return float("inf")
    return float(cover_factors(front[nondominated(front)], bound).min(axis=1).max())
