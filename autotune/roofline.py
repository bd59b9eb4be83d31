"""The roofline front: the best objectives that lower bounds allow, found before anything is simulated.

It fixes the box that hypervolume is measured in (an observed nadir would hide the small-area corner), it gives the
first designs to simulate, and it says how much any design could still gain.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.coverage import Pairs, most_new
from autotune.layout import Layout, distinct, keys
from autotune.pareto import box_of, nondominated
from autotune.problem import Codes, Problem
from autotune.proposals import children
from autotune.sampling import stratified

Floats = NDArray[np.float64]
POOL = 4000
GENERATIONS = 12
CHILDREN = 800


@dataclass(frozen=True, slots=True)
class RooflineFront:
    """The legal designs that no other known one beats at its bounds, with these bounds: int[n, k], float[n, 3]."""

    codes: Codes
    objectives: Floats


NO_ROOFLINE = RooflineFront(np.zeros((0, 0), dtype=np.int64), np.zeros((0, 3)))


def roofline(problem: Problem, codes: Codes) -> Floats:
    """Return what the designs would cost if every task ran at its lower bound: float[n, 3]."""
    return problem.objectives(codes, problem.bound_cycles(codes))


def find_roofline_front(
    problem: Problem, layout: Layout, rng: np.random.Generator, baselines: Codes
) -> tuple[RooflineFront, Codes]:
    """Return the roofline front and the legal pool that it was found in; both are empty when nothing is legal."""
    pool = distinct(np.concatenate([baselines, stratified(problem, layout, rng, POOL, baselines)]))
    if len(pool) == 0:
        return RooflineFront(pool, np.zeros((0, 3))), pool
    front = _front(pool, roofline(problem, pool))
    for _ in range(GENERATIONS):
        young = children(problem, layout, rng, front.codes, CHILDREN)
        merged = np.concatenate([front.objectives, roofline(problem, young)])
        front = _front(np.concatenate([front.codes, young]), merged)
    return front, pool


def first_designs(front: RooflineFront, baselines: Codes, count: int) -> Codes:
    """Return the designs to simulate first: the baselines, then the ends of the roofline front, then it spread out."""
    scaled = box_of(front.objectives).scale(front.objectives)
    ends = scaled.argmin(axis=0)
    # Latency and area are the ends that most runs lost; energy comes third.
    order = [int(ends[0]), int(ends[2]), int(ends[1])]
    distance = np.min([np.linalg.norm(scaled - scaled[row], axis=1) for row in order], axis=0)
    while len(order) < min(count + 3, len(front.codes) + 3):
        farthest = int(distance.argmax())
        order.append(farthest)
        distance = np.minimum(distance, np.linalg.norm(scaled - scaled[farthest], axis=1))
    chosen = np.concatenate([baselines, front.codes[order]])
    return distinct(chosen)[: max(count, len(baselines))]


def fill(designs: Codes, pool: Codes, pairs: Pairs, count: int) -> Codes:
    """Add designs of the pool that show most new pairs of knob values, then any, until there are `count`."""
    taken = set(keys(designs))
    fresh = pool[[key not in taken for key in keys(pool)]]
    chosen = most_new(pairs, pairs.covered(designs), fresh, count - len(designs))
    ordered = distinct(np.concatenate([designs, fresh[chosen], fresh]))
    return ordered[: max(count, len(designs))]


def _front(codes: Codes, objectives: Floats) -> RooflineFront:
    kept = nondominated(objectives)
    return RooflineFront(codes[kept], objectives[kept])
