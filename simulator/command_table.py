"""Every command that one channel issues in a step as a CSV table, one command a row.

The columns begin with those of a command stream (`simulator.dram_stream`): cycle, cmd, and the address level by level,
-1 for all of a level and for what a command has not. Behind them stand the operands of processing-in-memory commands
and the operator a command belongs to. The controller's own refreshes, with the rows they close and open, are rows, too.
`simulator.command_writer` writes a table.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from configs.errors import UserError

TEXTS = ("cmd", "op", "phase")


class CommandRow(NamedTuple):
    """One row of the table; `col` counts columns of the device, `op` is the task and `occurrence` counts from 0."""

    cycle: int
    cmd: str
    channel: int
    pc: int
    rank_or_sid: int
    bg: int
    bank: int
    row: int
    col: int
    lane: int
    buffer: int
    register: int
    data: int
    op: str
    occurrence: int
    phase: str


def read_commands(path: Path) -> Iterator[CommandRow]:
    """Yield the rows of a table, plain or gzipped; raises UserError, with the line, for what is none."""
    try:
        with _opened(path) as source:
            reader = csv.reader(source)
            header = tuple(next(reader, ()))
            if header != CommandRow._fields:
                raise _unreadable(f"{path}, line 1", f"the columns {', '.join(CommandRow._fields)}", ", ".join(header))
            for cells in reader:
                yield _parsed_row(cells, f"{path}, line {reader.line_num}")
    except (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise _unreadable(str(path), "a readable table of commands", found) from error


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path, "rb"), encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _parsed_row(cells: list[str], where: str) -> CommandRow:
    if len(cells) != len(CommandRow._fields):
        raise _unreadable(where, f"{len(CommandRow._fields)} cells", str(len(cells)))
    try:
        values = (cell if name in TEXTS else int(cell) for name, cell in zip(CommandRow._fields, cells, strict=True))
        return CommandRow(*values)  # type: ignore[arg-type]
    except ValueError as error:
        raise _unreadable(where, "integers in the columns of numbers", str(error)) from error


def _unreadable(where: str, expected: str, found: str) -> UserError:
    return UserError(
        where=where, expected=expected, found=found or "nothing", way_out="write it anew with explore compile"
    )
