"""What a run says of its predictions when it ends: their intervals, and how much earlier runs helped the first ones."""

import numpy as np

from autotune.learning import codes_of, metrics_of
from autotune.problem import Problem
from autotune.result import SearchResult
from autotune.roofline import roofline
from costmodel.accuracy import mean_error


def model_lines(problem: Problem, result: SearchResult, predictor: str) -> list[str]:
    """Return a line on the 90 % intervals of latencies, and one on the warm start if there was one.

    The predictor is what the setting says: learned, or lower bounds alone.
    """
    lines = []
    intervals = [batch.interval for batch in result.batches if batch.interval is not None]
    if intervals:
        count, covered = (sum(getattr(item, name) for item in intervals) for name in ("count", "covered"))
        factor = float(np.median([item.factor for item in intervals]))
        lines.append(
            f"cost model ({predictor}): {covered / count:.1%} of {count} latencies lay in their 90 % intervals, "
            f"within a factor of {factor:.3f} at the median"
        )
    first = result.batches[0] if result.batches else None
    if first is not None and first.accuracy:
        learned = dict(first.accuracy)["latency"].mape
        known = result.evaluations[: first.evaluated]
        bounds = roofline(problem, codes_of(known, len(problem.knobs)))[:, 0]
        alone = mean_error(bounds, metrics_of(known)[:, 0])
        lines.append(
            f"warm start: latencies of the first {first.evaluated} designs were predicted to {learned:.1%}, "
            f"by the bounds alone to {alone:.1%}"
        )
    return lines
