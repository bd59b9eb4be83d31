"""The Pareto front in two projections, over all evaluated designs, beside the bounds and the hand mapping."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from autotune.finished import FinishedRun, front_of, hand_point, overlapped_point
from autotune.front_gap import bounds_front
from autotune.units import MJ_PER_PJ, MS_PER_NS

Floats = NDArray[np.float64]
COLUMN_INCHES = 3.4
TO_SHOWN = np.array([MS_PER_NS, MJ_PER_PJ, 1.0])
BOUND_COLOUR = "0.35"
LEAST_LOG_RANGE = 4.0


@dataclass(frozen=True, slots=True)
class _Objective:
    """An objective: its column and its label."""

    column: int
    label: str


LATENCY = _Objective(0, "latency per token (ms)")
ENERGY = _Objective(1, "energy per token (mJ)")
AREA = _Objective(2, "DRAM silicon (mm²)")


def latency_energy(run: FinishedRun) -> Figure:
    """Draw latency against energy, coloured by area."""
    return _projection(run, LATENCY, ENERGY, AREA)


def latency_area(run: FinishedRun) -> Figure:
    """Draw latency against area, coloured by energy."""
    return _projection(run, LATENCY, AREA, ENERGY)


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


def _projection(run: FinishedRun, across: _Objective, up: _Objective, colour: _Objective) -> Figure:
    figure = Figure(figsize=(COLUMN_INCHES, 2.75), layout="constrained")
    axes = figure.subplots()
    shown = np.array([item.objectives for item in run.evaluations]) * TO_SHOWN
    bounds = bounds_front(run) * TO_SHOWN
    front = list(front_of(run))
    axes.plot(*shown[:, [across.column, up.column]].T, ".", color="0.75", markersize=3, label="evaluated", zorder=2)
    if len(bounds):
        axes.plot(
            *staircase(bounds[:, [across.column, up.column]], shown[:, [across.column, up.column]].max(axis=0)).T,
            "--",
            color=BOUND_COLOUR,
            linewidth=0.9,
            label="lower bounds",
            zorder=3,
        )
    dots = axes.scatter(
        shown[front, across.column],
        shown[front, up.column],
        c=shown[front, colour.column],
        cmap="viridis",
        norm=_norm(shown[front, colour.column]),
        s=18,
        edgecolors="black",
        linewidths=0.4,
        label="Pareto points",
        zorder=4,
    )
    for point, marker, label in ((hand_point(run), "*", "hand mapping"), (overlapped_point(run), "D", "overlapped")):
        if point is not None:
            _mark(axes, shown[point, [across.column, up.column]], marker, label)
    everything = np.concatenate([shown, bounds])
    log_axis(axes, "x", everything[:, across.column])
    log_axis(axes, "y", everything[:, up.column])
    axes.set_xlabel(across.label)
    axes.set_ylabel(up.label)
    bar = figure.colorbar(dots, ax=axes, pad=0.02, aspect=30)
    bar.set_label(colour.label)
    if _is_wide(shown[front, colour.column]):
        _plain_logarithmic(bar.ax.yaxis)
    figure.legend(loc="outside upper center", ncols=3, handletextpad=0.4, columnspacing=1.2)
    return figure


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
