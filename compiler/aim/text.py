"""Instructions as the text of an AiM trace, which `simulator.aim.trace` reads back to the same records.

General registers carry no data in a trace and are written as 0, as CENT's traces do.
"""

from collections.abc import Iterable

from simulator.aim.instructions import SHAPES, Field, Instruction
from simulator.aim.trace_line import MASK_BITS


def trace_text(instructions: Iterable[Instruction]) -> str:
    """Return one line per instruction; the last should be EOC, which ends a run."""
    lines: dict[Instruction, str] = {}
    parts = []
    for instruction in instructions:
        if instruction not in lines:
            lines[instruction] = _line(instruction)
        parts.append(lines[instruction])
    return "\n".join((*parts, ""))


def channel_mask(channels: Iterable[int]) -> int:
    """Return the mask of a set of channels: the highest bit is channel 0."""
    return sum(1 << (MASK_BITS - 1 - channel) for channel in channels)


def _line(instruction: Instruction) -> str:
    opcode = instruction.opcode
    name = opcode.value if " " in opcode else f"AiM {opcode.value}"
    return " ".join((name, *(_operand(field, instruction) for field in SHAPES[opcode].fields)))


def _operand(field: Field, instruction: Instruction) -> str:
    match field:
        case Field.OPSIZE:
            return str(instruction.opsize)
        case Field.MASK:
            return hex(channel_mask(instruction.channels))
        case Field.CHANNEL:
            return str(instruction.channels[0])
        case Field.BANK:
            return str(instruction.bank)
        case Field.ROW:
            return str(instruction.row)
        case Field.CFR:
            return str(instruction.register)
        case Field.DATA:
            return str(instruction.data)
        case Field.GPR | Field.SECOND_GPR:
            return "0"
