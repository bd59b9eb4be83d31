"""Where time and energy of a token go, as stacked bars of a few points."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from autotune.figure_front import COLUMN_INCHES
from autotune.finished import FinishedRun, NamedPoint, shown_points
from autotune.units import MJ_PER_PJ, MS_PER_NS

# Okabe and Ito's palette, told apart with every kind of colour vision, and two greys.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "0.45", "0.7")
OTHER = "host, embedding"
ENERGY_PLACES = {
    "energy_rows_pj": "rows",
    "energy_columns_pj": "columns, units",
    "energy_data_bus_pj": "data bus",
    "energy_controller_pj": "controller",
    "energy_phy_pj": "PHY",
    "energy_refresh_pj": "refresh",
    "energy_standby_pj": "standby",
    "energy_link_pj": "link",
}


def latency_breakdown(run: FinishedRun) -> Figure:
    """Draw the time of every operator over a step."""
    parts = {item: latency_parts_ms(run, item.point) for item in shown_points(run)}
    return _bars(parts, "ms", "share of latency per token (%)", as_shares=True)


def energy_breakdown(run: FinishedRun) -> Figure:
    """Draw the energy by place."""
    parts = {item: energy_parts_mj(run, item.point) for item in shown_points(run)}
    return _bars(parts, "mJ", "energy per token (mJ)", as_shares=False)


def latency_parts_ms(run: FinishedRun, point: int) -> dict[str, float]:
    """Return the time of a token by operator; the last entry is the rest of the latency."""
    item = run.evaluations[point]
    to_ms = run.problem.scenario.base.nanoseconds(1) * MS_PER_NS
    occurrences = dict(zip(run.problem.tasks, run.problem.occurrences.tolist(), strict=True))
    parts = {task.task: task.cycles * occurrences[task.task] * to_ms for task in item.tasks}
    # Cycles per occurrence are rounded up, so that the operators can add up to a little more than the latency.
    return {**parts, OTHER: max(0.0, item.latency_ns * MS_PER_NS - sum(parts.values()))}


def energy_parts_mj(run: FinishedRun, point: int) -> dict[str, float]:
    """Return the energy of a token by place, of the places that are modelled."""
    details = dict(run.evaluations[point].details)
    return {label: details[name] * MJ_PER_PJ for name, label in ENERGY_PLACES.items() if name in details}


def _bars(parts: Mapping[NamedPoint, Mapping[str, float]], unit: str, label: str, *, as_shares: bool) -> Figure:
    """Draw one bar per point with its total behind it; shares let points of very different totals be compared."""
    height = 0.95 + 0.26 * len(parts)
    figure = Figure(figsize=(COLUMN_INCHES, height), layout="constrained")
    axes = figure.subplots()
    rows = np.arange(len(parts))[::-1]
    totals = np.array([sum(values.values()) for values in parts.values()])
    left = np.zeros(len(parts))
    names = list(dict.fromkeys(name for values in parts.values() for name in values))
    for index, name in enumerate(names):
        widths = np.array([values.get(name, 0.0) for values in parts.values()])
        widths = 100 * widths / totals if as_shares else widths
        colour = COLOURS[index % len(COLOURS)] if name != OTHER else "0.7"
        axes.barh(rows, widths, left=left, color=colour, height=0.68, edgecolor="white", linewidth=0.3, label=name)
        left += widths
    for row, end, total in zip(rows, left, totals, strict=True):
        text = f"{total:.3g} {unit}"
        axes.annotate(text, (end, row), (2, 0), textcoords="offset points", va="center", fontsize=6)
    axes.set_yticks(rows, [f"{item.name} (point {item.point})" for item in parts])
    axes.set_xlim(0, left.max() * 1.18)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    if as_shares:
        axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel(label)
    figure.legend(loc="outside upper center", ncols=4, handlelength=1, handletextpad=0.4, columnspacing=1)
    return figure
