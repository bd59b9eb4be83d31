"""Choices over several scenarios: the designs that are never far from the best, and what specialists cost elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.problem import Evaluation
from autotune.suite import SuiteProblem

Floats = NDArray[np.float64]
FIGURES = ("latency", "energy")


@dataclass(frozen=True, slots=True)
class Choice:
    """A point, and its latency or energy in each scenario over the best that any simulated point has there."""

    figure: str
    point: int
    ratios: tuple[tuple[str, float], ...]

    @property
    def worst(self) -> tuple[str, float]:
        """The scenario where it is farthest from the best, and by which factor."""
        return max(self.ratios, key=lambda item: item[1])


@dataclass(frozen=True, slots=True)
class Robust:
    """Per figure the point whose worst scenario is best, and each scenario's best point with what it is elsewhere."""

    choices: tuple[Choice, ...]
    specialists: tuple[tuple[str, Choice], ...]


def robust(problem: SuiteProblem, evaluations: Sequence[Evaluation], points: Sequence[int]) -> Robust:
    """Return the choices among some points of a suite; the best of a scenario is sought among all of them too."""
    choices, specialists = [], []
    for figure in FIGURES:
        ratios = ratios_of(problem, [evaluations[point] for point in points], figure)
        choices.append(_choice(problem, figure, points, ratios, int(ratios.max(axis=1).argmin())))
        for column, member in enumerate(problem.members):
            best = int(ratios[:, column].argmin())
            specialists.append((member.name, _choice(problem, figure, points, ratios, best)))
    return Robust(tuple(choices), tuple(specialists))


def ratios_of(problem: SuiteProblem, evaluations: Sequence[Evaluation], figure: str) -> Floats:
    """Return latency or energy over the least of each scenario: float[n, scenarios], 1 for the best."""
    column = FIGURES.index(figure)
    values = np.array(
        [[problem.in_scenario(member, item).metrics[column] for member in problem.members] for item in evaluations]
    )
    ratios: Floats = values / values.min(axis=0)
    return ratios


def robust_lines(found: Robust) -> list[str]:
    """Return the choices as sentences."""
    lines = []
    for choice in found.choices:
        scenario, factor = choice.worst
        lines.append(
            f"Point {choice.point} has at most {factor:.3g} times the least {choice.figure} of any scenario; it is "
            f"farthest from it in {scenario}."
        )
    for name, choice in found.specialists:
        scenario, factor = choice.worst
        elsewhere = (
            f"has {factor:.3g} times the least {choice.figure} in {scenario}" if factor > 1 else "is best in all"
        )
        lines.append(f"Point {choice.point}, best in {name} by {choice.figure}, {elsewhere}.")
    return lines


def _choice(problem: SuiteProblem, figure: str, points: Sequence[int], ratios: Floats, row: int) -> Choice:
    names = (member.name for member in problem.members)
    return Choice(figure, points[row], tuple(zip(names, ratios[row].tolist(), strict=True)))
