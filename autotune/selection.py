"""The batch to evaluate next: most of it by predicted gain, a share of it to learn what predictions may miss."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.acquisition import choose
from autotune.coverage import most_new, pairs_of
from autotune.layout import Layout
from autotune.pareto import Box, nondominated
from autotune.problem import Codes, Problem
from autotune.screening import Candidates

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Known:
    """What a batch is chosen against: the designs evaluated and their objectives.

    `optimism` is by which factor each task may be faster than predicted (float[tasks]); `box` scales objectives.
    """

    codes: Codes
    objectives: Floats
    optimism: Floats
    box: Box


def choose_batch(
    problem: Problem, layout: Layout, known: Known, candidates: Candidates, count: int, explored: int
) -> Codes:
    """Return up to `count` candidates, `explored` of them for exploration: int[count, k]."""
    measured = known.box.scale(known.objectives)
    expected = known.box.scale(candidates.objectives)
    chosen = choose(measured[nondominated(measured)], expected, count - explored)
    rest = np.setdiff1d(np.arange(len(candidates.codes)), chosen)
    tried = np.concatenate([known.codes, candidates.codes[chosen]])
    # Half shows the model pairs of values that it has not seen, half is what recent errors leave possible.
    pairs = pairs_of(layout)
    new = most_new(pairs, pairs.covered(tried), candidates.codes[rest], explored // 2)
    chosen += rest[new].tolist()
    rest = np.delete(rest, new)
    front = np.concatenate([measured, expected[chosen]])
    possible = _possible(problem, known, candidates, rest)
    chosen += rest[choose(front[nondominated(front)], possible, count - len(chosen))].tolist()
    return candidates.codes[chosen]


def _possible(problem: Problem, known: Known, candidates: Candidates, rows: Codes) -> Floats:
    """Return the scaled objectives of candidates if all tasks were as fast as recent errors and bounds allow."""
    codes = candidates.codes[rows]
    if len(codes) == 0:
        return np.zeros((0, 3))
    cycles = np.maximum(candidates.cycles[rows] * known.optimism, problem.bound_cycles(codes))
    return known.box.scale(problem.objectives(codes, cycles))
