"""The report of a run: one HTML file that needs no network and runs no script; every name in it is escaped."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from autotune.architect.beside import NOTHING_BESIDE, Beside
from autotune.architect.references import reference_rows
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
    varied_knobs,
)
from autotune.merit import titles
from autotune.points import POINTS, capacity_frame
from autotune.problem import HARDWARE_GROUP
from autotune.provenance import device_constants, git_commit, package_versions
from autotune.requirement_findings import miss_text, nearest_misses, requirement_counts
from autotune.system_energy import energy_of
from autotune.timelines import SUMMARY_FILE, TIMELINE_FILE, UTILISATION_FILE
from autotune.units import MJ_PER_PJ, MS_PER_NS, four_digits
from compiler.schedule import schedule_text
from configs.laws import CASES

TEMPLATES = Path(__file__).parent / "templates"
TEMPLATE = "report.html.j2"


def write_report(run: FinishedRun, drawings: Sequence[Drawing], found: Beside = NOTHING_BESIDE) -> Path:
    """Write report.html and return its path."""
    path = run.folder / "report.html"
    path.write_text(page_templates().get_template(TEMPLATE).render(_content(run, drawings, found)), encoding="utf-8")
    return path


def page_templates() -> jinja2.Environment:
    """Return the templates of pages; every name in them is escaped, and a missing one is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def area_cases_mm2(run: FinishedRun, point: int) -> tuple[float, ...]:
    """Return the area of a point at low, nominal and high constants, in this order; empty when not modelled."""
    codes = np.array([run.evaluations[point].codes], dtype=np.int64)
    areas = [float(run.problem.scenario.candidates.area_mm2(codes, case)[0]) for case in CASES]
    return () if np.isnan(areas).any() else tuple(areas)


def _content(run: FinishedRun, drawings: Sequence[Drawing], found: Beside) -> dict[str, Any]:
    base = run.problem.scenario.base
    varied = varied_knobs(run, front_of(run))
    hardware = [knob for knob in run.problem.knobs if knob.group == HARDWARE_GROUP and knob.name in varied]
    return {
        "settings": run.shown_settings,
        "device": base,
        "basis": str(energy_of(run.problem.scenario).basis),
        "stop": str(run.result.stop),
        "note": run.result.note,
        "evaluations": len(run.evaluations),
        "knobs": [knob_label(knob.name, knob.unit) for knob in hardware],
        "objectives": titles(run.goals.objectives),
        "headings": [f"{item.title} ({item.unit})" for item in run.goals.objectives],
        "minimised_energy": any(item.objective == "energy" for item in run.goals.objectives),
        "front": _front_rows(run),
        "requirements": requirement_counts(run),
        "nearest": [(item, miss_text(item)) for item in nearest_misses(run)],
        "comparison": _comparison(run),
        "drawings": [
            {"name": item.name, "caption": item.caption, "data": base64.b64encode(item.svg).decode()}
            for item in drawings
        ],
        "findings": prose(run, found),
        "references": reference_rows(found.references),
        "left_out": found.references.left_out,
        "accuracy": _accuracy_rows(run),
        "predictor": run.predictor,
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


def _front_rows(run: FinishedRun) -> list[dict[str, Any]]:
    objectives, merits, front = run.judged.objectives, run.goals.objectives, front_of(run)
    varied = varied_knobs(run, front)
    return [
        _front_row(run, point, [float(merit.shown(objectives[point, i])) for i, merit in enumerate(merits)], varied)
        for point in front
    ]


def _front_row(run: FinishedRun, point: int, values: Sequence[float], varied: Sequence[str]) -> dict[str, Any]:
    item = run.evaluations[point]
    return {
        "point": point,
        "values": [four_digits(value) for value in values],
        "typical": _typical_text(dict(item.details)),
        "areas": " / ".join(f"{area:.1f}" for area in area_cases_mm2(run, point)),
        "knobs": [value for name, value in hardware_values(run, point).items() if name in varied],
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
    chosen = [(own, "on the base device itself")]
    if front:
        fastest = min(front, key=lambda point: run.evaluations[point].latency_ns)
        limits = " that meet the requirements" if run.goals.requirements else ""
        chosen.append((fastest, f"over all devices{limits}"))
    sentences = []
    for point, what in chosen:
        latency_ns = run.evaluations[point].latency_ns
        change = _change_text(latency_ns / hand_ns - 1)
        sentences.append(
            f"{what[0].upper()}{what[1:]} the fastest design (point {point}) takes {latency_ns * MS_PER_NS:.4g} ms per "
            f"token, the hand mapping (point {hand}) {hand_ns * MS_PER_NS:.4g} ms: {change}."
        )
    return tuple(sentences)


def _change_text(change: float) -> str:
    return f"{-change:.1%} less" if change <= 0 else f"{change:.1%} more"


def _accuracy_rows(run: FinishedRun) -> list[dict[str, Any]]:
    return [
        {"evaluated": batch.evaluated, "what": name, "of": figures}
        for batch in run.result.batches
        for name, figures in batch.accuracy
        if name == "latency" or batch is run.result.batches[-1]
    ]


def _distance_rows(run: FinishedRun) -> list[dict[str, Any]]:
    """Return how far each operator of the front's first point is from the bounds of its device."""
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
    """Return the memory plan and the schedules of the front's first point."""
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
