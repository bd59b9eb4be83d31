"""The box that a run's hypervolume is measured in: that of the roofline front, stretched to what was simulated."""

from collections.abc import Sequence

import numpy as np

from autotune.goals import Goals, facts_of, judge_evaluations
from autotune.learning import codes_of
from autotune.merit import project
from autotune.pareto import Box, box_of
from autotune.problem import Evaluation, Problem
from autotune.roofline import RooflineFront, roofline


def fixed_box(
    problem: Problem, goals: Goals, front: RooflineFront, evaluations: Sequence[Evaluation]
) -> tuple[Box, bool]:
    """Return the box, and whether it is final: it is from the first feasible design on.

    Without requirements both the roofline front and the first designs' front contain the far ends. With them hardly any
    first design may be feasible: the front of the bounds is then moved by how far designs typically are from theirs.
    """
    judged = judge_evaluations(problem, goals, evaluations)
    nadir = front.objectives.max(axis=0)
    if goals.requirements:
        codes = codes_of(evaluations, len(problem.knobs))
        bounds = project(goals.objectives, roofline(problem, codes), facts_of(problem, codes))
        nadir = nadir * np.median(judged.objectives / bounds, axis=0)
    measured = judged.objectives[judged.front()]
    if len(measured):
        nadir = np.maximum(nadir, measured.max(axis=0))
    return Box(box_of(front.objectives).ideal, tuple(nadir.tolist())), len(measured) > 0
