"""Fixed points beside every front: GPU rooflines with published measurements, and PIM devices as others built them.

Energies stand on typical currents, those of a GPU are latency times board power: an upper bound of the board, not a
measurement. What a device cannot run is left out with the reason.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from autotune.figure_front import log_axis
from autotune.figures import Drawing, figure_style, save_figure
from autotune.finished import FinishedRun, front_of
from autotune.reference_points import ReferencePoint, reference_points, simulated_reference
from autotune.tables import write_csv
from autotune.units import MJ_PER_PJ, MS_PER_NS
from compiler.workload import Workload
from configs.device import Device, load_device
from configs.errors import UserError
from configs.knobs import base_knobs
from configs.structure import PimLevel
from simulator.laws.device import scaled_device

PIM_DEVICES = ("gddr6-aim", "hbm-pim", "hbm-pim-like", "attacc")
OTHER_LEVELS = (PimLevel.BANK_GROUP, PimLevel.BUFFER_DIE)
FIGURE_INCHES = (3.5, 2.7)
COLUMNS = (
    *("name", "kind", "devices", "context", "latency_ms", "energy_typical_mj", "area_mm2", "roofline_share"),
    *("source", "note"),
)
CAPTION = (
    "The Pareto points of this run among fixed points, all with typical currents: PIM devices under the overlapped "
    "hand mapping (triangles), rooflines of GPUs (squares) and published measurements on them (diamonds, each at its "
    "own context). The energy of a GPU is its board's power limit times latency."
)
MARKERS = {"roofline": "s", "measured": "D", "simulated": "^"}


@dataclass(frozen=True, slots=True)
class References:
    """The fixed points of a workload, and why others are missing."""

    points: tuple[ReferencePoint, ...]
    left_out: tuple[str, ...]


def references_of(workload: Workload) -> References:
    """Return all fixed points that a workload has."""
    points, left_out = list(reference_points(workload)), []
    for name, device in reference_devices():
        try:
            points.append(replace(simulated_reference(workload, device), name=name))
        except UserError as error:
            left_out.append(f"{name}: {error}")
    return References(tuple(points), tuple(left_out))


def reference_devices() -> tuple[tuple[str, Device], ...]:
    """Return the PIM devices by name: the built-in ones, and AttAcc's with its units at the other levels."""
    found = [(name, load_device(name)) for name in PIM_DEVICES]
    attacc = load_device("attacc")
    for level in OTHER_LEVELS:
        found.append((f"attacc, {level}", scaled_device(attacc, replace(base_knobs(attacc), pim_level=str(level)))))
    return tuple(found)


def reference_rows(found: References) -> list[dict[str, object]]:
    """Return the points as rows of a table: units in the names, not modelled is None."""
    return [
        {
            "name": point.name,
            "kind": str(point.kind),
            "devices": point.count,
            "context": point.context,
            "latency_ms": point.latency_ns * MS_PER_NS,
            "energy_typical_mj": None if point.energy_pj is None else point.energy_pj * MJ_PER_PJ,
            "area_mm2": point.area_mm2,
            "roofline_share": point.roofline_share,
            "source": point.source,
            "note": point.note,
        }
        for point in found.points
    ]


def write_references(folder: Path, found: References) -> Path:
    """Write references.csv and return its path."""
    return write_csv(pd.DataFrame(reference_rows(found), columns=COLUMNS), folder / "references.csv")


def write_reference_figure(run: FinishedRun, found: References) -> tuple[Drawing, ...]:
    """Draw the front among the fixed points, where there are both."""
    if not found.points or not front_of(run):
        return ()
    folder = run.folder / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    with figure_style():
        return (save_figure(_figure(run, found), "references", CAPTION, folder),)


def _figure(run: FinishedRun, found: References) -> Figure:
    """Draw the front of a run, with typical currents, among the fixed points."""
    figure = Figure(figsize=FIGURE_INCHES, layout="constrained")
    axes = figure.subplots()
    shown = [run.evaluations[point] for point in front_of(run)]
    latencies = [item.latency_ns * MS_PER_NS for item in shown]
    energies = [dict(item.details).get("energy_typical_pj", float("nan")) * MJ_PER_PJ for item in shown]
    axes.plot(latencies, energies, ".", color="#0b5394", markersize=4, label="Pareto points of this run")
    for point in found.points:
        if point.energy_pj is None:
            continue
        place = point.latency_ns * MS_PER_NS, point.energy_pj * MJ_PER_PJ
        axes.plot(*place, MARKERS[point.kind], color="0.25", markersize=4, markerfacecolor="none")
        axes.annotate(point.name, place, (4, 3), textcoords="offset points", fontsize=5.5, color="0.25")
    shown_points = [point for point in found.points if point.energy_pj is not None]
    log_axis(axes, "x", np.array([*latencies, *(point.latency_ns * MS_PER_NS for point in shown_points)]))
    axes.set_yscale("log")
    axes.set_xlabel("latency per token (ms)")
    axes.set_ylabel("energy per token, typical (mJ)")
    axes.margins(0.15)
    axes.legend()
    return figure
