"""`explore sensitivity`: what every hardware knob does around the Pareto points of a finished run, simulated."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from autotune.architect.sensitivity import Sensitivity

PLAIN_WIDTH = 132
SHOWN = 20


def sensitivity_command(
    run: Annotated[Path, typer.Argument(help="folder of a finished run", metavar="RUN_FOLDER")],
    points: Annotated[int, typer.Option(help="Pareto points to move knobs around: fastest, balanced, ...", min=1)] = 3,
    workers: Annotated[int, typer.Option(help="processes; 0 takes one per core", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="print what sensitivity.json holds")] = False,
) -> None:
    """Move every hardware knob of some Pareto points alone, and the strongest in pairs; simulate and rank what it does.

    explore sensitivity runs/mine

    Writes sensitivity.json, sensitivity.md and a tornado chart into the run folder. Interrupted, it goes on from
    sensitivity.jsonl when it is started again.
    """
    import os
    import sys

    from autotune.architect.sensitivity import analyse
    from autotune.architect.sensitivity_report import sensitivity_json, write_sensitivity
    from autotune.exit_codes import INTERRUPTED

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    found = analyse(run, points, workers or cores, sys.stderr)
    if found is None:
        raise typer.Exit(INTERRUPTED)
    paths = write_sensitivity(found)
    if json:
        from json import dumps

        print(dumps(sensitivity_json(found)))
    else:
        _print_tables(found, paths)


def _print_tables(found: "Sensitivity", paths: tuple[Path, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    from autotune.architect.sensitivity_report import importance_lines, interaction_lines, interval_text, step_text

    centres = ", ".join(f"{item.point} ({item.name})" for item in found.around.centres)
    table = Table(title=f"one step of one knob around points {centres}; {len(found.simulated)} designs simulated")
    for heading in ("knob", "step"):
        table.add_column(heading, overflow="fold")
    for heading in ("latency", "energy", "area", "points", "designs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for item in found.effects[:SHOWN]:
        table.add_row(
            item.knob,
            step_text(item),
            *(interval_text(item.interval(name)) for name in ("latency", "energy", "area")),
            ",".join(str(change.point) for change in item.at),
            ",".join(str(change.design) for change in item.at),
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, PLAIN_WIDTH)
    console.print(table)
    if len(found.effects) > SHOWN:
        console.print(f"{len(found.effects) - SHOWN} steps with smaller effects on latency are in sensitivity.md")
    for line in (*interaction_lines(found), *importance_lines(found)):
        console.print(line, soft_wrap=True, markup=False)
    for path in paths:
        console.print(str(path), soft_wrap=True, markup=False)
