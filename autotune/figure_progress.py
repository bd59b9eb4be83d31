"""How the search went: hypervolume, accuracy of the cost model, and the knees of the hardware knobs."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from autotune.figure_front import BOUND_COLOUR, COLUMN_INCHES, log_axis
from autotune.findings import Knee, knees
from autotune.finished import FinishedRun
from autotune.units import MS_PER_NS

LINE, SECOND_LINE = "#0072B2", "#D55E00"
KNEE_COLUMNS = 3


def hypervolume_progress(run: FinishedRun) -> Figure:
    """Draw hypervolume over evaluations with the bound."""
    figure = Figure(figsize=(COLUMN_INCHES, 2.0), layout="constrained")
    axes = figure.subplots()
    batches = run.result.batches
    evaluated = [batch.evaluated for batch in batches]
    axes.plot(evaluated, [batch.hypervolume for batch in batches], "o-", color=LINE, markersize=2.5, label="front")
    axes.axhline(batches[-1].bound_hypervolume, color=BOUND_COLOUR, linestyle="--", label="lower bounds")
    axes.set_xlim(0, max(evaluated) * 1.02)
    axes.set_xlabel("evaluations")
    axes.set_ylabel("hypervolume (log, scaled)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def cost_model_accuracy(run: FinishedRun) -> Figure:
    """Draw ranking accuracy and error of predicted latency over the batches."""
    figure = Figure(figsize=(COLUMN_INCHES, 2.6), layout="constrained")
    ranking, error = figure.subplots(2, 1, sharex=True)
    found = [(batch.evaluated, dict(batch.accuracy)["latency"]) for batch in run.result.batches if batch.accuracy]
    evaluated = [count for count, _ in found]
    ranking.plot(evaluated, [100 * item.pairwise for _, item in found], "o-", color=LINE, markersize=2.5)
    ranking.set_ylabel("pairs ranked\nright (%)")
    ranking.set_ylim(top=101)
    error.plot(evaluated, [100 * item.mape for _, item in found], "o-", color=SECOND_LINE, markersize=2.5)
    error.set_ylabel("mean error of\nlatency (%)")
    error.set_ylim(bottom=0)
    error.set_xlabel("evaluations")
    error.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


# Endings of names that say the unit, which labels say by themselves.
UNIT_ENDINGS = ("_bytes", "_percent", "_cycles", "_mhz", "_c")


def knob_knees(run: FinishedRun) -> Figure:
    """Draw the lowest latency with every value of every hardware knob."""
    found = [knee for knee in knees(run) if len(knee.best) > 1] or list(knees(run))[:1]
    lines = -(-len(found) // KNEE_COLUMNS)
    figure = Figure(figsize=(2 * COLUMN_INCHES, 1.7 * lines), layout="constrained")
    grid = np.ravel(figure.subplots(lines, KNEE_COLUMNS, sharey=True, squeeze=False))
    for axes, knee in zip(grid, found, strict=False):
        _knee(axes, knee)
    log_axis(grid[0], "y", np.array([item.latency_ns for knee in found for item in knee.best]))
    for axes in grid[len(found) :]:
        axes.set_visible(False)
    for axes in grid[::KNEE_COLUMNS]:
        axes.set_ylabel("lowest latency (ms)")
    return figure


def _knee(axes: Axes, knee: Knee) -> None:
    values = [item.value for item in knee.best]
    latencies = [item.latency_ns * MS_PER_NS for item in knee.best]
    axes.plot(range(len(values)), latencies, "o-" if isinstance(values[0], int) else "o", color=LINE, markersize=3.5)
    for place, (item, latency) in enumerate(zip(knee.best, latencies, strict=True)):
        axes.annotate(
            str(item.point),
            (place, latency),
            (0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=6,
            color="0.3",
        )
        if item.value == knee.knee:
            axes.plot([place], [latency], "o", markersize=8, markerfacecolor="none", color=SECOND_LINE)
    axes.set_xticks(range(len(values)), [str(value) for value in values])
    axes.margins(x=0.12, y=0.15)
    axes.set_xlabel(knob_label(knee.knob, knee.unit))


def knob_label(name: str, unit: str) -> str:
    """Return a knob's name as words with its unit."""
    words = name
    for ending in UNIT_ENDINGS if unit else ():
        words = words.removesuffix(ending)
    return words.replace("_", " ") + (f" ({unit})" if unit else "")
