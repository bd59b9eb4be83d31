"""What the runs of a problem show: one row per strategy, the growth of the hypervolume, and all points for others."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from autotune.figures import figure_style, save_figure
from autotune.pareto import REFERENCE
from experiments.search_quality.ground_truth import GroundTruth
from experiments.search_quality.outcomes import NINETY_NINE, SIMULATIONS, Outcome

COLUMNS = ("latency_ns", "energy_pj", "area_mm2")


def summary(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return one row per strategy and kind of equality, in the order in which they ran."""
    groups = dict.fromkeys((outcome.strategy, outcome.equal) for outcome in outcomes)
    return pd.DataFrame([_row([o for o in outcomes if (o.strategy, o.equal) == group]) for group in groups])


def _row(runs: Sequence[Outcome]) -> dict[str, object]:
    volumes = [outcome.hypervolume for outcome in runs]
    reached = [outcome.evaluations_to(NINETY_NINE) for outcome in runs]
    every = all(count is not None for count in reached)
    return {
        "strategy": runs[0].strategy,
        "equal": runs[0].equal,
        "seeds": len(runs),
        "hypervolume_mean": float(np.mean(volumes)),
        "hypervolume_sd": float(np.std(volumes)),
        "hypervolume_min": min(volumes),
        "at_100": _mean_at(runs, 100),
        "at_200": _mean_at(runs, 200),
        "evaluations_mean": float(np.mean([len(outcome.evaluations) for outcome in runs])),
        "evaluations_to_99_percent": float(np.mean([c for c in reached if c is not None])) if every else None,
        "thinking_s_mean": float(np.mean([outcome.thinking_s for outcome in runs])),
        "seconds_mean": float(np.mean([outcome.seconds for outcome in runs])),
    }


def _mean_at(runs: Sequence[Outcome], count: int) -> float | None:
    """Return the mean hypervolume after some evaluations; None where a run had fewer."""
    if any(len(outcome.hypervolumes) < count for outcome in runs):
        return None
    return float(np.mean([outcome.hypervolumes[count - 1] for outcome in runs]))


def draw_growth(outcomes: Sequence[Outcome], title: str, folder: Path) -> None:
    """Draw the mean hypervolume over evaluations, with the range over seeds, as PDF and PNG."""
    with figure_style():
        figure = Figure(figsize=(5.2, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for name in dict.fromkeys(o.strategy for o in outcomes if o.equal == SIMULATIONS):
            runs = [o.hypervolumes for o in outcomes if (o.strategy, o.equal) == (name, SIMULATIONS)]
            length = min(map(len, runs))
            missing = 1.0 - np.stack([volumes[:length] for volumes in runs])
            counts = np.arange(1, length + 1)
            (line,) = axes.plot(counts, missing.mean(axis=0), label=name, linewidth=1.1)
            axes.fill_between(counts, missing.min(axis=0), missing.max(axis=0), color=line.get_color(), alpha=0.12)
        axes.set_yscale("log")
        axes.set_xlabel("evaluations")
        axes.set_ylabel("hypervolume missing of the exact front's")
        axes.set_title(title)
        axes.legend(ncols=2)
        save_figure(figure, "growth", title, folder)


def dump(truth: GroundTruth, outcomes: Sequence[Outcome], folder: Path) -> None:
    """Write the exact front, its box, and every point of every run with the values of its knobs, as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    _points(truth, truth.front.tolist(), truth.front_metrics.tolist()).to_csv(folder / "front.csv", index=False)
    box = pd.DataFrame({"objective": COLUMNS, "ideal": truth.box.ideal, "nadir": truth.box.nadir})
    box["reference_on_log_axis"] = REFERENCE
    box.to_csv(folder / "box.csv", index=False)
    for outcome in outcomes:
        codes = [list(evaluation.codes) for evaluation in outcome.evaluations]
        points = _points(truth, codes, [list(evaluation.metrics) for evaluation in outcome.evaluations])
        points["hypervolume_share"] = outcome.hypervolumes
        name = f"{outcome.strategy}-{outcome.equal}-{outcome.seed}".replace(",", "").replace(" ", "-")
        points.to_csv(folder / f"{name}.csv", index=False)


def _points(truth: GroundTruth, codes: list[list[int]], metrics: list[list[float]]) -> pd.DataFrame:
    knobs = truth.problem.knobs
    values = [{knob.label: knob.values[code] for knob, code in zip(knobs, row, strict=True)} for row in codes]
    numbers = [dict(zip(COLUMNS, row, strict=True)) for row in metrics]
    return pd.DataFrame([left | right for left, right in zip(values, numbers, strict=True)])
