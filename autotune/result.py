"""What a search reports while it runs and what it returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from autotune.feasibility import Feasibility
from autotune.goals import DEFAULT_GOALS, Goals
from autotune.pareto import Box
from autotune.problem import Codes, Evaluation
from autotune.roofline import RooflineFront
from costmodel.accuracy import Accuracy
from costmodel.intervals import Interval

# Evaluates designs and returns them in the order given; fewer than given means that the user asked to stop.
EvaluateBatch = Callable[[Codes], Sequence[Evaluation]]


class StopReason(StrEnum):
    """Why a search ended."""

    BUDGET = "budget spent"
    ENUMERATED = "every legal design evaluated"
    EXHAUSTED = "no new design found"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "no legal design found"
    WITHIN = "near enough to the bounds"
    OUT_OF_REACH = "requirements out of reach"


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One finished batch: evaluations so far, hypervolume of the front and of the bounds, and how it was predicted.

    No known bound is better than the front by more than `left_factor`; infinite while nothing is feasible.
    `best` holds the best value of each objective with its unit, among the `feasible` designs if there are any, in which
    case `least_violation` is 0. `accuracy` holds "latency" and each task, predicted before the batch was learned; empty
    for the first batch.
    """

    evaluated: int
    budget: int
    hypervolume: float
    bound_hypervolume: float
    best: tuple[tuple[float, str], ...]
    accuracy: tuple[tuple[str, Accuracy], ...]
    feasible: int
    least_violation: float = 0.0
    left_factor: float = float("inf")
    interval: Interval | None = None


class Observer(Protocol):
    """Sees a search run; it cannot influence it."""

    def phase(self, text: str) -> None:
        """Called when a part of the work begins that simulates nothing."""
        ...

    def evaluated(self, evaluation: Evaluation) -> None:
        """Called when one design is finished, in the order of finishing."""
        ...

    def batch_finished(self, report: BatchReport) -> None:
        """Called when a batch is finished and compared with its prediction."""
        ...


@dataclass(frozen=True, slots=True)
class Silent:
    """The observer that shows nothing."""

    def phase(self, text: str) -> None:
        """Show nothing."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """Show nothing."""

    def batch_finished(self, report: BatchReport) -> None:
        """Show nothing."""


SILENT = Silent()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """All evaluations in the order proposed, and what is needed to judge them.

    `box` is None when nothing is legal; `repeats` counts proposals that had been evaluated before and cost nothing.
    """

    evaluations: tuple[Evaluation, ...]
    batches: tuple[BatchReport, ...]
    roofline: RooflineFront
    box: Box | None
    stop: StopReason
    note: str
    repeats: int
    feasibility: Feasibility
    goals: Goals = DEFAULT_GOALS
