"""`explore replay`: execute an AiM instruction trace and tell its cycles and DRAM commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from simulator.aim.replay import Replay


def replay_command(
    trace: Annotated[Path, typer.Argument(help="AiM instruction trace, .trace or .trace.gz", metavar="FILE.trace")],
    hardware: Annotated[
        str, typer.Option(help="device to replay on: an AiM device without refresh")
    ] = "gddr6-aim-compat",
    commands: Annotated[
        Path | None, typer.Option(help="write every DRAM command with its cycle to this .csv or .csv.gz")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Execute an instruction trace with the rules of the public AiM simulator, cycle by cycle."""
    from configs.device import load_device
    from simulator.aim.command_csv import save_commands
    from simulator.aim.replay import replay

    device = load_device(hardware)
    result = replay(trace, device)
    if commands is not None:
        save_commands(result.commands, commands)
    if json:
        _print_json(result)
    else:
        _print_table(result, f"{trace.name} on {device.name}", device.nanoseconds(result.cycles))


def _print_json(result: "Replay") -> None:
    import json

    counts = result.commands.counts()
    fields = {
        "cycles": result.cycles,
        "commands": sum(counts.values()),
        "commands_by_kind": counts,
        "instructions": result.instructions,
        "ignored_lines": result.ignored_lines,
    }
    print(json.dumps(fields))


def _print_table(result: "Replay", title: str, nanoseconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    counts = result.commands.counts()
    table = Table("command", "count over all channels", title=title)
    table.columns[1].justify = "right"
    for kind, count in sorted(counts.items(), key=lambda item: -item[1]):
        table.add_row(kind, f"{count:,}")
    table.add_section()
    table.add_row("total", f"{sum(counts.values()):,}")
    console = Console()
    console.print(table)
    console.print(f"{result.cycles:,} cycles ({nanoseconds / 1000:,.3f} µs) for {result.instructions:,} instructions")
    if result.ignored_lines:
        console.print(f"{result.ignored_lines:,} lines after EOC were not executed")
