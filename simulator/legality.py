"""Which command a channel may accept in the state it is in: operand ranges, open rows, mode.

The reference engine asks before each command of a program; the fast engine trusts programs that passed here.
"""

import numpy as np
from numpy.typing import NDArray

from configs.device import Organisation
from simulator.addressing import Addressing
from simulator.channel import CLOSED, IllegalProgram
from simulator.isa import ACTIVATES, COLUMN_KINDS, REFRESHES, REGISTER_MODE_KINDS, Issued, Kind

NEED_CLOSED = ACTIVATES | REFRESHES | {Kind.ACT1}
TAKE_COLUMNS = COLUMN_KINDS | {Kind.MACL16}
TAKE_ROWS = COLUMN_KINDS | ACTIVATES | {Kind.LATCH16, Kind.MACL16}
NEED_ROW = COLUMN_KINDS | {Kind.LATCH16}


def check(
    command: Issued,
    index: int,
    open_row: NDArray[np.int64],
    register_mode: bool,
    organisation: Organisation,
    tree: Addressing,
    accesses_per_column: int = 1,
) -> None:
    """Raise IllegalProgram, naming command and both sides, if the channel cannot accept this command of a program."""
    _check_ranges(command, index, organisation, accesses_per_column)
    if command.kind is not Kind.TMOD and (command.kind in REGISTER_MODE_KINDS) != register_mode:
        modes = ("memory mode", "register mode")
        raise _illegal(command, index, modes[not register_mode], modes[register_mode])
    needs_row, needs_closed = command.kind in NEED_ROW, command.kind in NEED_CLOSED
    if not (needs_row or needs_closed):
        return
    expected = command.row if needs_row else CLOSED
    for bank in tree.banks_of(command.kind, command.bank):
        found = int(open_row[bank])
        if found != expected:
            raise _illegal(command, index, f"bank {bank} {_condition(expected)}", _condition(found))


def _check_ranges(command: Issued, index: int, organisation: Organisation, accesses_per_column: int) -> None:
    operands = (
        ("bank", command.bank, organisation.banks, True),
        ("row", command.row, organisation.rows, command.kind in TAKE_ROWS),
        ("column", command.column, organisation.columns * accesses_per_column, command.kind in TAKE_COLUMNS),
    )
    for name, value, limit, used in operands:
        if used and not 0 <= value < limit:
            raise _illegal(command, index, f"{name} in 0..{limit - 1}", f"{name} {value}")


def _condition(row: int) -> str:
    return "closed" if row == CLOSED else f"with open row {row}"


def _illegal(command: Issued, index: int, expected: str, found: str) -> IllegalProgram:
    return IllegalProgram(f"command {index}, {command.kind}: expected {expected}, found {found}")
