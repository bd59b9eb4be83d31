"""The roofline front: the best objectives that lower bounds allow, found before anything is simulated.

It fixes the box that hypervolume is measured in (an observed nadir would hide the small-area corner), it gives the
first designs to simulate, and it says how much any design could still gain. Designs whose bounds miss a requirement are
no part of it, as long as there are others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.coverage import Pairs, most_new
from autotune.goals import Goals, Judged, judge_bounds
from autotune.layout import Layout, distinct, keys
from autotune.pareto import box_of, hypervolume, knee
from autotune.problem import Codes, Problem
from autotune.proposals import children
from autotune.sampling import stratified, uniform_legal

Floats = NDArray[np.float64]
LEAST_GROWTH = 1e-3


@dataclass(frozen=True, slots=True)
class RooflineSettings:
    """How the roofline front is sought: a pool, then so many generations of so many children each.

    In a wide space the front goes on to grow: it is followed until it hardly does for `idle` generations. The pool is
    spread over the hardware and both ends of the front are simulated first, unless a comparison leaves that out.
    """

    pool: int = 4000
    children: int = 1600
    generations: int = 12
    most_generations: int = 80
    idle: int = 3
    stratified: bool = True
    both_ends: bool = True


DEFAULT_ROOFLINE = RooflineSettings()


@dataclass(frozen=True, slots=True)
class RooflineFront:
    """The legal designs that no other known one beats at its bounds, with these bounds: int[n, k], float[n, m].

    Without any whose bounds meet the requirements, those that miss least, best first, and `reachable` is false.
    """

    codes: Codes
    objectives: Floats
    reachable: bool = True


NO_ROOFLINE = RooflineFront(np.zeros((0, 0), dtype=np.int64), np.zeros((0, 3)))


def roofline(problem: Problem, codes: Codes) -> Floats:
    """Return the metrics of the designs if every task ran at its lower bound: float[n, 3]."""
    return problem.metrics(codes, problem.bound_cycles(codes))


def judged_roofline(problem: Problem, goals: Goals, codes: Codes) -> Judged:
    """Judge designs by their bounds: what misses a requirement here misses it in every simulation."""
    return judge_bounds(problem, goals, codes, roofline(problem, codes))


def find_roofline_front(
    problem: Problem,
    layout: Layout,
    rng: np.random.Generator,
    baselines: Codes,
    goals: Goals,
    settings: RooflineSettings = DEFAULT_ROOFLINE,
) -> tuple[RooflineFront, Codes]:
    """Return the roofline front and the legal pool that it was found in; both are empty when nothing is legal."""
    draw = stratified if settings.stratified else uniform_legal
    pool = distinct(np.concatenate([baselines, draw(problem, layout, rng, settings.pool, baselines)]))
    if len(pool) == 0:
        return RooflineFront(pool, np.zeros((0, len(goals.objectives)))), pool
    codes, best = _elite(pool, judged_roofline(problem, goals, pool))
    box, volume, idle = box_of(best.objectives), 0.0, 0
    for generation in range(settings.most_generations):
        young = children(problem, layout, rng, codes, settings.children)
        if len(young):
            judged = best.joined(judged_roofline(problem, goals, young))
            codes, best = _elite(np.concatenate([codes, young]), judged)
        before, volume = volume, hypervolume(best.objectives, box)
        idle = idle + 1 if volume - before < LEAST_GROWTH * before else 0
        if generation >= settings.generations and idle >= settings.idle:
            break
    return RooflineFront(codes, best.objectives, bool(best.feasible.any())), pool


def first_designs(front: RooflineFront, baselines: Codes, count: int, both_ends: bool = True) -> Codes:
    """Return the designs to simulate first: the baselines, then the ends of the roofline front, then it spread out.

    Without `both_ends` it is spread out from its middle.
    """
    scaled = box_of(front.objectives).scale(front.objectives)
    ends = scaled.argmin(axis=0)
    # The first and the last objective, latency and area by default, are the ends that most runs lost.
    order = [int(end) for end in (ends[0], *ends[:0:-1])] if both_ends else [knee(front.objectives)]
    distance = np.min([np.linalg.norm(scaled - scaled[row], axis=1) for row in order], axis=0)
    while len(order) < min(count, len(front.codes)) + len(ends):
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


def _elite(codes: Codes, judged: Judged) -> tuple[Codes, Judged]:
    kept = judged.elite()
    return codes[kept], judged.of(kept)
