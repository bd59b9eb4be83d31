"""The commands of a replay as a table with the columns of the public simulator's command log."""

import csv
from pathlib import Path
from typing import TextIO

from configs.errors import unwritable
from simulator.aim.replay import Commands
from simulator.aim.requests import COMMAND_NAMES
from simulator.text_file import opened_for_writing

HEADER = ("cycle", "cmd", "channel", "bg", "bank", "row", "col", "isr")
ROWS_AT_ONCE = 1 << 18


def save_commands(commands: Commands, path: Path) -> None:
    """Write the table, gzipped when the name ends in .gz; raises UserError when the file cannot be written."""
    try:
        with opened_for_writing(path) as target:
            write_commands(commands, target)
    except OSError as error:
        raise unwritable(f"--commands {path}", error) from error


def write_commands(commands: Commands, target: TextIO) -> None:
    """Write header and rows; absent values are -1, `isr` counts instructions from 0."""
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(HEADER)
    for start in range(0, len(commands.cycle), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        names = [COMMAND_NAMES[code] for code in commands.name[part].tolist()]
        numbers = (
            commands.channel,
            commands.bank_group,
            commands.bank,
            commands.row,
            commands.column,
            commands.instruction,
        )
        columns = [column[part].tolist() for column in numbers]
        writer.writerows(zip(commands.cycle[part].tolist(), names, *columns, strict=True))
