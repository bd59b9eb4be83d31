"""The batch to evaluate next: most of it by predicted gain, a share of it to learn what predictions may miss.

A candidate that is predicted to miss a requirement adds nothing; only when no others are left, those that are predicted
to miss least are taken.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.acquisition import choose
from autotune.coverage import most_new, pairs_of
from autotune.goals import Goals, judge
from autotune.layout import Layout
from autotune.pareto import Box, nondominated
from autotune.problem import Codes, Problem
from autotune.screening import Candidates

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Known:
    """What a batch is chosen against: the designs evaluated, and the objectives of those that are feasible.

    `optimism` is by which factor each task may be faster than predicted (float[tasks]); `box` scales objectives.
    """

    codes: Codes
    objectives: Floats
    optimism: Floats
    box: Box


def choose_batch(
    problem: Problem, layout: Layout, goals: Goals, known: Known, candidates: Candidates, count: int, explored: int
) -> Codes:
    """Return up to `count` candidates, `explored` of them for exploration: int[count, k]."""
    measured = known.box.scale(known.objectives)
    expected = known.box.scale(candidates.judged.objectives)
    violations = candidates.judged.violations
    feasible = np.flatnonzero(violations == 0.0)
    chosen: list[int] = feasible[choose(_front(measured), expected[feasible], count - explored)].tolist()
    chosen += _least_violated(violations, chosen, count - explored - len(chosen))
    rest = np.setdiff1d(np.arange(len(candidates.codes)), chosen)
    possible, rest = _possible(problem, goals, known, candidates, rest)
    tried = np.concatenate([known.codes, candidates.codes[chosen]])
    # Half shows the model pairs of values that it has not seen, half is what recent errors leave possible.
    pairs = pairs_of(layout)
    new = most_new(pairs, pairs.covered(tried), candidates.codes[rest], explored // 2)
    chosen += rest[new].tolist()
    rest, possible = np.delete(rest, new), np.delete(possible, new, axis=0)
    gaining = [row for row in chosen if violations[row] == 0.0]
    front = _front(np.concatenate([measured, expected[gaining]]))
    chosen += rest[choose(front, possible, count - len(chosen))].tolist()
    chosen += _least_violated(violations, chosen, count - len(chosen))
    return candidates.codes[chosen]


def _front(scaled: Floats) -> Floats:
    return scaled[nondominated(scaled)]


def _least_violated(violations: Floats, taken: list[int], count: int) -> list[int]:
    """Return up to `count` more rows, those predicted to miss least first."""
    free = np.setdiff1d(np.arange(len(violations)), taken)
    order: list[int] = free[np.argsort(violations[free], kind="stable")].tolist()
    return order[: max(count, 0)]


def _possible(problem: Problem, goals: Goals, known: Known, candidates: Candidates, rows: Rows) -> tuple[Floats, Rows]:
    """Return scaled objectives if all tasks were as fast as recent errors and bounds allow, where that is feasible."""
    codes = candidates.codes[rows]
    if len(codes) == 0:
        return np.zeros((0, len(goals.objectives))), rows
    cycles = np.maximum(candidates.cycles[rows] * known.optimism, problem.bound_cycles(codes))
    judged = judge(problem, goals, codes, problem.metrics(codes, cycles))
    feasible = judged.feasible | (candidates.judged.violations[rows] == 0.0)
    return known.box.scale(judged.objectives[feasible]), rows[feasible]
