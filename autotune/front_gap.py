"""How far the found front is from what lower bounds allow, and how much the sampled bounds can be trusted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.certificate import cover_factors
from autotune.finished import FinishedRun, front_of
from autotune.goals import Judged
from autotune.learning import codes_of
from autotune.roofline import judged_roofline

Floats = NDArray[np.float64]
ROUNDING = 1 + 1e-12


@dataclass(frozen=True, slots=True)
class Gap:
    """How far the front is from what lower bounds allow.

    For every point of the bounds' front some Pareto point is at most `factor` times worse in each objective; `point` is
    the one that needs the whole factor. `uncovered` feasible designs are better in some way than all that the search
    had sampled for its roofline front: the more there are, the less the sample says of the whole space.
    """

    factor: float
    point: int
    hypervolume: float
    bound_hypervolume: float
    uncovered: int


def gap(run: FinishedRun) -> Gap | None:
    """Return the distance to the roofline front; None where nothing feasible was evaluated."""
    front, sampled = front_of(run), run.result.roofline.objectives
    if not front or not run.result.batches or len(sampled) == 0:
        return None
    judged = run.judged
    factors = cover_factors(judged.objectives[list(front)], bounds_front(run))
    worst = int(factors.min(axis=1).argmax())
    last = run.result.batches[-1]
    feasible = judged.objectives[judged.feasible]
    return Gap(
        factor=float(factors[worst].min()),
        point=front[int(factors[worst].argmin())],
        hypervolume=last.hypervolume,
        bound_hypervolume=last.bound_hypervolume,
        uncovered=sum(not (sampled <= item * ROUNDING).all(axis=1).any() for item in feasible),
    )


def bounds_front(run: FinishedRun) -> Floats:
    """Return the best lower bounds known: the sampled roofline front with the rooflines of what was evaluated.

    Bounds that miss a requirement are left out; none are left where all do.
    """
    sampled = run.result.roofline
    usable = sampled.reachable and len(sampled.objectives) > 0
    known = sampled.objectives if usable else np.zeros((0, len(run.goals.objectives)))
    if run.evaluations:
        own = judged_roofline(run.problem, run.goals, codes_of(run.evaluations, len(run.problem.knobs)))
        known = np.concatenate([known, own.objectives[own.feasible]])
    return known[Judged(known, np.zeros((len(known), 0))).front()]
