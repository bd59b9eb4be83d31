"""The Pareto front in projections on two objectives, over all evaluated designs, beside bounds and hand mappings."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from autotune.finished import FinishedRun, front_of, hand_point, overlapped_point
from autotune.front_gap import bounds_front
from autotune.merit import Merit, Sense

Floats = NDArray[np.float64]
COLUMN_INCHES = 3.4
BOUND_COLOUR, FRONT_COLOUR = "0.35", "#0072B2"
HOLLOW: dict[str, Any] = {
    "color": "0.6",
    "markersize": 2.5,
    "markerfacecolor": "none",
    "markeredgewidth": 0.4,
    "linestyle": "none",
}
LEAST_LOG_RANGE = 4.0


def first_and_second(run: FinishedRun) -> Figure:
    """Draw the first two objectives, by default latency against energy, coloured by the third."""
    return _projection(run, 0, 1, 2)


def first_and_third(run: FinishedRun) -> Figure:
    """Draw the first against the third objective, by default latency against area, coloured by the second."""
    return _projection(run, 0, 2, 1)


def log_axis(axes: Axes, name: str, values: Floats) -> None:
    """Make an axis logarithmic with plain numbers where values span enough, and leave it linear otherwise."""
    if not _is_wide(values):
        return
    (axes.set_xscale if name == "x" else axes.set_yscale)("log")
    _plain_logarithmic(axes.xaxis if name == "x" else axes.yaxis)


def staircase(points: Floats, far: Floats) -> Floats:
    """Return the corners of the lower-left staircase of points (float[n, 2]), from and to `far`: float[m, 2]."""
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    lowest = np.minimum.accumulate(ordered[:, 1])
    kept = ordered[np.concatenate([[True], ordered[1:, 1] < lowest[:-1]])]
    corners = [np.array([[kept[0, 0], max(far[1], kept[0, 1])], kept[0]])]
    for before, after in pairwise(kept):
        corners.append(np.array([[after[0], before[1]], after]))
    corners.append(np.array([[max(far[0], kept[-1, 0]), kept[-1, 1]]]))
    return np.concatenate(corners)


def _projection(run: FinishedRun, across: int, up: int, colour: int) -> Figure:
    figure = Figure(figsize=(COLUMN_INCHES, 2.75), layout="constrained")
    axes = figure.subplots()
    objectives, judged, front = run.goals.objectives, run.judged, list(front_of(run))
    shown, bounds = _shown(objectives, judged.objectives), bounds_front(run)
    pair = [across, up]
    fulfilled, missed = shown[judged.feasible], shown[~judged.feasible]
    if len(fulfilled):
        axes.plot(*fulfilled[:, pair].T, ".", color="0.75", markersize=3, label="evaluated", zorder=2)
    if len(missed):
        axes.plot(*missed[:, pair].T, "o", label="misses a requirement", zorder=1, **HOLLOW)
    if len(bounds):
        corners = staircase(bounds[:, pair], judged.objectives[:, pair].max(axis=0))
        line = _shown([objectives[across], objectives[up]], corners)
        axes.plot(*line.T, "--", color=BOUND_COLOUR, linewidth=0.9, label="lower bounds", zorder=3)
    if front:
        _front(figure, axes, shown[front], pair, objectives[colour] if colour < len(objectives) else None, colour)
    for point, marker, label in ((hand_point(run), "*", "hand mapping"), (overlapped_point(run), "D", "overlapped")):
        if point is not None:
            _mark(axes, shown[point, pair], marker, label)
    everything = np.concatenate([shown, _shown(objectives, bounds)])
    log_axis(axes, "x", everything[:, across])
    log_axis(axes, "y", everything[:, up])
    axes.set_xlabel(objectives[across].label)
    axes.set_ylabel(objectives[up].label)
    figure.legend(loc="outside upper center", ncols=3, handletextpad=0.4, columnspacing=1.2)
    return figure


def _shown(objectives: Sequence[Merit], minimised: Floats) -> Floats:
    """Return minimised values (float[n, m]) in the units of the objectives."""
    return np.stack([merit.shown(minimised[:, column]) for column, merit in enumerate(objectives)], axis=1)


def better_corner(across: Merit, up: Merit) -> str:
    """Return in which corner of a projection the best designs would lie."""
    height = "Upper" if up.sense is Sense.MORE else "Lower"
    return f"{height} {'right' if across.sense is Sense.MORE else 'left'}"


def _front(figure: Figure, axes: Axes, shown: Floats, pair: list[int], coloured_by: Merit | None, colour: int) -> None:
    """Draw the front, coloured by a further objective where there is one."""
    style: dict[str, Any] = {"s": 18, "edgecolors": "black", "linewidths": 0.4, "label": "Pareto points", "zorder": 4}
    if coloured_by is None:
        axes.scatter(shown[:, pair[0]], shown[:, pair[1]], color=FRONT_COLOUR, **style)
        return
    values = shown[:, colour]
    dots = axes.scatter(shown[:, pair[0]], shown[:, pair[1]], c=values, cmap="viridis", norm=_norm(values), **style)
    bar = figure.colorbar(dots, ax=axes, pad=0.02, aspect=30)
    bar.set_label(coloured_by.label)
    if _is_wide(values):
        _plain_logarithmic(bar.ax.yaxis)


def _is_wide(values: Floats) -> bool:
    return bool(values.max() / values.min() >= LEAST_LOG_RANGE)


def _norm(values: Floats) -> Normalize:
    low, high = float(values.min()), float(values.max())
    return LogNorm(low, high) if _is_wide(values) else Normalize(low, high)


def _plain_logarithmic(axis: Axis) -> None:
    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _mark(axes: Axes, at: Sequence[float] | Floats, marker: str, label: str) -> None:
    axes.plot(
        [at[0]],
        [at[1]],
        marker,
        color="#d62728",
        markersize=9 if marker == "*" else 5,
        markeredgecolor="white",
        markeredgewidth=0.5,
        linestyle="none",
        label=label,
        zorder=5,
    )
