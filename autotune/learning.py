"""What evaluations teach: rows for the cost model, and how well a batch was predicted before it was learned."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.problem import Codes, Evaluation, Problem
from costmodel.accuracy import Accuracy, accuracy
from costmodel.intervals import COVERAGE, interval_half_width
from costmodel.model import CostModel, Rows, join

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted and then simulated cycles per task (float[n, tasks]) and latency (float[n]) of evaluated designs."""

    predicted_cycles: Floats
    measured_cycles: Floats
    predicted_latency_ns: Floats
    measured_latency_ns: Floats

    @property
    def latency_log_errors(self) -> Floats:
        """log(predicted / measured) of each latency: float[n]."""
        return np.log(self.predicted_latency_ns / self.measured_latency_ns)


def codes_of(evaluations: Sequence[Evaluation], knobs: int) -> Codes:
    """Return the designs of evaluations: int[n, k]."""
    return np.array([evaluation.codes for evaluation in evaluations], dtype=np.int64).reshape(len(evaluations), knobs)


def metrics_of(evaluations: Sequence[Evaluation]) -> Floats:
    """Return the metrics of evaluations: float[n, 3]."""
    return np.array([evaluation.metrics for evaluation in evaluations], dtype=np.float64).reshape(-1, 3)


def cycles_of(problem: Problem, evaluations: Sequence[Evaluation]) -> tuple[Floats, Floats]:
    """Return the simulated and the bound cycles of evaluations in the order of the problem's tasks: float[n, tasks]."""
    pairs = np.zeros((2, len(evaluations), len(problem.tasks)))
    for row, evaluation in enumerate(evaluations):
        found = {measured.task: (measured.cycles, measured.bound_cycles) for measured in evaluation.tasks}
        pairs[:, row, :] = np.array([found[task] for task in problem.tasks], dtype=np.float64).T
    return pairs[0], pairs[1]


def rows_of(
    problem: Problem, evaluations: Sequence[Evaluation], columns: Sequence[int] | None = None
) -> dict[str, Rows]:
    """Return what evaluations teach about each operator kind, from all tasks or from those of some columns."""
    codes = codes_of(evaluations, len(problem.knobs))
    cycles, bounds = cycles_of(problem, evaluations)
    rows: dict[str, Rows] = {}
    for column in range(len(problem.tasks)) if columns is None else columns:
        task = problem.tasks[column]
        new = Rows(problem.features(codes, task), cycles[:, column], bounds[:, column])
        kind = problem.kind(task)
        rows[kind] = join(rows[kind], new) if kind in rows else new
    return rows


def forecast(problem: Problem, model: CostModel, evaluations: Sequence[Evaluation]) -> Forecast:
    """Compare evaluations with what a model that has not seen them predicts."""
    codes = codes_of(evaluations, len(problem.knobs))
    predicted = predict_cycles(problem, model, codes)
    measured, _ = cycles_of(problem, evaluations)
    latency_ns = problem.metrics(codes, predicted)[:, 0]
    return Forecast(predicted, measured, latency_ns, metrics_of(evaluations)[:, 0])


def predict_cycles(problem: Problem, model: CostModel, codes: Codes) -> Floats:
    """Return the predicted cycles of every task under each design: float[n, tasks]."""
    bounds = problem.bound_cycles(codes)
    predicted = bounds.astype(np.float64)
    for column, task in enumerate(problem.tasks):
        if problem.kind(task) in model.kinds:
            features = problem.features(codes, task)
            predicted[:, column] = model.predict(problem.kind(task), features, bounds[:, column])
    return predicted


def accuracies(problem: Problem, seen: Forecast) -> tuple[tuple[str, Accuracy], ...]:
    """Return the accuracy for the design's latency and for each task: only designs of one task compete."""
    whole = accuracy(seen.predicted_latency_ns, seen.measured_latency_ns)
    tasks = (
        (task, accuracy(seen.predicted_cycles[:, column], seen.measured_cycles[:, column]))
        for column, task in enumerate(problem.tasks)
    )
    return ("latency", whole), *tasks


def optimism(problem: Problem, recent: Sequence[Forecast], unseen_log_width: float = 0.0) -> Floats:
    """Return the factor by which each task may be faster than predicted, from recent errors: float[tasks].

    Before any, it is what a device or a model that was never seen must expect: `unseen_log_width`.
    """
    factors = np.ones(len(problem.tasks))
    for column in range(len(problem.tasks)):
        errors = [np.log(seen.predicted_cycles[:, column] / seen.measured_cycles[:, column]) for seen in recent]
        width = interval_half_width(np.concatenate(errors), COVERAGE) if errors else unseen_log_width
        factors[column] = np.exp(-width)
    return factors
