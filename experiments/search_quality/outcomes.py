"""One run of one strategy on exact evaluations: its hypervolume after every design, and the time it took.

Every evaluation is charged the mean time that one takes, whether it was simulated now or before; what the strategy
thinks is timed. With an allowance a run ends when its time, simulations included, is used up.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.learning import metrics_of
from autotune.problem import Codes, Evaluation
from autotune.search import search
from costmodel.lessons import NO_PRIOR, Prior
from experiments.search_quality.compared import SAMPLERS, VARIANTS
from experiments.search_quality.ground_truth import GroundTruth

Floats = NDArray[np.float64]
SIMULATIONS, TIME = "simulations", "time"
NINETY_NINE = 0.99


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: `equal` says what it had as much of as ours; `thinking_s` is its process time without simulations."""

    strategy: str
    seed: int
    equal: str
    evaluations: tuple[Evaluation, ...]
    hypervolumes: Floats
    thinking_s: float
    simulation_s: float

    @property
    def hypervolume(self) -> float:
        """The final hypervolume as a fraction of the exact front's."""
        return float(self.hypervolumes[-1]) if len(self.hypervolumes) else 0.0

    @property
    def seconds(self) -> float:
        """Process time with every evaluation charged."""
        return self.thinking_s + len(self.evaluations) * self.simulation_s

    def evaluations_to(self, share: float) -> int | None:
        """Return after how many evaluations a share of the exact hypervolume was reached; None if never."""
        reached = np.flatnonzero(self.hypervolumes >= share)
        return int(reached[0]) + 1 if len(reached) else None


class Served:
    """Serves exact evaluations and remembers them; may stop when a time allowance is used up."""

    def __init__(self, truth: GroundTruth, allowance_s: float | None = None) -> None:
        """Start the clock."""
        self._truth, self._allowance_s = truth, allowance_s
        self._start, self._simulating_s = time.process_time(), 0.0
        self.evaluations: list[Evaluation] = []

    @property
    def thinking_s(self) -> float:
        """Process time so far without what simulating took."""
        return time.process_time() - self._start - self._simulating_s

    def __call__(self, designs: Codes) -> Sequence[Evaluation]:
        """Serve a batch; fewer than asked for once the allowance is used up."""
        if self._allowance_s is not None:
            left_s = self._allowance_s - self.thinking_s - len(self.evaluations) * self._truth.proof.simulation_s
            designs = designs[: max(0, int(left_s / self._truth.proof.simulation_s))]
        start = time.process_time()
        answers = self._truth.evaluate(designs) if len(designs) else ()
        self._simulating_s += time.process_time() - start
        self.evaluations += answers
        return answers


def run(
    truth: GroundTruth,
    strategy: str,
    budget: int,
    seed: int,
    prior: Prior = NO_PRIOR,
    allowance_s: float | None = None,
) -> Outcome:
    """Run one strategy once, to a number of evaluations or to a time."""
    served = Served(truth, allowance_s)
    if strategy in VARIANTS:
        variant = VARIANTS[strategy]
        known = prior if variant.warm else NO_PRIOR
        search(truth.problem, budget, seed, served, settings=variant.settings, prior=known)
    else:
        SAMPLERS[strategy](truth.problem, budget, seed, served)
    thinking_s = served.thinking_s
    equal = SIMULATIONS if allowance_s is None else TIME
    found = tuple(served.evaluations)
    return Outcome(strategy, seed, equal, found, growth(truth, found), thinking_s, truth.proof.simulation_s)


def growth(truth: GroundTruth, evaluations: Sequence[Evaluation]) -> Floats:
    """Return the hypervolume after each evaluation as a fraction of the exact front's: float[n]."""
    metrics = metrics_of(evaluations)
    front = metrics[:0]
    volumes = np.zeros(len(metrics))
    for row in range(len(metrics)):
        improves = not (front <= metrics[row]).all(axis=1).any()
        if improves:
            behind = (metrics[row] <= front).all(axis=1)
            front = np.concatenate([front[~behind], metrics[row : row + 1]])
        volumes[row] = truth.share(front) if improves else volumes[row - 1]
    return volumes
