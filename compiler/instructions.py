"""What programs cost the dispatcher: instructions sent per execution, and the size of the looped form.

One instruction covers a run of one command on consecutive operands, as `MAC_ABK opsize` does in AiM.
"""

from simulator.isa import EVENT_KINDS, Command, Instruction, Loop, Program

MOST_COMMANDS_PER_INSTRUCTION = 64


def instruction_count(program: Program) -> int:
    """Return the instructions that a dispatcher without loops sends for one execution."""
    return _count(program.body)


def program_size(program: Program) -> int:
    """Return the instructions of the looped form, loops counted once and each with a loop instruction."""
    return _size(program.body)


def _count(body: tuple[Instruction, ...]) -> int:
    total = 0
    for item in body:
        match item:
            case Loop(count, (Command(),)):
                total += -(-count // MOST_COMMANDS_PER_INSTRUCTION)
            case Loop(count, inner):
                total += count * _count(inner)
            case Command(kind=kind):
                total += kind not in EVENT_KINDS
    return total


def _size(body: tuple[Instruction, ...]) -> int:
    total = 0
    for item in body:
        match item:
            case Loop(_, (Command(),)):
                total += 1
            case Loop(_, inner):
                total += 1 + _size(inner)
            case Command(kind=kind):
                total += kind not in EVENT_KINDS
    return total
