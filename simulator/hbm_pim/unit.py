"""HBM-PIM on values: modes, register windows and the microkernel that column accesses run, fp16 after every operation.

    single-bank mode    ACT, PRE, PREA, RD, WR; writing the entry rows of four banks enters all-bank mode
    all-bank mode       ACT8, PRE8, PREA, and WR8 to the windows; writing the exit row of both parities leaves it
    execution           switched by a write, which resets the program counter; RD8 and ST8 run an instruction each

A WR8 takes its data from the host, but for switches and microkernels, which come with the command: `lane` 1 switches
execution on and 0 off, with `register` 1 the sums are cleared; `simulator.hbm_pim.microkernel` says how words travel.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from simulator.channel import CLOSED
from simulator.functional_code import COLUMN, DEPTH_LIMIT, END, LOOP, FlatProgram
from simulator.functional_errors import (
    EventError,
    FunctionalError,
    ModeError,
    OperandRangeError,
    RowStateError,
    UnsupportedCommandError,
    UnwrittenValueError,
)
from simulator.functional_state import Floats, HostMemory
from simulator.hbm_pim.microkernel import (
    ALIGNED_RUNS,
    MicroInstruction,
    Opcode,
    Place,
    decode,
    multiply_accumulate,
    words_of,
)
from simulator.hbm_pim.registers import (
    ENTER_ROW,
    EXECUTION_COLUMN,
    INPUTS_COLUMN,
    LEAVE_ROW,
    MICROKERNEL_COLUMN,
    MODE_COLUMN,
    ODD,
    REGISTERS,
    RESULT_ROWS,
    ROW_COLUMNS,
    SUMS_COLUMN,
    WINDOW_ROW,
    entry_banks,
)
from simulator.hbm_pim.state import COUNTER, ENTERED, EXECUTES, LEFT, RUNS, MicrokernelChannel
from simulator.isa import CODE_OF, KINDS, OPERANDS, Kind

ALL_BANK_KINDS = (Kind.ACT8, Kind.PRE8, Kind.RD8, Kind.WR8, Kind.ST8)
SINGLE_BANK_KINDS = (Kind.ACT, Kind.PRE, Kind.RD, Kind.WR)
BANKS_OF_PARITIES = 2


class Resolved(NamedTuple):
    """One command with its operands, which of the program it is, and its place in messages."""

    kind: Kind
    bank: int
    row: int
    column: int
    lane: int
    buffer: int
    register: int
    data: int
    event: int
    instruction: int
    number: int
    times: int = 1  # multiplies over columns that follow each other

    @property
    def where(self) -> str:
        """How messages name it."""
        return f"command {self.number}, {self.kind}"


def execute_microkernels(flat: FlatProgram, channel: MicrokernelChannel, memory: HostMemory) -> int:
    """Run a program on a channel and its host memories, both changed in place; return how many commands there were.

    Raises a FunctionalError at the first command that the channel cannot execute; what earlier ones wrote stays.
    """
    run, issued = _Run(channel, memory), 0
    for command in _resolved(flat):
        run.command(command)
        issued += command.times
    return issued


def _resolved(flat: FlatProgram) -> Iterator[Resolved]:
    code, variables, number = flat.code, [0] * DEPTH_LIMIT, 0
    constant, terms = code.constant.tolist(), _terms(flat)
    kinds, targets, repetitions = code.kind.tolist(), code.target.tolist(), code.repetitions.tolist()
    rows = _loops_over_columns(flat, terms)
    at = depth = 0
    while at < len(kinds):
        if kinds[at] == LOOP:
            if (at, depth) in rows:
                values = _operands(constant[at + 1], terms[at + 1], variables, depth)
                yield Resolved._make((Kind.RD8, *values, at + 1, number, repetitions[at]))
                number += repetitions[at]
                at = targets[at]
            elif repetitions[at] <= 0:
                at = targets[at]
            else:
                variables[depth], depth = 0, depth + 1
        elif kinds[at] == END:
            variables[depth - 1] += 1
            if variables[depth - 1] < repetitions[targets[at]]:
                at = targets[at]
            else:
                depth -= 1
        else:
            values = _operands(constant[at], terms[at], variables, depth)
            yield Resolved._make((KINDS[kinds[at]], *values, at, number, 1))
            number += 1
        at += 1


def _operands(constant: list[int], terms: list[tuple[int, int, int]], variables: list[int], depth: int) -> list[int]:
    """Return a command's operands, for the first repetition of loops deeper than those around it."""
    values = constant.copy()
    for place, level, factor in terms:
        if level < depth:
            values[place] += factor * variables[level]
    return values


