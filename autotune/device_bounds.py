"""What the device of each design allows its operators at best: the bounds over all schedules, for tables and report."""

from collections.abc import Sequence

import numpy as np

from autotune.decode_problem import DecodeProblem
from autotune.problem import Codes, Evaluation
from compiler.linear import LinearShape
from compiler.lower_bound import LowerBound, attention_lower_bound, linear_lower_bound


def device_bounds(problem: DecodeProblem, codes: Codes) -> dict[str, LowerBound]:
    """Return the bounds of every scheduled operator, with one entry per design (int[n, k])."""
    scenario = problem.scenario
    table = scenario.candidates.table(codes)
    costs = scenario.costs(table)
    return {
        shape.name: linear_lower_bound(shape, table, costs)
        if isinstance(shape, LinearShape)
        else attention_lower_bound(shape, table, costs)
        for shape in scenario.space.schedulables
    }


def bounds_of(problem: DecodeProblem, evaluations: Sequence[Evaluation]) -> dict[str, LowerBound]:
    """Return the bounds of every scheduled operator, with one entry per evaluation."""
    codes = np.array([item.codes for item in evaluations], dtype=np.int64)
    return device_bounds(problem, codes.reshape(len(evaluations), len(problem.knobs)))
