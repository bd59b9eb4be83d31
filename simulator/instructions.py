"""What programs cost the dispatcher: instructions sent per execution, and the size of the looped form.

One instruction covers a run of one command on consecutive operands, as `MAC_ABK opsize` does in AiM.
"""

from simulator.isa import EVENT_KINDS, Command, Instruction, Loop, Program

MOST_COMMANDS_PER_INSTRUCTION = 64


def instruction_count(program: Program, loop_depth: int = 0) -> int:
    """Return the instructions that a dispatcher sends for one execution.

    A sequencer runs the innermost `loop_depth` levels of loops around instructions by itself: such a loop is sent once,
    with an instruction of its own; what lies further out is sent again for every repetition.
    """
    return _count(program.body, loop_depth)


def program_size(program: Program) -> int:
    """Return the instructions of the looped form, loops counted once and each with a loop instruction."""
    return _size(program.body)


def _count(body: tuple[Instruction, ...], loop_depth: int) -> int:
    total = 0
    for item in body:
        match item:
            case Loop(count, (Command(),)):
                total += -(-count // MOST_COMMANDS_PER_INSTRUCTION)
            case Loop(count, inner):
                by_itself = _height(item) <= loop_depth
                total += 1 + _count(inner, loop_depth) if by_itself else count * _count(inner, loop_depth)
            case Command(kind=kind):
                total += kind not in EVENT_KINDS
    return total


def _height(item: Instruction) -> int:
    """Return the levels of loops around instructions; a run of one command is an instruction."""
    match item:
        case Loop(_, (Command(),)) | Command():
            return 0
        case Loop(_, inner):
            return 1 + max(map(_height, inner), default=0)


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
