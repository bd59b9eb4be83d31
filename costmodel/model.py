"""The learned cost of a task: boosted trees on log(simulated cycles / lower bound), one model per operator kind.

Learning the residual to the bound instead of the cycles leaves the model only what the bound cannot see. Rows go in as
arrays, predictions come out in cycles and never beat the bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xgboost
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Measured tasks of one operator kind: features float[n, f], simulated and lower-bound cycles float[n]."""

    features: Floats
    cycles: Floats
    bound_cycles: Floats

    @property
    def log_ratio(self) -> Floats:
        """The learned target, log(cycles / bound): float[n]; a bound of no work counts as one cycle."""
        return np.log(np.maximum(self.cycles, 1.0) / np.maximum(self.bound_cycles, 1.0))


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Size of the trees; the defaults retrain in about 0.15 s up to `most_rows` rows."""

    trees: int = 200
    depth: int = 5
    learning_rate: float = 0.08
    bins: int = 64
    most_rows: int = 6000


@dataclass(frozen=True, slots=True)
class KindModel:
    """The model of one operator kind; without a booster it predicts a constant ratio."""

    constant: float
    booster: xgboost.Booster | None

    def predict_log_ratio(self, features: Floats) -> Floats:
        """Return the predicted log(cycles / bound) of each row, at least 0: float[n]."""
        if self.booster is None or len(features) == 0:
            return np.full(len(features), max(self.constant, 0.0))
        predicted = np.asarray(self.booster.inplace_predict(features), dtype=np.float64)
        return np.maximum(predicted, 0.0)


@dataclass(frozen=True, slots=True)
class CostModel:
    """One model per operator kind; a kind that was never measured is predicted at its bound."""

    kinds: Mapping[str, KindModel]

    def predict(self, kind: str, features: Floats, bound_cycles: Floats) -> Floats:
        """Return the predicted cycles of tasks of one kind, never below the bound: float[n]."""
        if kind not in self.kinds:
            return bound_cycles.astype(np.float64)
        ratio = np.exp(self.kinds[kind].predict_log_ratio(features))
        return np.maximum(bound_cycles, 1.0) * ratio


FEWEST_ROWS = 8
DEFAULT_MODEL = ModelSettings()


def train(rows: Mapping[str, Rows], seed: int, settings: ModelSettings = DEFAULT_MODEL) -> CostModel:
    """Train one model per kind; the same rows and seed give the same model."""
    return CostModel({kind: train_kind(rows[kind], seed, settings) for kind in sorted(rows)})


def train_kind(rows: Rows, seed: int, settings: ModelSettings = DEFAULT_MODEL) -> KindModel:
    """Train the model of one kind on its rows; too few, or all of one ratio, give a constant."""
    recent = slice(-settings.most_rows, None)
    features, target = rows.features[recent], rows.log_ratio[recent]
    constant = float(target.mean()) if len(target) else 0.0
    if len(target) < FEWEST_ROWS or np.ptp(target) == 0.0:
        return KindModel(constant, None)
    data = xgboost.QuantileDMatrix(features, target, max_bin=settings.bins, nthread=1)
    booster = xgboost.train(_parameters(seed, settings, constant), data, settings.trees)
    return KindModel(constant, booster)


def _parameters(seed: int, settings: ModelSettings, constant: float) -> dict[str, str | int | float]:
    """The boosting parameters; a second thread was 25 times slower on these few rows, so there is one."""
    return {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "max_depth": settings.depth,
        "eta": settings.learning_rate,
        "max_bin": settings.bins,
        "base_score": constant,
        "seed": seed,
        "nthread": 1,
        "verbosity": 0,
    }
