"""The report of a run: one HTML file that needs no network and runs no script; every name in it is escaped."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from autotune.constraints import prose
from autotune.device_bounds import bounds_of
from autotune.figure_bars import energy_parts_mj
from autotune.figure_progress import knob_label
from autotune.figures import Drawing
from autotune.finished import (
    FinishedRun,
    NamedPoint,
    best_on_base,
    front_of,
    hand_point,
    hardware_values,
    shown_points,
)
from autotune.points import POINTS, capacity_frame
from autotune.problem import HARDWARE_GROUP
from autotune.provenance import device_constants, git_commit, package_versions
from autotune.system_energy import energy_of
from autotune.timelines import SUMMARY_FILE, TIMELINE_FILE, UTILISATION_FILE
from autotune.units import MJ_PER_PJ, MS_PER_NS
from compiler.schedule import schedule_text
from configs.device import Case
from simulator.area import dram_area_mm2

TEMPLATES = Path(__file__).parent / "templates"
TEMPLATE = "report.html.j2"
CASES: tuple[Case, ...] = ("low", "nominal", "high")


def write_report(run: FinishedRun, drawings: Sequence[Drawing]) -> Path:
    """Write report.html and return its path."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    path = run.folder / "report.html"
    path.write_text(environment.get_template(TEMPLATE).render(_content(run, drawings)), encoding="utf-8")
    return path


def area_cases_mm2(run: FinishedRun, point: int) -> tuple[float, ...]:
    """Return the area of a point at low, nominal and high constants, in this order; empty when not modelled.

    Fewer banks or channels than the base's save more at high constants, so that "high" can be the smallest.
    """
    scenario = run.problem.scenario
    system = scenario.system(np.array(run.evaluations[point].codes, dtype=np.int64))
    areas = [dram_area_mm2(system.device, scenario.base, case) for case in CASES]
    return tuple(area * scenario.devices for area in areas if area is not None)


def _content(run: FinishedRun, drawings: Sequence[Drawing]) -> dict[str, Any]:
    base = run.problem.scenario.base
    hardware = [knob for knob in run.problem.knobs if knob.group == HARDWARE_GROUP]
    return {
        "settings": run.shown_settings,
        "device": base,
        "basis": str(energy_of(run.problem.scenario).basis),
        "stop": str(run.result.stop),
        "note": run.result.note,
        "evaluations": len(run.evaluations),
        "knobs": [knob_label(knob.name, knob.unit) for knob in hardware],
        "front": [_front_row(run, point) for point in front_of(run)],
        "comparison": _comparison(run),
        "drawings": [
            {"name": item.name, "caption": item.caption, "data": base64.b64encode(item.svg).decode()}
            for item in drawings
        ],
        "findings": prose(run),
        "accuracy": _accuracy_rows(run),
        "insides": [_inside_row(run, item) for item in shown_points(run)],
        "energies": [
            {"name": item.name, "point": item.point, "parts": energy_parts_mj(run, item.point)}
            for item in shown_points(run)
        ],
        "distances": _distance_rows(run),
        "plan": _plan(run),
        "constants": device_constants(base, str(run.settings.get("hardware", ""))),
        "packages": package_versions(),
        "commit": git_commit(Path(__file__).resolve().parents[1]),
    }


def _front_row(run: FinishedRun, point: int) -> dict[str, Any]:
    item = run.evaluations[point]
    return {
        "point": point,
        "latency": f"{item.latency_ns * MS_PER_NS:.4g}",
        "energy": f"{item.energy_pj * MJ_PER_PJ:.4g}",
        "typical": _typical_text(dict(item.details)),
        "area": f"{item.area_mm2:.1f}",
        "areas": " / ".join(f"{area:.1f}" for area in area_cases_mm2(run, point)),
        "knobs": list(hardware_values(run, point).values()),
        "numerics": run.numerics.get(item.codes, "not checked"),
    }


def _typical_text(details: Mapping[str, float]) -> str:
    """Return the energy with typical currents and its band in mJ; empty where it is not modelled."""
    names = ("energy_typical_pj", "energy_typical_low_pj", "energy_typical_high_pj")
    if any(name not in details for name in names):
        return ""
    nominal, low, high = (f"{details[name] * MJ_PER_PJ:.4g}" for name in names)
    return f"{nominal} ({low} to {high})"


