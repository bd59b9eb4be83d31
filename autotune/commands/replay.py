"""`explore replay`: execute an AiM instruction trace or issue a DRAM command stream anew, by the suffix of the file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from simulator.aim.replay import Replay

TRACE_DEVICE = "gddr6-aim-compat"


def replay_command(
    file: Annotated[
        Path,
        typer.Argument(help="AiM trace (.trace, .trace.gz) or command stream (.csv, .csv.gz)", metavar="FILE"),
    ],
    hardware: Annotated[
        str,
        typer.Option(
            help="device to replay on: for a trace an AiM device without refresh, for a stream the one it is of",
            show_default=f"{TRACE_DEVICE} for a trace",
        ),
    ] = "",
    commands: Annotated[
        Path | None, typer.Option(help="write every DRAM command with its cycle to this .csv or .csv.gz")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Replay a file cycle by cycle.

    FILE.trace: execute an instruction trace with the rules of the public AiM simulator.

    FILE.csv: issue DRAM commands in the same order, each as early as the device's table allows, and compare with the
    column asap_cycle where there is one; exit code 1 if any cycle differs. Nothing is refreshed on its own.
    """
    from configs.errors import UserError
    from simulator.dram_stream import is_stream

    _require_file(file)
    if commands is not None and commands.resolve() == file.resolve():
        raise UserError(
            where=f"--commands {commands}",
            expected="another file than the one that is replayed",
            found="the same file",
            way_out="give it another name",
        )
    if is_stream(file):
        from autotune.commands.replay_stream import replay_stream_command

        raise typer.Exit(replay_stream_command(file, hardware, commands, as_json=json))
    _replay_trace(file, hardware or TRACE_DEVICE, commands, json)


def _require_file(file: Path) -> None:
    from configs.errors import UserError

    endings = (".trace", ".trace.gz", ".csv", ".csv.gz")
    if not file.name.endswith(endings):
        raise UserError(
            where=str(file) or "FILE",
            expected=f"a name that ends in {', '.join(endings)}",
            found=file.name or "no name",
            way_out="the ending tells an instruction trace from a command stream; rename the file",
        )
    if not file.is_file():
        raise UserError(
            where=str(file), expected="a file", found="a folder" if file.is_dir() else "none", way_out="check the path"
        )


def _replay_trace(trace: Path, hardware: str, commands: Path | None, as_json: bool) -> None:
    from configs.device import load_device
    from simulator.aim.command_csv import save_commands
    from simulator.aim.replay import replay

    device = load_device(hardware)
    result = replay(trace, device)
    if commands is not None:
        save_commands(result.commands, commands)
    if as_json:
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
