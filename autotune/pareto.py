"""Pareto arithmetic on minimised objectives: the front, hypervolume in a log-scaled box, contributions and the knee.

A box maps objectives to log axes with 0 at the ideal and 1 at the nadir; the reference of the hypervolume is 1.1.
"""

from dataclasses import dataclass

import moocore
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
REFERENCE = 1.1


@dataclass(frozen=True, slots=True)
class Box:
    """The ideal and the nadir that objectives are scaled to, in the units of the objectives."""

    ideal: tuple[float, ...]
    nadir: tuple[float, ...]

    def scale(self, objectives: Floats) -> Floats:
        """Return objectives (float[n, m], positive) on log axes with 0 at the ideal and 1 at the nadir."""
        low, high = np.log(np.array(self.ideal)), np.log(np.array(self.nadir))
        # An axis on which the whole front is one value says nothing: any positive width will do.
        width = np.where(high > low, high - low, 1.0)
        scaled: Floats = (np.log(objectives) - low) / width
        return scaled


def box_of(front: Floats) -> Box:
    """Return the box spanned by a front: float[n, m], n >= 1."""
    return Box(tuple(front.min(axis=0).tolist()), tuple(front.max(axis=0).tolist()))


def nondominated(objectives: Floats) -> NDArray[np.bool_]:
    """Return which rows no other row dominates, the first of equal rows only: bool[n]."""
    if len(objectives) == 0:
        return np.zeros(0, dtype=np.bool_)
    return np.asarray(moocore.is_nondominated(objectives), dtype=np.bool_)


def scaled_hypervolume(scaled: Floats) -> float:
    """Return the hypervolume of points that are scaled already, against the reference."""
    inside = scaled[(scaled < REFERENCE).all(axis=1)]
    if len(inside) == 0:
        return 0.0
    return float(moocore.hypervolume(inside, ref=np.full(inside.shape[1], REFERENCE)))


def hypervolume(objectives: Floats, box: Box) -> float:
    """Return the hypervolume of objectives (float[n, m]) in log space scaled to the box."""
    if len(objectives) == 0:
        return 0.0
    return scaled_hypervolume(box.scale(objectives))


def contributions(objectives: Floats, box: Box) -> Floats:
    """Return what the hypervolume would lose without each row alone: float[n]."""
    if len(objectives) == 0:
        return np.zeros(0)
    scaled = np.minimum(box.scale(objectives), REFERENCE)
    lost = moocore.hv_contributions(scaled, ref=np.full(scaled.shape[1], REFERENCE))
    return np.asarray(lost, dtype=np.float64)


def knee(front: Floats) -> int:
    """Return the row of a front that is nearest to its ideal on log axes scaled to the front itself."""
    scaled = box_of(front).scale(front)
    return int(np.argmin(np.linalg.norm(scaled, axis=1)))
