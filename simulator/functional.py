"""Executes programs on stored values, bank by bank, with the unit's declared arithmetic: how miscompilations are found.

Products of stored elements with bf16 inputs are exact in fp32; a balanced fp32 tree adds the lanes, adjacent ones
first; its sum is multiplied by a scale where the command names one, rounded to fp32, and added to the fp32 accumulator
in the order of the commands; each read-out rounds to nearest even bf16. WAIT makes known that the host's data of an
event are there, SIGNAL that it may take the results of one. A second row buffer keeps the values that its row had when
it was latched. `simulator.functional_reference` says the same in plain
Python, without the checks.
"""

from typing import NoReturn

import numpy as np

from simulator.channel import CLOSED
from simulator.functional_code import DEPTH_LIMIT, FlatProgram, flatten_functional
from simulator.functional_engine import (
    EVENT_ORDER,
    EXPECTED,
    FINE,
    FOUND,
    HANDED_OVER,
    IN_ACCUMULATOR,
    IN_BUFFER,
    IN_LATCHES,
    IN_OUTPUTS,
    IN_SCALES,
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
    EventError,
    ModeError,
    OperandRangeError,
    RowStateError,
    UnsupportedCommandError,
    UnwrittenValueError,
)
from simulator.functional_state import ChannelSizes, FunctionalChannel, HostMemory, host_memory
from simulator.functional_state import fresh_channel as fresh_lockstep_channel
from simulator.hbm_pim.state import MicrokernelChannel, fresh_microkernel_channel
from simulator.hbm_pim.unit import execute_microkernels
from simulator.isa import OPERANDS, Program

__all__ = [
    "Channel",
    "ChannelSizes",
    "FlatProgram",
    "FunctionalChannel",
    "HostMemory",
    "execute",
    "flatten_functional",
    "fresh_channel",
    "host_memory",
]

UNWRITTEN_PLACES = {
    IN_ACCUMULATOR: "an accumulator",
    IN_BUFFER: "a global-buffer column",
    IN_SCALES: "a scale",
    IN_OUTPUTS: "an output to hand over",
}


Channel = FunctionalChannel | MicrokernelChannel


def fresh_channel(sizes: ChannelSizes) -> Channel:
    """Return a channel that holds nothing."""
    return fresh_microkernel_channel(sizes) if sizes.microkernel_words else fresh_lockstep_channel(sizes)


def execute(program: Program | FlatProgram, channel: Channel, memory: HostMemory) -> int:
    """Run a program on a channel and its host memories, both changed in place; return how many commands were issued.

    Raises UnwrittenValueError, RowStateError, EventError, ModeError, OperandRangeError or UnsupportedCommandError at
    the first command that the channel cannot execute; what earlier commands wrote stays.
    """
    flat = flatten_functional(program) if isinstance(program, Program) else program
    if isinstance(channel, MicrokernelChannel):
        return execute_microkernels(flat, channel, memory)
    sizes = channel.sizes
    arrays = Arrays(
        cells=channel.cells,
        buffer=channel.buffer,
        accumulators=channel.accumulators,
        scales=channel.scales,
        accumulator_bits=channel.accumulators.view(np.uint32),
        open_row=channel.open_row,
        latched=channel.latched,
        latched_row=channel.latched_row,
        register_mode=channel.register_mode,
        inputs=memory.inputs,
        inputs_by_bank=memory.inputs_by_bank,
        output_bits=memory.outputs.view(np.uint32),
        writers=memory.writers,
        pairs=np.zeros((2, max(1, sizes.lanes // 2), sizes.banks), dtype=np.float32),
        widths=np.array([sizes.accesses_per_column, sizes.values_per_write, flat.vectors_per_multiply], dtype=np.int64),
        input_events=memory.input_events,
        output_events=memory.output_events,
        taken=memory.taken,
        arrived=np.zeros(int(memory.input_events.max(initial=-1)) + 1, dtype=np.int64),
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
        place = UNWRITTEN_PLACES.get(int(fault[WHERE]), "a cell")
        raise UnwrittenValueError(f"{where}: expected values written before, found {place} that never was")
    if outcome == EVENT_ORDER:
        raise EventError(f"{where}: expected a WAIT for event {fault[EXPECTED]} before, found none")
    if outcome == HANDED_OVER:
        raise EventError(f"{where}: expected to come before the SIGNAL of event {fault[EXPECTED]}, found it after")
    if outcome == WRONG_MODE:
        modes = ("memory mode", "register mode")
        current = int(arrays.register_mode[0])
        raise ModeError(f"{where}: expected {modes[1 - current]}, found {modes[current]}")
    if outcome == OUT_OF_RANGE:
        name = OPERANDS[fault[WHERE] - OPERAND_CELL]
        raise OperandRangeError(f"{where}: expected {name} in 0..{fault[EXPECTED] - 1}, found {name} {fault[FOUND]}")
    if outcome == UNSUPPORTED:
        raise UnsupportedCommandError(f"{where}: expected a command with a meaning on values, found one without")
    if fault[WHERE] == IN_LATCHES:
        found = "none" if fault[FOUND] == CLOSED else f"row {fault[FOUND]}"
        raise RowStateError(f"{where}: expected row {fault[EXPECTED]} in the second row buffers, found {found}")
    expected, found = (_row_text(int(fault[place])) for place in (EXPECTED, FOUND))
    raise RowStateError(f"{where}: expected bank {fault[WHERE]} {expected}, found it {found}")


def _row_text(row: int) -> str:
    return "closed" if row == CLOSED else f"with open row {row}"
