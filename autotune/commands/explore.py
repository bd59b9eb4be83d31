"""The main job on the command line: run it, then print the Pareto front."""

import json
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from autotune.exit_codes import DONE, INTERRUPTED
from autotune.explore import Exploration, explore
from autotune.result import StopReason
from autotune.run_settings import RunSettings
from autotune.system_energy import energy_of
from autotune.units import MJ_PER_PJ, MS_PER_NS

PLAIN_WIDTH = 120


def explore_and_print(
    settings: RunSettings, *, out: Path | None, workers: int, resume: bool, quiet: bool, as_json: bool
) -> int:
    """Run the main job, print its front to stdout, and return the exit code."""
    run = explore(settings, out=out, workers=workers, resume=resume, stream=None if quiet else sys.stderr)
    if as_json:
        print(json.dumps(_as_json(run)))
    else:
        _print_table(run)
    return INTERRUPTED if run.result.stop is StopReason.INTERRUPTED else DONE


def _print_table(run: Exploration) -> None:
    table = Table(title=f"{len(run.front)} Pareto-optimal designs of {len(run.result.evaluations)} evaluated")
    for heading in ("point", "ms/token", "mJ/token", "typical", "host mJ", "mm²", "W"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("chan. x banks x lanes, row B, buffer B", no_wrap=True)
    table.add_column("numerics", no_wrap=True)
    numbers = {evaluation.codes: number for number, evaluation in enumerate(run.result.evaluations)}
    for point in run.front:
        device = run.problem.space.hardware(np.array(point.codes))
        table.add_row(
            str(numbers[point.codes]),
            f"{point.latency_ns * MS_PER_NS:.4f}",
            f"{point.energy_pj * MJ_PER_PJ:.2f}",
            f"{dict(point.details)['energy_typical_pj'] * MJ_PER_PJ:.2f}",
            f"{dict(point.details)['energy_host_pj'] * MJ_PER_PJ:.2f}",
            f"{point.area_mm2:.1f}",
            f"{dict(point.details)['power_average_w']:.1f}",
            f"{device.channels} x {device.banks_per_channel} x {device.lanes}, "
            f"{device.row_bytes}, {device.global_buffer_bytes}",
            run.numerics[point.codes],
        )
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, PLAIN_WIDTH)
    console.print(table)
    for line in _closing_lines(run):
        console.print(line, soft_wrap=True, highlight=False)


def _closing_lines(run: Exploration) -> list[str]:
    basis = energy_of(run.problem.scenario).basis
    lines = [f"energy: mJ/token is with {basis} currents and was minimised; typical is the same with typical currents"]
    lines.append(f"stopped: {run.result.stop}{'; ' + run.result.note if run.result.note else ''}")
    if run.result.batches:
        last = run.result.batches[-1]
        lines.append(
            f"hypervolume: {last.hypervolume / last.bound_hypervolume:.1%} of the sampled front of lower bounds"
        )
    return [*lines, f"report: {run.folder / 'report.html'}"]


def _as_json(run: Exploration) -> dict[str, object]:
    numbers = {evaluation.codes: number for number, evaluation in enumerate(run.result.evaluations)}
    return {
        "folder": str(run.folder),
        "evaluations": len(run.result.evaluations),
        "stop": str(run.result.stop),
        "pareto": [
            {
                "point": numbers[point.codes],
                "latency_ns": point.latency_ns,
                "energy_pj": point.energy_pj,
                "energy_typical_pj": dict(point.details)["energy_typical_pj"],
                "area_mm2": point.area_mm2,
                "numerics": run.numerics[point.codes],
                "knobs": {
                    knob.label: knob.values[code] for knob, code in zip(run.problem.knobs, point.codes, strict=True)
                },
            }
            for point in run.front
        ],
    }
