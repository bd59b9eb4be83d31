"""How far the found front is from what lower bounds allow, and how much the sampled bounds can be trusted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.finished import FinishedRun, front_of
from autotune.pareto import nondominated
from autotune.roofline import roofline

Floats = NDArray[np.float64]
ROUNDING = 1 + 1e-12


@dataclass(frozen=True, slots=True)
class Gap:
    """How far the front is from what lower bounds allow.

    For every point of the bounds' front some Pareto point is at most `factor` times worse in each objective; `point` is
    the one that needs the whole factor. `uncovered` evaluated designs are better in some way than all that the search
    had sampled for its roofline front: the more there are, the less the sample says of the whole space.
    """

    factor: float
    point: int
    hypervolume: float
    bound_hypervolume: float
    uncovered: int


def gap(run: FinishedRun) -> Gap | None:
    """Return the distance to the roofline front; None where nothing was evaluated."""
    front, sampled = front_of(run), run.result.roofline.objectives
    if not front or not run.result.batches or len(sampled) == 0:
        return None
    measured = np.array([item.objectives for item in run.evaluations])
    factors = cover_factors(measured[list(front)], bounds_front(run))
    worst = int(factors.min(axis=1).argmax())
    last = run.result.batches[-1]
    return Gap(
        factor=float(factors[worst].min()),
        point=front[int(factors[worst].argmin())],
        hypervolume=last.hypervolume,
        bound_hypervolume=last.bound_hypervolume,
        uncovered=sum(not (sampled <= item * ROUNDING).all(axis=1).any() for item in measured),
    )


def bounds_front(run: FinishedRun) -> Floats:
    """Return the best lower bounds known: the sampled roofline front with the rooflines of what was evaluated."""
    bounds = run.result.roofline.objectives
    if run.evaluations:
        codes = np.array([item.codes for item in run.evaluations], dtype=np.int64)
        bounds = np.concatenate([bounds, roofline(run.problem, codes)])
    return bounds[nondominated(bounds)]


def cover_factors(front: Floats, bound: Floats) -> Floats:
    """Return how many times worse each front point (float[n, 3]) is than each bound (float[m, 3]): float[m, n]."""
    ratios: Floats = (front[None, :, :] / bound[:, None, :]).max(axis=2)
    return np.maximum(ratios, 1.0)
