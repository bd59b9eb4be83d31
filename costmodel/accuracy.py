"""How good predictions are on data not trained on: ranking, best of the first k, recall of the best, and error.

The search reports these prequentially: each batch is predicted, simulated, compared, and only then learned.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Figures over `count` predictions; pairwise, peak and recall are at best 1, the error is a fraction."""

    count: int
    pairwise: float
    peak_at_1: float
    peak_at_5: float
    top_percent_recall: float
    mape: float


def accuracy(predicted: Floats, measured: Floats) -> Accuracy:
    """Compare predictions with measurements of positive costs that compete with each other: float[n] each, n >= 1."""
    return Accuracy(
        count=len(measured),
        pairwise=pairwise(predicted, measured),
        peak_at_1=peak_at(predicted, measured, 1),
        peak_at_5=peak_at(predicted, measured, 5),
        top_percent_recall=top_recall(predicted, measured, 0.01),
        mape=mean_error(predicted, measured),
    )


def pairwise(predicted: Floats, measured: Floats) -> float:
    """Return the fraction of pairs with unequal measurements that are ranked right; a predicted tie counts half."""
    first, second = np.triu_indices(len(measured), 1)
    true_sign = np.sign(measured[first] - measured[second])
    predicted_sign = np.sign(predicted[first] - predicted[second])
    unequal = true_sign != 0
    if not unequal.any():
        return 1.0
    agreement = (1 + true_sign[unequal] * predicted_sign[unequal]) / 2
    return float(agreement.mean())


def peak_at(predicted: Floats, measured: Floats, k: int) -> float:
    """Return the lowest measured cost over the lowest among the k that are predicted lowest."""
    chosen = np.argsort(predicted, kind="stable")[:k]
    return float(measured.min() / measured[chosen].min())


def top_recall(predicted: Floats, measured: Floats, fraction: float) -> float:
    """Return how much of the measured lowest fraction (at least one) is in the predicted lowest fraction."""
    size = max(1, round(fraction * len(measured)))
    best = np.argsort(measured, kind="stable")[:size]
    chosen = np.argsort(predicted, kind="stable")[:size]
    return float(np.isin(best, chosen).mean())


def mean_error(predicted: Floats, measured: Floats) -> float:
    """Return the mean absolute error as a fraction of the measured cost."""
    return float(np.mean(np.abs(predicted - measured) / measured))
