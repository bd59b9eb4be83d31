"""The main job on the command line: run it, then print the Pareto front, or what comes nearest to the requirements."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autotune.exit_codes import ANSWER_IS_NO, DONE, INTERRUPTED
from autotune.explore import Exploration, explore
from autotune.finished import JudgedRun, changed_knobs
from autotune.model_lines import model_lines
from autotune.requirement_findings import miss_text, nearest_misses, requirement_counts
from autotune.result import StopReason
from autotune.run_settings import RunSettings
from autotune.system_energy import energy_of
from autotune.units import MJ_PER_PJ, four_digits

PLAIN_WIDTH = 160
CELL_WIDTH, LEAST_ROOM = 12, 20
DETAILS = (("typical mJ", "energy_typical_pj"), ("host mJ", "energy_host_pj"))
TYPICAL, POWER = "energy_typical_pj", "power_average_w"


def explore_and_print(
    settings: RunSettings, *, out: Path | None, workers: int, resume: bool, quiet: bool, as_json: bool
) -> int:
    """Run the main job, print its front to stdout, and return the exit code: 1 where nothing meets the requirements."""
    run = explore(settings, out=out, workers=workers, resume=resume, stream=None if quiet else sys.stderr)
    if as_json:
        print(json.dumps(_as_json(run)))
    else:
        _print_table(run)
    if run.result.stop is StopReason.INTERRUPTED:
        return INTERRUPTED
    return ANSWER_IS_NO if run.nearest else DONE


def _print_table(run: Exploration) -> None:
    evaluated = len(run.result.evaluations)
    title = f"{len(run.front)} Pareto-optimal designs of {evaluated} evaluated"
    if run.nearest:
        title = f"none of {evaluated} evaluated designs meets every requirement; the nearest ones"
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, PLAIN_WIDTH)
    table = Table(title=title)
    merits = [merit.heading for merit in run.finished.goals.objectives]
    headings = ("point", *merits, *(name for name, _ in DETAILS), "W")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("numerics", no_wrap=True)
    # What is left of the line; the whole device stands in the files.
    room = console.width - CELL_WIDTH * (len(headings) + 1)
    if room >= LEAST_ROOM:
        table.add_column("what differs from the base device", no_wrap=True)
    for point in run.front or run.nearest:
        *cells, device = _row(run.finished, point)
        shortened = device if len(device) <= room else f"{device[: room - 1]}…"
        table.add_row(*cells, *([shortened] if room >= LEAST_ROOM else []))
    console.print(table)
    for line in (*_requirement_lines(run.finished), *_closing_lines(run)):
        console.print(line, soft_wrap=True, highlight=False)


def _row(run: JudgedRun, point: int) -> tuple[str, ...]:
    item = run.evaluations[point]
    details = dict(item.details)
    return (
        str(point),
        *(four_digits(value) for value in _values(run, point)),
        *(four_digits(details[name] * MJ_PER_PJ) for _, name in DETAILS),
        f"{details[POWER]:.1f}",
        run.numerics.get(item.codes, "not checked"),
        ", ".join(f"{name} {value}" for name, value in changed_knobs(run, point)) or "nothing",
    )


def _values(run: JudgedRun, point: int) -> list[float]:
    """Return the objectives of a point in their units."""
    minimised = run.judged.objectives[point]
    return [float(merit.shown(minimised[column])) for column, merit in enumerate(run.goals.objectives)]


def _requirement_lines(run: JudgedRun) -> list[str]:
    """Return what the nearest points miss, or else how many points each requirement excludes."""
    missing = [f"point {item.point} misses {miss_text(item)}" for item in nearest_misses(run)]
    return missing or [
        f"{item.requirement}: violated by {item.violated} of {item.evaluated}" for item in requirement_counts(run)
    ]


def _closing_lines(run: Exploration) -> list[str]:
    basis = energy_of(run.finished.problem.scenario).basis
    minimised = any(merit.objective == "energy" for merit in run.finished.goals.objectives)
    lines = [f"energy: with {basis} currents{' and minimised' if minimised else ''}; typical is with typical currents"]
    lines.append(f"stopped: {run.result.stop}{'; ' + run.result.note if run.result.note else ''}")
    if run.result.batches and run.front:
        last = run.result.batches[-1]
        lines.append(f"hypervolume: {last.hypervolume / last.bound_hypervolume:.1%} of the known front of lower bounds")
        lines.append(
            f"left: no known lower bound is better than this front by more than {last.left_factor - 1:.1%} "
            "in all objectives at once"
        )
        lines += model_lines(run.finished.problem, run.result, str(run.finished.settings["cost_model"]))
    return [*lines, f"report: {run.folder / 'report.html'}"]


def _as_json(run: Exploration) -> dict[str, object]:
    finished = run.finished
    return {
        "folder": str(run.folder),
        "evaluations": len(run.result.evaluations),
        "stop": str(run.result.stop),
        "objectives": [
            {"name": merit.objective, "column": merit.column, "unit": merit.unit, "sense": str(merit.sense)}
            for merit in finished.goals.objectives
        ],
        "requirements": [asdict(item) for item in requirement_counts(finished)],
        "pareto": _points_json(finished, run.front),
        "nearest_to_feasible": [
            plain | {"violation": item.violation, "misses": [asdict(miss) for miss in item.misses]}
            for item, plain in zip(nearest_misses(finished), _points_json(finished, run.nearest), strict=True)
        ],
    }


def _points_json(run: JudgedRun, points: Sequence[int]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for point in points:
        item = run.evaluations[point]
        shown = zip(run.goals.objectives, _values(run, point), strict=True)
        found.append(
            {
                "point": point,
                "latency_ns": item.latency_ns,
                "energy_pj": item.energy_pj,
                "energy_typical_pj": dict(item.details)[TYPICAL],
                "area_mm2": item.area_mm2,
                "objectives": {merit.objective: value for merit, value in shown},
                "numerics": run.numerics.get(item.codes, "not checked"),
                "knobs": {
                    knob.label: knob.values[code] for knob, code in zip(run.problem.knobs, item.codes, strict=True)
                },
            }
        )
    return found