def _loops_over_columns(flat: FlatProgram, terms: list[list[tuple[int, int, int]]]) -> set[tuple[int, int]]:
    """Return (place, depth) of the loops around nothing but a multiply whose column alone moves, by one."""
    kinds, found, depth = flat.code.kind.tolist(), set(), 0
    for at, kind in enumerate(kinds):
        if kind == LOOP and kinds[at + 1] == CODE_OF[Kind.RD8] and kinds[at + 2] == END:
            own = [(place, factor) for place, level, factor in terms[at + 1] if level == depth]
            if own == [(COLUMN, 1)] and flat.code.repetitions[at] > 0:
                found.add((at, depth))
        depth += (kind == LOOP) - (kind == END)
    return found


def _terms(flat: FlatProgram) -> list[list[tuple[int, int, int]]]:
    """Return, for each instruction, (operand, loop depth, coefficient) of what its operands add to their constants."""
    code = flat.code
    found: list[list[tuple[int, int, int]]] = []
    for first in code.first.tolist():
        places = [(place, term) for place in range(len(OPERANDS)) for term in range(first[place], first[place + 1])]
        found.append([(place, int(code.depth[term]), int(code.coefficient[term])) for place, term in places])
    return found


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
                self.channel.open_row[self._banks(command)] = CLOSED
                self._settle_mode()
            case Kind.WR:
                self._write(command)
            case Kind.RD:
                self._read(command)
            case Kind.WR8:
                self._write_window(command)
            case Kind.RD8:
                self._run_columns(command)
            case Kind.ST8:
                self._run_instruction(command)
            case _:
                raise UnsupportedCommandError(
                    f"{command.where}: expected a command with a meaning on values, found one without"
                )

    def _banks(self, command: Resolved) -> slice:
        """Return the banks a command goes to: one, or all of a parity."""
        every = command.kind in ALL_BANK_KINDS
        limit = BANKS_OF_PARITIES if every else len(self.channel.open_row)
        self._require_range(command, "bank", command.bank, limit)
        return slice(command.bank, None, BANKS_OF_PARITIES) if every else slice(command.bank, command.bank + 1)

    @staticmethod
    def _require_range(command: Resolved, name: str, value: int, limit: int) -> None:
        if not 0 <= value < limit:
            raise OperandRangeError(f"{command.where}: expected {name} in 0..{limit - 1}, found {name} {value}")

    def _require_row(self, command: Resolved, row: int) -> None:
        found = self.channel.open_row[self._banks(command)]
        if (found == row).all():
            return
        bank = int((found != row).argmax())
        texts = ["closed" if item == CLOSED else f"with open row {item}" for item in (row, int(found[bank]))]
        raise RowStateError(f"{command.where}: expected bank {bank} of those addressed {texts[0]}, found it {texts[1]}")

    def _activate(self, command: Resolved) -> None:
        self._require_row(command, CLOSED)
        self._require_range(command, "row", command.row, self.first_reserved + WINDOW_ROW + 1)
        self.channel.open_row[self._banks(command)] = command.row

    def _cells(self, command: Resolved) -> Floats:
        """Return the columns' values[lane, bank] that an access to data or results reaches."""
        self._require_range(command, "column", command.column, ROW_COLUMNS)
        self._require_row(command, command.row)
        row = command.row - self.first_reserved
        if row < 0:
            self._require_range(command, "row", command.row, self.first_reserved)
            return self.channel.cells[command.row, command.column, :, self._banks(command)]
        self._require_range(command, "row", row, RESULT_ROWS)
        return self.channel.results[row, command.column, :, self._banks(command)]

    def _host_column(self, command: Resolved) -> Floats:
        """Return the fp16 values of a host entry that has arrived."""
        self._require_range(command, "data", command.data, len(self.memory.inputs))
        event = int(self.memory.input_events[command.data])
        if event >= 0 and event not in self.arrived:
            raise EventError(f"{command.where}: expected a WAIT for event {event} before, found none")
        return _half(self.memory.inputs[command.data])

    def _write(self, command: Resolved) -> None:
        if command.row == self.first_reserved + ENTER_ROW and command.column == MODE_COLUMN:
            self._require_row(command, command.row)
            self.channel.standing[ENTERED] |= 1 << command.bank
            return
        self._cells(command)[:] = self._host_column(command)[:, None]

    def _read(self, command: Resolved) -> None:
        values, memory = self._cells(command)[:, 0], self.memory
        self._require_range(command, "data", command.data, len(memory.outputs))
        if memory.taken[command.data]:
            event = memory.output_events[command.data]
            raise EventError(f"{command.where}: expected to come before the SIGNAL of event {event}, found it after")
        self._require_written(command, values, "a cell")
        memory.outputs[command.data] = values
        memory.writers[command.data] = command.instruction

    def _hand_over(self, command: Resolved) -> None:
        own = self.memory.output_events == command.event
        if (self.memory.writers[own] < 0).any():
            raise UnwrittenValueError(
                f"{command.where}: expected values written before, found an output to hand over that never was"
            )
        self.memory.taken[own] = 1

    @staticmethod
    def _require_written(command: Resolved, values: Floats, place: str) -> None:
        if np.isnan(values).any():
            raise UnwrittenValueError(f"{command.where}: expected values written before, found {place} that never was")

    def _write_window(self, command: Resolved) -> None:
        self._require_row(command, command.row)
        row, column, channel = command.row - self.first_reserved, command.column, self.channel
        if row == LEAVE_ROW and column == MODE_COLUMN:
            channel.standing[LEFT] |= 1 << command.bank
        elif row != WINDOW_ROW:
            self._require_range(command, "row", row, WINDOW_ROW + 1)
            raise ModeError(f"{command.where}: expected a register window or the exit, found row {command.row}")
        elif column == EXECUTION_COLUMN:
            self._switch(command)
        elif command.bank != ODD:
            raise ModeError(f"{command.where}: expected register windows of odd banks, found even banks")
        elif MICROKERNEL_COLUMN <= column < INPUTS_COLUMN:
            self._load_words(command)
        elif INPUTS_COLUMN <= column < INPUTS_COLUMN + REGISTERS:
            channel.inputs[column - INPUTS_COLUMN] = self._host_column(command)[:, None]
        elif SUMS_COLUMN <= column < SUMS_COLUMN + REGISTERS:
            channel.sums[column - SUMS_COLUMN] = self._host_column(command)[:, None]
        else:
            raise UnsupportedCommandError(f"{command.where}: expected a register window, found column {column}")

    def _switch(self, command: Resolved) -> None:
        self.channel.standing[[EXECUTES, COUNTER, RUNS]] = (command.lane, 0, 0)
        self.channel.jumps[:] = -1
        if command.register:
            self.channel.sums[:] = 0

    def _load_words(self, command: Resolved) -> None:
        words = words_of(command.lane, command.buffer, command.register, command.data)
        first = (command.column - MICROKERNEL_COLUMN) * len(words)
        self._require_range(command, "column", first + len(words) - 1, len(self.channel.words))
        self.channel.words[first : first + len(words)] = words

    def _run_columns(self, command: Resolved) -> None:
        """Run multiplies over columns that follow each other: at once what takes different registers of sums."""
        done = 0
        while done < command.times:
            one = command._replace(column=command.column + done, number=command.number + done, times=1)
            together = self._multiplied_together(one, command.times - done)
            if together == 1:
                self._run_instruction(one)
            done += together

    def _multiplied_together(self, command: Resolved, most: int) -> int:
        """Multiply several columns from this one on and return how many; 1, and nothing done, if one by one is due."""
        channel, row = self.channel, command.row
        runs, first = int(channel.standing[RUNS]), command.column % REGISTERS
        count = min(most, ALIGNED_RUNS - runs, REGISTERS - first)
        banks = slice(command.bank, None, BANKS_OF_PARITIES)
        fine = 0 <= command.bank < BANKS_OF_PARITIES and 0 <= row < self.first_reserved
        fine = fine and 0 <= command.column <= ROW_COLUMNS - count and channel.standing[EXECUTES] == 1
        if count < 2 or not fine or (channel.open_row[banks] != row).any():
            return 1
        instruction = self._next(command)
        if instruction != multiply_accumulate(Place.ODD_BANK if command.bank == ODD else Place.EVEN_BANK):
            return 1
        cells = channel.cells[row, command.column : command.column + count, :, banks]
        factors = channel.inputs[(row & 1) << 2 | command.column >> 3 & 3]
        sums = _half(_half(cells * factors) + channel.sums[first : first + count])
        if np.isnan(sums).any():
            return 1
        channel.sums[first : first + count] = sums
        channel.standing[RUNS] = runs + count - 1
        self._count(instruction)
        return count

    def _run_instruction(self, command: Resolved) -> None:
        if not self.channel.standing[EXECUTES]:
            raise ModeError(f"{command.where}: expected units that execute, found execution switched off")
        cells, instruction = self._cells(command), self._next(command)
        if command.kind is Kind.ST8:
            if instruction.opcode is not Opcode.NOP:
                raise ModeError(f"{command.where}: expected a store next, found {instruction}")
            values = self._registers_of(command)[command.column % REGISTERS]
            self._require_written(command, values, "an accumulator")
            cells[:] = values
        elif instruction.opcode is Opcode.MAC:
            self._multiply(command, instruction, cells)
        elif instruction.opcode in (Opcode.FILL, Opcode.ADD, Opcode.MUL):
            self._work_on_column(command, instruction, cells)
        else:
            raise UnsupportedCommandError(
                f"{command.where}: expected an instruction with a meaning, found {instruction}"
            )
        self._count(instruction)

    def _registers_of(self, command: Resolved) -> Floats:
        """Return the registers that even or odd banks fill and store without a multiply-accumulate."""
        return self.channel.sums if command.bank == ODD else self.channel.inputs

    def _work_on_column(self, command: Resolved, instruction: MicroInstruction, cells: Floats) -> None:
        """Fill a register with a column, or add or multiply the column to what it holds."""
        bank, to = (Place.ODD_BANK, Place.SUMS) if command.bank == ODD else (Place.EVEN_BANK, Place.INPUTS)
        fill = instruction.opcode is Opcode.FILL
        operands = (instruction.source,) if fill else (instruction.source, instruction.other)
        if (instruction.destination, *operands) != ((to, bank) if fill else (to, to, bank)) or not instruction.aligned:
            raise ModeError(f"{command.where}: expected work on the {bank.name} next, found {instruction}")
        self._require_written(command, cells, "a cell")
        register = self._registers_of(command)[command.column % REGISTERS]
        if fill:
            register[:] = np.maximum(cells, 0) if instruction.relu else cells
            return
        self._require_written(command, register, "a register")
        register[:] = _half(register + cells if instruction.opcode is Opcode.ADD else register * cells)

    def _multiply(self, command: Resolved, instruction: MicroInstruction, cells: Floats) -> None:
        """Add the products of a column with an input register to a register of sums."""
        expected = Place.ODD_BANK if command.bank == ODD else Place.EVEN_BANK
        places = (instruction.destination, instruction.source, instruction.other)
        if places != (Place.SUMS, expected, Place.INPUTS) or not instruction.aligned:
            raise ModeError(f"{command.where}: expected a multiply of the {expected.name} next, found {instruction}")
        inputs = (command.row & 1) << 2 | command.column >> 3 & 3
        values, factors = cells, self.channel.inputs[inputs]
        sums = self.channel.sums[command.column % REGISTERS]
        sums[:] = _half(_half(values * factors) + sums)
        if np.isnan(sums).any():
            self._require_written(command, values, "a cell")
            self._require_written(command, factors, "a global-buffer column")
            self._require_written(command, sums, "an accumulator")

    def _next(self, command: Resolved) -> MicroInstruction:
        """Return the instruction at the program counter, behind the jumps that lead there."""
        standing, jumps = self.channel.standing, self.channel.jumps
        while True:
            counter = int(standing[COUNTER])
            self._require_range(command, "program counter", counter, len(self.channel.words))
            word = int(self.channel.words[counter])
            if word < 0:
                raise UnwrittenValueError(f"{command.where}: expected an instruction at {counter}, found none written")
            instruction = _decoded(command, word)
            if instruction.opcode is not Opcode.JUMP:
                return instruction
            if jumps[counter] < 0:
                jumps[counter] = instruction.count
            back = jumps[counter] > 0
            jumps[counter] -= 1
            standing[COUNTER] += -instruction.back if back else 1

    def _count(self, instruction: MicroInstruction) -> None:
        standing = self.channel.standing
        standing[RUNS] += 1
        if standing[RUNS] == (ALIGNED_RUNS if instruction.aligned else instruction.count):
            standing[[COUNTER, RUNS]] = standing[COUNTER] + 1, 0

    def _settle_mode(self) -> None:
        """Change modes once every row that asks for it has been written and closed."""
        standing, channel = self.channel.standing, self.channel
        entered = sum(1 << bank for bank in entry_banks(len(channel.open_row)))
        if (channel.open_row != CLOSED).any():
            return
        if standing[ENTERED] == entered:
            channel.register_mode[0], standing[ENTERED] = 1, 0
        if standing[LEFT] == (1 << BANKS_OF_PARITIES) - 1:
            channel.register_mode[0], standing[LEFT] = 0, 0


def _half(values: Floats) -> Floats:
    """Return float32 values rounded to nearest even fp16."""
    rounded: Floats = values.astype(np.float16).astype(np.float32)
    return rounded


def _decoded(command: Resolved, word: int) -> MicroInstruction:
    try:
        return decode(word)
    except ValueError as error:
        raise FunctionalError(f"{command.where}: expected a known instruction, found {word:#010x}") from error
