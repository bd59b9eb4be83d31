"""What a command reaches of a channel's banks: one or all of a parity, a row that must be open, a column of it."""

from configs.microkernel_units import BANKS_OF_UNIT, ROW_COLUMNS
from simulator.channel import CLOSED
from simulator.functional_errors import RowStateError
from simulator.functional_state import Floats
from simulator.hbm_pim.commands import Resolved
from simulator.hbm_pim.registers import RESULT_ROWS
from simulator.hbm_pim.state import MicrokernelChannel
from simulator.isa import Kind

ALL_BANK_KINDS = (Kind.ACT8, Kind.PRE8, Kind.RD8, Kind.WR8, Kind.ST8)


def addressed_banks(channel: MicrokernelChannel, command: Resolved) -> slice:
    """Return the banks a command goes to: one, or all of a parity."""
    every = command.kind in ALL_BANK_KINDS
    limit = BANKS_OF_UNIT if every else len(channel.open_row)
    command.require_range("bank", command.bank, limit)
    return slice(command.bank, None, BANKS_OF_UNIT) if every else slice(command.bank, command.bank + 1)


def require_row(channel: MicrokernelChannel, command: Resolved, row: int) -> None:
    """Raise RowStateError unless every addressed bank has this row open, or is closed for CLOSED."""
    found = channel.open_row[addressed_banks(channel, command)]
    if (found == row).all():
        return
    bank = int((found != row).argmax())
    texts = ["closed" if item == CLOSED else f"with open row {item}" for item in (row, int(found[bank]))]
    raise RowStateError(f"{command.where}: expected bank {bank} of those addressed {texts[0]}, found it {texts[1]}")


def cells_of(channel: MicrokernelChannel, command: Resolved) -> Floats:
    """Return the columns' values[lane, bank] that an access to data or results reaches."""
    command.require_range("column", command.column, ROW_COLUMNS)
    require_row(channel, command, command.row)
    row = command.row - channel.sizes.rows
    if row < 0:
        command.require_range("row", command.row, channel.sizes.rows)
        return channel.cells[command.row, command.column, :, addressed_banks(channel, command)]
    command.require_range("row", row, RESULT_ROWS)
    return channel.results[row, command.column, :, addressed_banks(channel, command)]
