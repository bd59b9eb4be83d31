"""From instructions to requests: what the DMA sends to the channels, as the arrays the engine reads.

Instruction i becomes `columns[i]` requests on consecutive columns for each of its channels. The activation function,
the one configuration register that changes anything, is resolved here because the DMA works in trace order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.aim.instructions import SHAPES, Instruction, Opcode, Route
from simulator.aim.trace import Trace
from simulator.isa import CODE_OF, KINDS

COMMAND_NAMES = (*KINDS, Opcode.SYNC, Opcode.EOC)
"""Every name a command row can have; SYNC and EOC are no DRAM commands but the channels take them like one."""
SYNC_CODE = len(KINDS)
EOC_CODE = SYNC_CODE + 1
NO_COMMAND = -1
QUEUE_PIM, QUEUE_READ, QUEUE_WRITE, QUEUE_ACTIVE = range(4)
NO_QUEUE = -1
QUEUE_OF = {
    Route.NOWHERE: NO_QUEUE,
    Route.PIM: QUEUE_PIM,
    Route.READ: QUEUE_READ,
    Route.WRITE: QUEUE_WRITE,
}
ACTIVATION_REGISTER = 2
ACTIVATION_ROW = 1 << 29
"""AF needs the pseudo-row 2^29 + activation function open in all banks (the public AiM simulator's DMA)."""
WITHOUT_COLUMN = frozenset({Opcode.READ_MEM, Opcode.WRITE_MEM, Opcode.SYNC, Opcode.EOC})


class Requests(NamedTuple):
    """One entry an instruction; `command` is the last command of its requests, `channels[i, c]` whether c gets them."""

    command: NDArray[np.int64]
    queue: NDArray[np.int64]
    columns: NDArray[np.int64]
    first_column: NDArray[np.int64]
    bank: NDArray[np.int64]
    row: NDArray[np.int64]
    register_mode: NDArray[np.bool_]
    blocking: NDArray[np.bool_]
    channels: NDArray[np.bool_]


def requests_of(trace: Trace, channel_count: int) -> Requests:
    """Lower a trace for a device of so many channels."""
    instructions = trace.instructions
    shapes = [SHAPES[instruction.opcode] for instruction in instructions]
    channels = np.zeros((len(instructions), channel_count), dtype=np.bool_)
    for index, instruction in enumerate(instructions):
        channels[index, list(instruction.channels)] = True
    return Requests(
        command=_integers([_command(instruction) for instruction in instructions]),
        queue=_integers([QUEUE_OF[shape.route] for shape in shapes]),
        columns=_integers([instruction.opsize for instruction in instructions]),
        first_column=_integers([-1 if item.opcode in WITHOUT_COLUMN else 0 for item in instructions]),
        bank=_integers([instruction.bank for instruction in instructions]),
        row=_integers(_rows(instructions)),
        register_mode=np.array([shape.register_mode for shape in shapes], dtype=np.bool_),
        blocking=np.array([shape.blocking for shape in shapes], dtype=np.bool_),
        channels=channels,
    )


def _integers(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _command(instruction: Instruction) -> int:
    match instruction.opcode:
        case Opcode.SYNC:
            return SYNC_CODE
        case Opcode.EOC:
            return EOC_CODE
        case opcode:
            kind = SHAPES[opcode].kind
            return NO_COMMAND if kind is None else CODE_OF[kind]


def _rows(instructions: tuple[Instruction, ...]) -> list[int]:
    rows, function = [], 0
    for instruction in instructions:
        if instruction.opcode is Opcode.WRITE_CFR and instruction.register == ACTIVATION_REGISTER:
            function = instruction.data
        rows.append(ACTIVATION_ROW + function if instruction.opcode is Opcode.AF else instruction.row)
    return rows
