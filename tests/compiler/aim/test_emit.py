"""Does a program come out as the instructions whose requests are its commands, and does the controller do the rest?"""

from dataclasses import replace

import pytest

from autotune.block_replay import channel_cycles
from compiler.aim.emit import BY_CONTROLLER, OPCODE_OF, STEPS, emit, end_of_trace
from compiler.linear import LinearShape, linear_geometry
from compiler.matvec import MatVecKernel, Operands
from compiler.schedule import LinearSchedule, LoopOrder, PoolShape, pool_shape
from configs.device import load_device
from simulator.aim.instructions import Instruction, Opcode
from simulator.aim.replay import execute
from simulator.aim.requests import COMMAND_NAMES, requests_of
from simulator.aim.rules import rules_of
from simulator.aim.trace import Trace
from simulator.isa import NEED_OPEN_ROWS, OPERANDS, Affine, Command, Issued, Kind, Loop, Program, affine, walk

DEVICE = load_device("gddr6-aim-compat")
POOL: PoolShape = replace(pool_shape(DEVICE, 1), channels=2)
SCHEDULES = (
    LinearSchedule(),
    LinearSchedule(preactivate=False),
    LinearSchedule(order=LoopOrder.SPILL, registers=8),
    LinearSchedule(segment_columns=16, registers=16),
    LinearSchedule(segment_columns=32, reuse=2),
)


def kernel(schedule: LinearSchedule, outputs: int, inputs: int) -> Program:
    shape = LinearShape("layer", (outputs,), inputs, schedule.reuse)
    sizes = linear_geometry(shape, outputs, schedule, POOL)
    return Program(MatVecKernel(sizes, Operands(Affine(3), Affine(), Affine()), schedule.preactivate).emit())


def merged(program: Program) -> list[Instruction]:
    """The readable reference: walk every command and join it to the instruction before when it goes on there."""
    found: list[Instruction] = []
    previous: Issued | None = None
    for command in walk(program):
        if command.kind in BY_CONTROLLER:
            previous = None if command.kind is not Kind.WAIT else previous
            continue
        if previous is not None and goes_on(previous, command):
            found[-1] = replace(found[-1], opsize=found[-1].opsize + 1)
        else:
            row = command.row if command.kind in NEED_OPEN_ROWS else -1
            found.append(Instruction(OPCODE_OF[command.kind], 1, (0, 1), row=row))
        previous = command
    return found


def goes_on(previous: Issued, command: Issued) -> bool:
    if previous.kind is not command.kind or command.kind not in STEPS:
        return False
    return all(getattr(command, name) - getattr(previous, name) == (name in STEPS[command.kind]) for name in OPERANDS)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("outputs", "inputs"), [(16, 16), (200, 1000), (1100, 2100)])
def test_emission_equals_the_walk_over_all_commands(schedule: LinearSchedule, outputs: int, inputs: int) -> None:
    program = kernel(schedule, outputs, inputs)
    found = emit(program, (0, 1))
    assert list(found) == merged(program)
    assert all(item.opsize <= 64 for item in found)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_controller_opens_the_rows_of_the_program_in_its_order(schedule: LinearSchedule) -> None:
    program = kernel(schedule, 1100, 2100)
    found = (*emit(program, (0,)), end_of_trace(1))
    _, commands = execute(requests_of(Trace(found), 1), rules_of(DEVICE), where="test")
    activates = commands.name == COMMAND_NAMES.index(Kind.ACT16)
    opened = [command.row for command in walk(program) if command.kind is Kind.ACT16]
    assert without_repeats(commands.row[activates].tolist()) == without_repeats(opened)


def without_repeats(rows: list[int]) -> list[int]:
    return [row for index, row in enumerate(rows) if index == 0 or rows[index - 1] != row]


def test_joined_buffer_writes_of_several_vectors_are_one_instruction() -> None:
    def write(first: int) -> Loop:
        return Loop(8, (Command(Kind.WRGB, buffer=affine(first, v0=1), data=affine(first, v0=1)),))

    body = (Command(Kind.TMOD), write(0), write(8), Command(Kind.TMOD))
    assert emit(Program(body), (0,)) == (Instruction(Opcode.WR_GB, 16, (0,)),)


def test_a_value_of_every_bank_is_written_channel_by_channel() -> None:
    body = (Command(Kind.ACT16, row=affine(5)), Command(Kind.WRA16, row=affine(5)))
    assert emit(Program(body), (1, 4)) == tuple(Instruction(Opcode.WR_ABK, 1, (channel,), row=5) for channel in (1, 4))


@pytest.mark.parametrize(
    "body",
    [
        (Command(Kind.MAC16, row=affine(1)),),
        (Command(Kind.ACT16, row=affine(1)), Command(Kind.MAC16, row=affine(2))),
        (Command(Kind.WRGB),),
        (Command(Kind.REFab),),
        (Command(Kind.ACT, bank=affine(1)), Command(Kind.WR, bank=affine(0))),
    ],
)
def test_a_command_that_would_not_find_its_row_or_mode_is_a_bug(body: tuple[Command, ...]) -> None:
    with pytest.raises(ValueError, match=r"mode|row|no AiM instruction"):
        emit(Program(body), (0,))


def test_opening_rows_ahead_is_the_controllers_business() -> None:
    ahead, late = (channel_cycles(emit(kernel(item, 1100, 2100), (0,)), rules_of(DEVICE)) for item in SCHEDULES[:2])
    assert ahead == late
