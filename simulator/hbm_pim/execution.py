"""What every unit of a channel does at a column access: the instruction that is next, on values.

Every product and every sum is rounded to fp16. An aligned multiply-accumulate of several columns is one array operation
where each goes to a register of sums of its own.
"""

import numpy as np

from configs.microkernel_units import BANKS_OF_UNIT, REGISTERS, ROW_COLUMNS
from simulator.functional_errors import ModeError, UnsupportedCommandError
from simulator.functional_state import Floats
from simulator.hbm_pim.access import cells_of
from simulator.hbm_pim.commands import Resolved
from simulator.hbm_pim.microkernel import ALIGNED_RUNS, MicroInstruction, Opcode, Place, multiply_accumulate
from simulator.hbm_pim.registers import ODD
from simulator.hbm_pim.sequencer import count_run, next_instruction
from simulator.hbm_pim.state import EXECUTES, RUNS, MicrokernelChannel
from simulator.isa import Kind


def half(values: Floats) -> Floats:
    """Return float32 values rounded to nearest even fp16."""
    rounded: Floats = values.astype(np.float16).astype(np.float32)
    return rounded


def run_columns(channel: MicrokernelChannel, command: Resolved) -> None:
    """Run multiplies over columns that follow each other: at once what takes different registers of sums."""
    done = 0
    while done < command.times:
        one = command._replace(column=command.column + done, number=command.number + done, times=1)
        together = _multiplied_together(channel, one, command.times - done)
        if together == 1:
            run_instruction(channel, one)
        done += together


def _multiplied_together(channel: MicrokernelChannel, command: Resolved, most: int) -> int:
    """Multiply several columns from this one on and return how many; 1, and nothing done, if one by one is due."""
    row, first = command.row, command.column % REGISTERS
    runs = int(channel.standing[RUNS])
    count = min(most, ALIGNED_RUNS - runs, REGISTERS - first)
    banks = slice(command.bank, None, BANKS_OF_UNIT)
    fine = 0 <= command.bank < BANKS_OF_UNIT and 0 <= row < channel.sizes.rows
    fine = fine and 0 <= command.column <= ROW_COLUMNS - count and channel.standing[EXECUTES] == 1
    if count < 2 or not fine or (channel.open_row[banks] != row).any():
        return 1
    instruction = next_instruction(channel, command)
    if instruction != multiply_accumulate(Place.ODD_BANK if command.bank == ODD else Place.EVEN_BANK):
        return 1
    cells = channel.cells[row, command.column : command.column + count, :, banks]
    factors = channel.inputs[(row & 1) << 2 | command.column >> 3 & 3]
    sums = half(half(cells * factors) + channel.sums[first : first + count])
    if np.isnan(sums).any():
        return 1
    channel.sums[first : first + count] = sums
    channel.standing[RUNS] = runs + count - 1
    count_run(channel, instruction)
    return count


def run_instruction(channel: MicrokernelChannel, command: Resolved) -> None:
    """Run the next instruction on a column."""
    if not channel.standing[EXECUTES]:
        raise ModeError(f"{command.where}: expected units that execute, found execution switched off")
    cells, instruction = cells_of(channel, command), next_instruction(channel, command)
    if command.kind is Kind.ST8:
        if instruction.opcode is not Opcode.NOP:
            raise ModeError(f"{command.where}: expected a store next, found {instruction}")
        values = _registers_of(channel, command)[command.column % REGISTERS]
        command.require_written(values, "an accumulator")
        cells[:] = values
    elif instruction.opcode is Opcode.MAC:
        _multiply(channel, command, instruction, cells)
    elif instruction.opcode in (Opcode.FILL, Opcode.ADD, Opcode.MUL):
        _work_on_column(channel, command, instruction, cells)
    else:
        raise UnsupportedCommandError(f"{command.where}: expected an instruction with a meaning, found {instruction}")
    count_run(channel, instruction)


def _registers_of(channel: MicrokernelChannel, command: Resolved) -> Floats:
    """Return the registers that even or odd banks fill and store without a multiply-accumulate."""
    return channel.sums if command.bank == ODD else channel.inputs


def _work_on_column(
    channel: MicrokernelChannel, command: Resolved, instruction: MicroInstruction, cells: Floats
) -> None:
    """Fill a register with a column, or add or multiply the column to what it holds."""
    bank, to = (Place.ODD_BANK, Place.SUMS) if command.bank == ODD else (Place.EVEN_BANK, Place.INPUTS)
    fill = instruction.opcode is Opcode.FILL
    operands = (instruction.source,) if fill else (instruction.source, instruction.other)
    if (instruction.destination, *operands) != ((to, bank) if fill else (to, to, bank)) or not instruction.aligned:
        raise ModeError(f"{command.where}: expected work on the {bank.name} next, found {instruction}")
    command.require_written(cells, "a cell")
    register = _registers_of(channel, command)[command.column % REGISTERS]
    if fill:
        register[:] = np.maximum(cells, 0) if instruction.relu else cells
        return
    command.require_written(register, "a register")
    register[:] = half(register + cells if instruction.opcode is Opcode.ADD else register * cells)


def _multiply(channel: MicrokernelChannel, command: Resolved, instruction: MicroInstruction, cells: Floats) -> None:
    """Add the products of a column with an input register to a register of sums."""
    expected = Place.ODD_BANK if command.bank == ODD else Place.EVEN_BANK
    places = (instruction.destination, instruction.source, instruction.other)
    if places != (Place.SUMS, expected, Place.INPUTS) or not instruction.aligned:
        raise ModeError(f"{command.where}: expected a multiply of the {expected.name} next, found {instruction}")
    inputs = (command.row & 1) << 2 | command.column >> 3 & 3
    values, factors = cells, channel.inputs[inputs]
    sums = channel.sums[command.column % REGISTERS]
    sums[:] = half(half(values * factors) + sums)
    if np.isnan(sums).any():
        command.require_written(values, "a cell")
        command.require_written(factors, "a global-buffer column")
        command.require_written(sums, "an accumulator")
