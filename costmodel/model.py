"""The learned cost of a task: boosted trees on log(simulated cycles / lower bound), one model per operator kind.

Learning the residual to the bound instead of the cycles leaves the model only what the bound cannot see. Rows go in as
arrays, predictions come out in cycles and never beat the bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

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

    def picked(self, rows: slice) -> "Rows":
        """Return some of the rows."""
        return Rows(self.features[rows], self.cycles[rows], self.bound_cycles[rows])

    @property
    def log_ratio(self) -> Floats:
        """The learned target, log(cycles / bound): float[n]; a bound of no work counts as one cycle."""
        return np.log(np.maximum(self.cycles, 1.0) / np.maximum(self.bound_cycles, 1.0))


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Size of the trees, and how many rows of a kind they learn: the latest of the run, and some of earlier runs.

    `residual` learns the ratio to the bound, without it the cycles themselves.
    """

    trees: int = 200
    depth: int = 5
    learning_rate: float = 0.08
    bins: int = 64
    most_rows: int = 6000
    most_prior: int = 3000
    residual: bool = True


@dataclass(frozen=True, slots=True)
class KindModel:
    """The model of one operator kind; without a booster it predicts a constant ratio.

    The booster's target is the log ratio to the bound, or with `residual` false the log of the cycles.
    """

    constant: float
    booster: xgboost.Booster | None
    residual: bool = True

    def predict_log_ratio(self, features: Floats, bound_cycles: Floats) -> Floats:
        """Return the predicted log(cycles / bound) of each row, at least 0: float[n]."""
        if self.booster is None or len(features) == 0:
            return np.full(len(features), max(self.constant, 0.0))
        predicted = np.asarray(self.booster.inplace_predict(features), dtype=np.float64)
        return np.maximum(predicted if self.residual else predicted - np.log(np.maximum(bound_cycles, 1.0)), 0.0)

    def importance(self, features: int) -> Floats:
        """Return the share of the error that splits on each feature take away: float[features], 0 without trees."""
        shares = np.zeros(features)
        if self.booster is not None:
            for name, gain in self.booster.get_score(importance_type="total_gain").items():
                shares[int(name.removeprefix("f"))] = gain
        return shares / max(float(shares.sum()), TINY)


@dataclass(frozen=True, slots=True)
class CostModel:
    """One model per operator kind; a kind that was never measured is predicted at its bound."""

    kinds: Mapping[str, KindModel]

    def predict(self, kind: str, features: Floats, bound_cycles: Floats) -> Floats:
        """Return the predicted cycles of tasks of one kind, never below the bound: float[n]."""
        if kind not in self.kinds:
            return bound_cycles.astype(np.float64)
        ratio = np.exp(self.kinds[kind].predict_log_ratio(features, bound_cycles))
        return np.maximum(bound_cycles, 1.0) * ratio


FEWEST_ROWS = 8
TINY = float(np.finfo(np.float64).tiny)
DEFAULT_MODEL = ModelSettings()
BOUNDS_ALONE = CostModel({})
NO_ROWS: Mapping[str, Rows] = MappingProxyType({})


def join(first: Rows, second: Rows) -> Rows:
    """Return the rows of both, in order."""
    return Rows(
        np.concatenate([first.features, second.features]),
        np.concatenate([first.cycles, second.cycles]),
        np.concatenate([first.bound_cycles, second.bound_cycles]),
    )


def merge(known: Mapping[str, Rows], new: Mapping[str, Rows]) -> dict[str, Rows]:
    """Return the rows of both, kind by kind."""
    return {**known, **{kind: join(known[kind], rows) if kind in known else rows for kind, rows in new.items()}}


def train(
    rows: Mapping[str, Rows],
    seed: int,
    settings: ModelSettings = DEFAULT_MODEL,
    prior: Mapping[str, Rows] = NO_ROWS,
) -> CostModel:
    """Train one model per kind; the same rows and seed give the same model. `prior` are rows of earlier runs."""
    recent = {kind: found.picked(slice(-settings.most_rows, None)) for kind, found in rows.items()}
    earlier = {kind: _thinned(found, settings.most_prior) for kind, found in prior.items()}
    every = merge(earlier, recent)
    return CostModel({kind: train_kind(every[kind], seed, settings) for kind in sorted(every)})


def train_kind(rows: Rows, seed: int, settings: ModelSettings = DEFAULT_MODEL) -> KindModel:
    """Train the model of one kind on its rows; too few, or all of one ratio, give a constant."""
    ratio = rows.log_ratio
    constant = float(ratio.mean()) if len(ratio) else 0.0
    if len(ratio) < FEWEST_ROWS or np.ptp(ratio) == 0.0:
        return KindModel(constant, None)
    target = ratio if settings.residual else np.log(np.maximum(rows.cycles, 1.0))
    data = xgboost.QuantileDMatrix(rows.features, target, max_bin=settings.bins, nthread=1)
    booster = xgboost.train(_parameters(seed, settings, float(target.mean())), data, settings.trees)
    return KindModel(constant, booster, settings.residual)


def _thinned(rows: Rows, most: int) -> Rows:
    """Return rows spread evenly over all."""
    return rows.picked(slice(None, None, -(-len(rows.cycles) // most))) if len(rows.cycles) > most else rows


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
