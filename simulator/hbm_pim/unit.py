"""An HBM-PIM channel on values: modes, rows, what the host writes and reads, and the register windows.

    single-bank mode    ACT, PRE, PREA, RD, WR; writing the entry rows of four banks enters all-bank mode
    all-bank mode       ACT8, PRE8, PREA, and WR8 to the windows; writing the exit row of both parities leaves it
    execution           switched by a write, which resets the program counter; RD8 and ST8 run an instruction each

A WR8 takes its data from the host, but for switches and microkernels, which come with the command: `lane` 1 switches
execution on and 0 off, with `register` 1 the sums are cleared; `simulator.hbm_pim.microkernel` says how words travel.
What is next and what it does on values say `simulator.hbm_pim.sequencer` and `simulator.hbm_pim.execution`.
"""

from configs.microkernel_units import BANKS_OF_UNIT, REGISTERS
from simulator.channel import CLOSED
from simulator.functional_code import FlatProgram
from simulator.functional_errors import EventError, ModeError, UnsupportedCommandError, UnwrittenValueError
from simulator.functional_state import Floats, HostMemory
from simulator.hbm_pim.access import ALL_BANK_KINDS, addressed_banks, cells_of, require_row
from simulator.hbm_pim.commands import Resolved, resolved
from simulator.hbm_pim.execution import half, run_columns, run_instruction
from simulator.hbm_pim.registers import (
    ENTER_ROW,
    EXECUTION_COLUMN,
    INPUTS_COLUMN,
    LEAVE_ROW,
    MICROKERNEL_COLUMN,
    MODE_COLUMN,
    ODD,
    SUMS_COLUMN,
    WINDOW_ROW,
    entry_banks,
)
from simulator.hbm_pim.sequencer import load_words, switch_execution
from simulator.hbm_pim.state import ENTERED, LEFT, MicrokernelChannel
from simulator.isa import Kind

SINGLE_BANK_KINDS = (Kind.ACT, Kind.PRE, Kind.RD, Kind.WR)


def execute_microkernels(flat: FlatProgram, channel: MicrokernelChannel, memory: HostMemory) -> int:
    """Run a program on a channel and its host memories, both changed in place; return how many commands there were.

    Raises a FunctionalError at the first command that the channel cannot execute; what earlier ones wrote stays.
    """
    run, issued = _Run(channel, memory), 0
    for command in resolved(flat):
        run.command(command)
        issued += command.times
    return issued


class _Run:
    """One program on one channel."""

    def __init__(self, channel: MicrokernelChannel, memory: HostMemory) -> None:
        self.channel, self.memory = channel, memory
        self.arrived: set[int] = set()
        self.first_reserved = channel.sizes.rows

    def command(self, command: Resolved) -> None:
        """Execute one command."""
        kind, all_banks = command.kind, bool(self.channel.register_mode[0])
        if (kind in ALL_BANK_KINDS and not all_banks) or (kind in SINGLE_BANK_KINDS and all_banks):
            modes = ("single-bank mode", "all-bank mode")
            raise ModeError(f"{command.where}: expected {modes[not all_banks]}, found {modes[all_banks]}")
        match kind:
            case Kind.WAIT:
                self.arrived.add(command.event)
            case Kind.SIGNAL:
                self._hand_over(command)
            case Kind.PREA:
                self.channel.open_row[:] = CLOSED
                self._settle_mode()
            case Kind.ACT | Kind.ACT8:
                self._activate(command)
            case Kind.PRE | Kind.PRE8:
                self.channel.open_row[addressed_banks(self.channel, command)] = CLOSED
                self._settle_mode()
            case Kind.WR:
                self._write(command)
            case Kind.RD:
                self._read(command)
            case Kind.WR8:
                self._write_window(command)
            case Kind.RD8:
                run_columns(self.channel, command)
            case Kind.ST8:
                run_instruction(self.channel, command)
            case _:
                raise UnsupportedCommandError(
                    f"{command.where}: expected a command with a meaning on values, found one without"
                )

    def _activate(self, command: Resolved) -> None:
        require_row(self.channel, command, CLOSED)
        command.require_range("row", command.row, self.first_reserved + WINDOW_ROW + 1)
        self.channel.open_row[addressed_banks(self.channel, command)] = command.row

    def _host_column(self, command: Resolved) -> Floats:
        """Return the fp16 values of a host entry that has arrived."""
        command.require_range("data", command.data, len(self.memory.inputs))
        event = int(self.memory.input_events[command.data])
        if event >= 0 and event not in self.arrived:
            raise EventError(f"{command.where}: expected a WAIT for event {event} before, found none")
        return half(self.memory.inputs[command.data])

    def _write(self, command: Resolved) -> None:
        if command.row == self.first_reserved + ENTER_ROW and command.column == MODE_COLUMN:
            require_row(self.channel, command, command.row)
            self.channel.standing[ENTERED] |= 1 << command.bank
            return
        cells_of(self.channel, command)[:] = self._host_column(command)[:, None]

    def _read(self, command: Resolved) -> None:
        values, memory = cells_of(self.channel, command)[:, 0], self.memory
        command.require_range("data", command.data, len(memory.outputs))
        if memory.taken[command.data]:
            event = memory.output_events[command.data]
            raise EventError(f"{command.where}: expected to come before the SIGNAL of event {event}, found it after")
        command.require_written(values, "a cell")
        memory.outputs[command.data] = values
        memory.writers[command.data] = command.instruction

    def _hand_over(self, command: Resolved) -> None:
        own = self.memory.output_events == command.event
        if (self.memory.writers[own] < 0).any():
            raise UnwrittenValueError(
                f"{command.where}: expected values written before, found an output to hand over that never was"
            )
        self.memory.taken[own] = 1

    def _write_window(self, command: Resolved) -> None:
        require_row(self.channel, command, command.row)
        row, column, channel = command.row - self.first_reserved, command.column, self.channel
        if row == LEAVE_ROW and column == MODE_COLUMN:
            channel.standing[LEFT] |= 1 << command.bank
        elif row != WINDOW_ROW:
            command.require_range("row", row, WINDOW_ROW + 1)
            raise ModeError(f"{command.where}: expected a register window or the exit, found row {command.row}")
        elif column == EXECUTION_COLUMN:
            switch_execution(channel, command)
        elif command.bank != ODD:
            raise ModeError(f"{command.where}: expected register windows of odd banks, found even banks")
        elif MICROKERNEL_COLUMN <= column < INPUTS_COLUMN:
            load_words(channel, command)
        elif INPUTS_COLUMN <= column < INPUTS_COLUMN + REGISTERS:
            channel.inputs[column - INPUTS_COLUMN] = self._host_column(command)[:, None]
        elif SUMS_COLUMN <= column < SUMS_COLUMN + REGISTERS:
            channel.sums[column - SUMS_COLUMN] = self._host_column(command)[:, None]
        else:
            raise UnsupportedCommandError(f"{command.where}: expected a register window, found column {column}")

    def _settle_mode(self) -> None:
        """Change modes once every row that asks for it has been written and closed."""
        standing, channel = self.channel.standing, self.channel
        entered = sum(1 << bank for bank in entry_banks(len(channel.open_row)))
        if (channel.open_row != CLOSED).any():
            return
        if standing[ENTERED] == entered:
            channel.register_mode[0], standing[ENTERED] = 1, 0
        if standing[LEFT] == (1 << BANKS_OF_UNIT) - 1:
            channel.register_mode[0], standing[LEFT] = 0, 0
