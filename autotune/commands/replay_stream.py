"""`explore replay` of a DRAM command stream: issue it anew, compare with the cycles it carries, tell both."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from autotune.exit_codes import ANSWER_IS_NO, DONE

if TYPE_CHECKING:
    from configs.device import Device
    from simulator.dram_replay import StreamReplay
    from simulator.dram_stream import StreamFile


class Mismatch(NamedTuple):
    """The first command that did not issue where its file says."""

    line: int
    command: str
    expected_cycle: int
    found_cycle: int


def replay_stream_command(path: Path, hardware: str, commands: Path | None, *, as_json: bool) -> int:
    """Replay a stream file, print what was found, and return the exit code."""
    from configs.device import built_in_devices, load_device
    from configs.errors import UserError
    from simulator.dram_replay import replay_stream
    from simulator.dram_stream import read_stream, write_stream

    if not hardware:
        raise UserError(
            where="--hardware",
            expected="the device whose commands the stream holds",
            found="none",
            way_out=f"give one of {', '.join(built_in_devices())} or the path of a .yaml file",
        )
    device = load_device(hardware)
    file = read_stream(path, device)
    result = replay_stream(file.stream, device)
    if commands is not None:
        write_stream(file, result.cycle, commands)
    wrong = np.zeros(0, dtype=np.int64) if file.expected is None else np.flatnonzero(result.cycle != file.expected)
    first = _mismatch(file, result, int(wrong[0])) if len(wrong) else None
    if as_json:
        _print_json(file, device, result, len(wrong), first)
    else:
        _print_table(file, device, result, len(wrong), first)
    return ANSWER_IS_NO if len(wrong) else DONE


def _mismatch(file: "StreamFile", result: "StreamReplay", index: int) -> Mismatch:
    assert file.expected is not None
    return Mismatch(file.lines[index], file.names[index], int(file.expected[index]), int(result.cycle[index]))


def _gb_per_s(bytes_per_cycle: float, device: "Device") -> float:
    return bytes_per_cycle / (device.cycle_ps / 1000)


def _print_json(
    file: "StreamFile", device: "Device", result: "StreamReplay", mismatches: int, first: Mismatch | None
) -> None:
    import json

    compared = file.expected is not None
    fields = {
        "device": device.name,
        "cycles": result.cycles,
        "elapsed_cycles": result.elapsed_cycles,
        "elapsed_ns": device.nanoseconds(result.elapsed_cycles),
        "commands": len(file.stream),
        "commands_by_kind": dict(Counter(file.names)),
        "compared": compared,
        "mismatches": mismatches if compared else None,
        "first_mismatch": first._asdict() if first else None,
        "bytes": result.transferred_bytes,
        "bandwidth_gb_per_s": _gb_per_s(result.bytes_per_cycle, device),
        "peak_gb_per_s": _gb_per_s(result.peak_bytes_per_cycle, device),
        "peak_percent": _peak_percent(result),
    }
    print(json.dumps(fields))


def _peak_percent(result: "StreamReplay") -> float:
    peak = result.peak_bytes_per_cycle
    return 100 * result.bytes_per_cycle / peak if peak else 0.0


def _print_table(
    file: "StreamFile", device: "Device", result: "StreamReplay", mismatches: int, first: Mismatch | None
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("command", "count", title=f"{file.path.name} on {device.name}")
    table.columns[1].justify = "right"
    for name, count in Counter(file.names).most_common():
        table.add_row(name, f"{count:,}")
    table.add_section()
    table.add_row("total", f"{len(file.stream):,}")
    console = Console()
    console.print(table)
    elapsed_us = device.nanoseconds(result.elapsed_cycles) / 1000
    console.print(f"last command in cycle {result.cycles:,}, everything done after {elapsed_us:,.3f} µs")
    console.print(
        f"{result.transferred_bytes:,} bytes, {_gb_per_s(result.bytes_per_cycle, device):.2f} GB/s: "
        f"{_peak_percent(result):.1f} % of the pin peak of the pseudo channels in use"
    )
    if file.expected is None:
        console.print("no column asap_cycle to compare with")
    elif first is None:
        console.print("every command issues in its asap_cycle")
    else:
        console.print(f"{mismatches:,} of {len(file.stream):,} commands issue in another cycle than their asap_cycle")
        console.print(
            f"first in line {first.line}, {first.command}: expected {first.expected_cycle}, found {first.found_cycle}"
        )