def _inside_row(run: FinishedRun, item: NamedPoint) -> dict[str, Any]:
    """Return a shown point, what its step waited for, and where the files that look inside it lie."""
    folder = f"{POINTS}/{item.point}"
    found = _summary(run.folder / folder / SUMMARY_FILE)
    return {
        "refresh": f"{found['refresh_wait_share']:.1%}" if found else "",
        "wait": f"{found['longest_wait']}: {found['longest_wait_share']:.1%}" if found.get("longest_wait") else "",
        "peak": f"{found['power_peak_w']:.1f}" if "power_peak_w" in found else "",
        "average": f"{dict(run.evaluations[item.point].details)['power_average_w']:.1f}",
        "name": item.name,
        "point": item.point,
        "timeline": f"{folder}/{TIMELINE_FILE}",
        "utilisation": f"{folder}/{UTILISATION_FILE}",
    }


def _summary(path: Path) -> dict[str, Any]:
    """Return the figures that the folder of a point holds, none where it was not written."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _comparison(run: FinishedRun) -> tuple[str, ...]:
    """Return how the found designs compare with the hand mapping, one sentence each."""
    hand, own, front = hand_point(run), best_on_base(run), front_of(run)
    if hand is None or own is None:
        return ("The hand mapping is not legal in this scenario, or lies outside the space.",) if front else ()
    hand_ns = run.evaluations[hand].latency_ns
    sentences = []
    for point, what in ((own, "on the base device itself"), (front[0], "over all devices")):
        latency_ns = run.evaluations[point].latency_ns
        sentences.append(
            f"{what[0].upper()}{what[1:]} the fastest design (point {point}) takes {latency_ns * MS_PER_NS:.4g} ms per "
            f"token, the hand mapping (point {hand}) {hand_ns * MS_PER_NS:.4g} ms: {1 - latency_ns / hand_ns:.1%} less."
        )
    return tuple(sentences)


def _accuracy_rows(run: FinishedRun) -> list[dict[str, Any]]:
    return [
        {"evaluated": batch.evaluated, "what": name, "of": figures}
        for batch in run.result.batches
        for name, figures in batch.accuracy
        if name == "latency" or batch is run.result.batches[-1]
    ]


def _distance_rows(run: FinishedRun) -> list[dict[str, Any]]:
    """Return how far each operator of the fastest point is from the bounds of its device."""
    front = front_of(run)
    if not front:
        return []
    fastest = run.evaluations[front[0]]
    bounds = bounds_of(run.problem, (fastest,))
    return [
        {
            "point": front[0],
            "task": task.task,
            "cycles": task.cycles,
            "own": task.bound_cycles,
            "any": f"{float(bounds[task.task].cycles[0]):.0f}",
            "share": f"{float(bounds[task.task].cycles[0]) / max(task.cycles, 1):.1%}",
            "binds": bounds[task.task].binding(),
            "rows": f"{float(bounds[task.task].raw_row_cycles[0]):.0f}",
            "bandwidth": f"{float(bounds[task.task].raw_bandwidth_cycles[0]):.0f}",
        }
        for task in fastest.tasks
    ]


def _plan(run: FinishedRun) -> dict[str, Any] | None:
    """Return the memory plan and the schedules of the fastest point."""
    front = front_of(run)
    if not front:
        return None
    scenario, codes = run.problem.scenario, np.array(run.evaluations[front[0]].codes, dtype=np.int64)
    system, schedules = scenario.system(codes), run.problem.space.schedules(codes)
    frame = capacity_frame(scenario.workload, schedules, system)
    return {
        "point": front[0],
        "columns": [str(column).replace("_", " ") for column in frame.columns],
        "rows": [list(row) for row in frame.astype(object).where(frame.notna(), "").values],
        "available": system.device.organisation.rows,
        "schedules": [schedule_text(schedule) for schedule in schedules.values()],
        "tasks": list(schedules),
    }
