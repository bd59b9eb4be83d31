"""What a run says of its requirements: how many points miss each, how far the best one goes, which ones miss least."""

from dataclasses import dataclass
from math import expm1

import numpy as np

from autotune.finished import JudgedRun, nearest_of
from autotune.goals import facts_of
from autotune.learning import codes_of, metrics_of
from autotune.units import four_digits


@dataclass(frozen=True, slots=True)
class RequirementCount:
    """A requirement: how many evaluated points violate it, and the one that goes farthest on its good side.

    `best_value` is that point's figure in the unit of the limit; `best_excess` by which share it still misses, or 0.
    """

    requirement: str
    figure: str
    operator: str
    limit: float
    unit: str
    evaluated: int
    violated: int
    best_point: int
    best_value: float
    best_excess: float


@dataclass(frozen=True, slots=True)
class Miss:
    """A requirement that a point misses: its value, and by which share it is beyond the limit."""

    requirement: str
    value: float
    excess: float


@dataclass(frozen=True, slots=True)
class NearestPoint:
    """A point of a run without feasible ones: its violation, and every requirement that it misses."""

    point: int
    violation: float
    misses: tuple[Miss, ...]


def requirement_counts(run: JudgedRun) -> tuple[RequirementCount, ...]:
    """Return every requirement with its count, in the order given; none without evaluations."""
    if not run.evaluations:
        return ()
    margins, values = run.judged.margins, _values(run)
    found = []
    for column, item in enumerate(run.goals.requirements):
        best = int(margins[:, column].argmin())
        found.append(
            RequirementCount(
                requirement=str(item),
                figure=item.merit.figure,
                operator=item.operator,
                limit=item.limit,
                unit=item.merit.unit,
                evaluated=len(run.evaluations),
                violated=int((margins[:, column] > 0.0).sum()),
                best_point=best,
                best_value=float(values[best, column]),
                best_excess=expm1(max(0.0, float(margins[best, column]))),
            )
        )
    return tuple(found)


def nearest_misses(run: JudgedRun) -> tuple[NearestPoint, ...]:
    """Return the points that miss least, the nearest first; none where a point is feasible."""
    points = nearest_of(run)
    if not points:
        return ()
    judged, values = run.judged, _values(run)
    return tuple(
        NearestPoint(
            point,
            float(judged.violations[point]),
            tuple(
                Miss(str(item), float(values[point, column]), expm1(float(judged.margins[point, column])))
                for column, item in enumerate(run.goals.requirements)
                if judged.margins[point, column] > 0.0
            ),
        )
        for point in points
    )


def miss_text(item: NearestPoint) -> str:
    """Return what a point misses, in words."""
    return ", ".join(f"{miss.requirement} by {miss.excess:.1%} (has {four_digits(miss.value)})" for miss in item.misses)


def _values(run: JudgedRun) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the figure of every requirement for every evaluation: float[n, r]."""
    codes, metrics = codes_of(run.evaluations, len(run.problem.knobs)), metrics_of(run.evaluations)
    facts = facts_of(run.problem, codes)
    columns = [item.merit.value(metrics, facts) for item in run.goals.requirements]
    return np.stack(columns, axis=1) if columns else np.zeros((len(metrics), 0))
