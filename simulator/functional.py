"""Executes programs on stored values, bank by bank, with the unit's declared arithmetic: how miscompilations are found.

Products of bf16 values are exact in fp32; a balanced fp32 tree adds the lanes, adjacent ones first; its sum is added to
the fp32 accumulator in the order of the commands; each read-out rounds to nearest even bf16. Commands on events have no
effect here. `simulator.functional_reference` says the same in plain Python.
"""

from typing import NoReturn

import numpy as np

from simulator.channel import CLOSED
from simulator.functional_code import DEPTH_LIMIT, FlatProgram, flatten_functional
from simulator.functional_engine import (
    EXPECTED,
    FINE,
    FOUND,
    IN_ACCUMULATOR,
    IN_BUFFER,
    INSTRUCTION,
    ISSUED,
    OPERAND_CELL,
    OUT_OF_RANGE,
    UNSUPPORTED,
    UNWRITTEN,
    WHERE,
    WRONG_MODE,
    Arrays,
    run,
)
from simulator.functional_errors import (
    ModeError,
    OperandRangeError,
    RowStateError,
    UnsupportedCommandError,
    UnwrittenValueError,
)
from simulator.functional_state import ChannelSizes, FunctionalChannel, HostMemory, fresh_channel, host_memory
from simulator.isa import OPERANDS, Program

__all__ = [
    "ChannelSizes",
    "FlatProgram",
    "FunctionalChannel",
    "HostMemory",
    "execute",
    "flatten_functional",
    "fresh_channel",
    "host_memory",
]


def execute(program: Program | FlatProgram, channel: FunctionalChannel, memory: HostMemory) -> int:
    """Run a program on a channel and its host memories, both changed in place; return how many commands were issued.

    Raises UnwrittenValueError, RowStateError, ModeError, OperandRangeError or UnsupportedCommandError at the first
    command that the channel cannot execute; what earlier commands wrote stays.
    """
    flat = flatten_functional(program) if isinstance(program, Program) else program
    sizes = channel.sizes
    arrays = Arrays(
        cells=channel.cells,
        buffer=channel.buffer,
        accumulators=channel.accumulators,
        accumulator_bits=channel.accumulators.view(np.uint32),
        open_row=channel.open_row,
        register_mode=channel.register_mode,
        inputs=memory.inputs,
        inputs_by_bank=memory.inputs_by_bank,
        output_bits=memory.outputs.view(np.uint32),
        writers=memory.writers,
        pairs=np.zeros((2, max(1, sizes.lanes // 2), sizes.banks), dtype=np.float32),
        variables=np.zeros(DEPTH_LIMIT, dtype=np.int64),
        operands=np.zeros(len(OPERANDS), dtype=np.int64),
        fault=np.zeros(5, dtype=np.int64),
    )
    outcome = run(flat.code, arrays)
    if outcome != FINE:
        _raise(outcome, flat, arrays)
    return int(arrays.fault[ISSUED])


def _raise(outcome: int, flat: FlatProgram, arrays: Arrays) -> NoReturn:
    fault = arrays.fault
    command = flat.commands[fault[INSTRUCTION]]
    where = f"command {fault[ISSUED]}, {command.kind if command else 'loop'}"
    if outcome == UNWRITTEN:
        place = {IN_ACCUMULATOR: "an accumulator", IN_BUFFER: "a global-buffer column"}.get(int(fault[WHERE]), "a cell")
        raise UnwrittenValueError(f"{where}: expected values written before, found {place} that never was")
    if outcome == WRONG_MODE:
        modes = ("memory mode", "register mode")
        current = int(arrays.register_mode[0])
        raise ModeError(f"{where}: expected {modes[1 - current]}, found {modes[current]}")
    if outcome == OUT_OF_RANGE:
        name = OPERANDS[fault[WHERE] - OPERAND_CELL]
        raise OperandRangeError(f"{where}: expected {name} in 0..{fault[EXPECTED] - 1}, found {name} {fault[FOUND]}")
    if outcome == UNSUPPORTED:
        raise UnsupportedCommandError(f"{where}: expected a command with a meaning on values, found one without")
    expected, found = (_row_text(int(fault[place])) for place in (EXPECTED, FOUND))
    raise RowStateError(f"{where}: expected bank {fault[WHERE]} {expected}, found it {found}")


def _row_text(row: int) -> str:
    return "closed" if row == CLOSED else f"with open row {row}"
