"""The meaning of every command on values in plain Python: slow, readable, and the oracle of the compiled engine."""

import numpy as np

from simulator.bf16 import round_to_bf16
from simulator.channel import CLOSED
from simulator.functional_errors import RowStateError, UnsupportedCommandError, UnwrittenValueError
from simulator.functional_state import Floats, FunctionalChannel, HostMemory
from simulator.isa import Issued, Kind, Program, walk


def execute_reference(program: Program, channel: FunctionalChannel, memory: HostMemory) -> None:
    """Run a program command by command; ranges and modes are the compiled engine's to check."""
    for command in walk(program):
        _execute(command, program.vectors_per_multiply, channel, memory)


def tree_sum(products: Floats) -> Floats:
    """Add the lanes (axis 0) pairwise, adjacent ones first."""
    while len(products) > 1:
        products = products[0::2] + products[1::2]
    total: Floats = products[0]
    return total


def _execute(command: Issued, vectors: int, channel: FunctionalChannel, memory: HostMemory) -> None:
    match command.kind:
        case Kind.WAIT | Kind.SIGNAL:
            pass
        case Kind.TMOD:
            channel.register_mode[0] ^= 1
        case Kind.ACT:
            _expect_row(channel, slice(command.bank, command.bank + 1), CLOSED)
            channel.open_row[command.bank] = command.row
        case Kind.ACT16:
            _expect_row(channel, slice(None), CLOSED)
            channel.open_row[:] = command.row
        case Kind.PRE:
            channel.open_row[command.bank] = CLOSED
        case Kind.PREA:
            channel.open_row[:] = CLOSED
        case Kind.WR:
            _expect_row(channel, slice(command.bank, command.bank + 1), command.row)
            for access in range(channel.sizes.accesses_per_column):
                column = memory.inputs[command.data + access]
                channel.cells[command.row, command.column + access, :, command.bank] = column
        case Kind.WRA16:
            _expect_row(channel, slice(None), command.row)
            for value in range(channel.sizes.values_per_write):
                values = memory.inputs_by_bank[command.data + value]
                channel.cells[command.row, command.column, command.lane + value] = values
            channel.open_row[:] = CLOSED
        case Kind.MAC16:
            _expect_row(channel, slice(None), command.row)
            _multiply(channel.cells[command.row, command.column], command, vectors, channel)
        case Kind.LATCH16:
            _expect_row(channel, slice(None), command.row)
            channel.latched[:] = channel.cells[command.row]
            channel.latched_row[:] = command.row
            channel.open_row[:] = CLOSED
        case Kind.MACL16:
            if channel.latched_row[0] != command.row:
                raise RowStateError(f"expected row {command.row} latched, found {channel.latched_row[0]}")
            _multiply(channel.latched[command.column], command, vectors, channel)
        case Kind.SCALE16:
            _expect_row(channel, slice(None), command.row)
            columns = slice(command.column, command.column + channel.sizes.accesses_per_column)
            channel.scales[:] = channel.cells[command.row, columns].reshape(channel.scales.shape)
        case Kind.WRGB:
            channel.buffer[command.buffer] = memory.inputs[command.data]
        case Kind.WRMAC16:
            channel.accumulators[command.register] = memory.outputs[command.data]
        case Kind.RDMAC16:
            _expect_written(channel.accumulators[command.register])
            memory.outputs[command.data] = round_to_bf16(channel.accumulators[command.register])
        case _:
            raise UnsupportedCommandError(
                f"{command.kind}: expected a command with a meaning on values, found one without"
            )


def _multiply(column: Floats, command: Issued, vectors: int, channel: FunctionalChannel) -> None:
    """Add the products of column[lane, bank] with every vector that the command serves."""
    for vector in range(vectors):
        values = channel.buffer[command.buffer + vector * command.data][:, None]
        total = tree_sum(column * values)
        if command.lane:
            total = total * channel.scales[command.lane - 1]
        channel.accumulators[command.register + vector] += total
        _expect_written(channel.accumulators[command.register + vector])


def _expect_row(channel: FunctionalChannel, banks: slice, row: int) -> None:
    if (channel.open_row[banks] != row).any():
        raise RowStateError(f"expected row {row} in all addressed banks, found {channel.open_row[banks].tolist()}")


def _expect_written(values: Floats) -> None:
    if np.isnan(values).any():
        raise UnwrittenValueError("expected values written before, found some that never were")
