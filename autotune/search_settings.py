"""Sizes of the search's stages, and its parts that a comparison can leave out."""

from dataclasses import dataclass

from autotune.roofline import DEFAULT_ROOFLINE, RooflineSettings
from autotune.screening import DEFAULT_SCREENING, ScreeningSettings
from costmodel.model import DEFAULT_MODEL, ModelSettings


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Sizes of the stages; small budgets shrink the first designs and the batches.

    Most of the first designs come from the roofline front; the rest covers pairs of knob values, so that no corner that
    is rarely legal stays unknown to the model. A batch explores more when the one before grew the hypervolume little.
    The model is trained again when the record has grown by `retrain_growth`, so that the number of trainings grows with
    the logarithm of a run. Without `learned` predictions are the bounds; without `roofline_box` the box of the
    hypervolume is that of the designs simulated so far.
    """

    first: int = 40
    warm_first: int = 12
    batch: int = 10
    late_batch: int = 20
    late_after: int = 140
    roofline_share: float = 0.75
    explore_share: float = 0.1
    stalled_share: float = 0.5
    stalled_growth: float = 1e-3
    enumerable: int = 1 << 18
    retrain_growth: float = 0.05
    learned: bool = True
    roofline_box: bool = True
    roofline: RooflineSettings = DEFAULT_ROOFLINE
    screening: ScreeningSettings = DEFAULT_SCREENING
    model: ModelSettings = DEFAULT_MODEL

    def first_count(self, budget: int, baselines: int, warm: bool = False) -> int:
        """Return how many designs are evaluated before the model has a say; fewer where it has learned before."""
        wanted = self.warm_first if warm else self.first
        return min(budget, max(min(wanted, budget * 2 // 5), baselines + 3))

    def batch_count(self, budget: int, evaluated: int) -> int:
        """Return the size of the next batch."""
        early = max(4, min(self.batch, budget // 10))
        wanted = self.late_batch if evaluated >= self.late_after else early
        return min(wanted, budget - evaluated)


DEFAULT_SEARCH = SearchSettings()
