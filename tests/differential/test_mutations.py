"""Broken lowerings are caught: each test damages the emitted programs in one way and expects the check to fail."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from compiler.numerics.check import check_attention, check_linear
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder
from configs.device import Device, load_device
from configs.number_format import NumberFormat
from simulator.isa import Affine, Command, Instruction, Kind, Loop, Program
from tests.unit_devices import unit_device

DEVICE = load_device("gddr6-aim")
LATCHED, TWO_VECTORS = unit_device(2), unit_device(vectors=2)
RELOAD = LinearSchedule(segment_columns=16, registers=8, reuse=2, reduction_split=2)
SCALES = replace(RELOAD, reduction_split=1)
SPILL = replace(RELOAD, order=LoopOrder.SPILL)
ATTENTION = AttentionSchedule(token_split=2, context_segment_columns=8, context_reuse=2, registers=16)
BLOCKS = replace(ATTENTION, token_blocks=2)

Block = tuple[Instruction, ...]
Change = Callable[[Command], Block]
Damage = Callable[[Program], Program]


def commands(body: Block) -> list[Command]:
    return [leaf for item in body for leaf in (commands(item.body) if isinstance(item, Loop) else [item])]


def changed(body: Block, kind: Kind, change: Change, which: set[int], seen: list[int]) -> Block:
    result: list[Instruction] = []
    for item in body:
        if isinstance(item, Loop):
            inner = changed(item.body, kind, change, which, seen)
            result.extend((Loop(item.count, inner),) if inner else ())
        elif item.kind is not kind:
            result.append(item)
        else:
            result.extend(change(item) if seen[0] in which else (item,))
            seen[0] += 1
    return tuple(result)


def every(kind: Kind, change: Change) -> Damage:
    return lambda program: replace(program, body=changed(program.body, kind, change, set(range(10000)), [0]))


def last(kind: Kind, change: Change) -> Damage:
    def damage(program: Program) -> Program:
        count = sum(item.kind is kind for item in commands(program.body))
        return replace(program, body=changed(program.body, kind, change, {count - 1}, [0]))

    return damage


def first(kind: Kind, change: Change) -> Damage:
    return lambda program: Program(changed(program.body, kind, change, {0}, [0]))


def drop(_: Command) -> Block:
    return ()


def moved(name: str, amount: int) -> Change:
    return lambda command: (replace(command, **{name: getattr(command, name).plus(amount)}),)


def without_innermost(name: str) -> Change:
    """Forget the deepest loop variable of an operand."""
    return lambda command: (
        replace(command, **{name: Affine(getattr(command, name).constant, getattr(command, name).terms[:-1])}),
    )


def without_outermost(name: str) -> Change:
    """Forget the outermost loop variable of an operand."""
    return lambda command: (
        replace(command, **{name: Affine(getattr(command, name).constant, getattr(command, name).terms[1:])}),
    )


def fixed(command: Command, depth: int, value: int) -> Command:
    """Put a number in the place of a loop variable."""
    operands = {}
    for name in ("row", "column", "buffer", "register", "data"):
        operand = getattr(command, name)
        offset = sum(coefficient * value for at, coefficient in operand.terms if at == depth)
        operands[name] = Affine(operand.constant + offset, tuple(term for term in operand.terms if term[0] != depth))
    return replace(command, **operands)


def in_last_repetition(kind: Kind, change: Callable[[Command], Command], depth: int = 0) -> Damage:
    """Change only the last repetition of the first loop over a single command of this kind."""

    def damage(program: Program) -> Program:
        return Program(walk_loops(program.body, 0, [False]))

    def walk_loops(body: Block, level: int, done: list[bool]) -> Block:
        result: list[Instruction] = []
        for item in body:
            if not isinstance(item, Loop):
                result.append(item)
            elif (
                len(item.body) == 1 and isinstance(item.body[0], Command) and item.body[0].kind is kind and not done[0]
            ):
                done[0] = True
                rest = fixed(item.body[0], level, item.count - 1)
                result.extend((Loop(item.count - 1, item.body), change(rest)))
            else:
                result.append(Loop(item.count, walk_loops(item.body, level + 1, done)))
        return tuple(result)

    return damage


def reversed_columns(program: Program) -> Program:
    """Multiply the columns of a slot from the last to the first: the same products in another order."""

    def turn(body: Block, level: int) -> Block:
        result: list[Instruction] = []
        for item in body:
            if not isinstance(item, Loop):
                result.append(item)
                continue
            leaf = item.body[0]
            if len(item.body) == 1 and isinstance(leaf, Command) and leaf.kind is Kind.MAC16:
                turned = {}
                for name in ("column", "buffer"):
                    operand = getattr(leaf, name)
                    terms = tuple((at, -value if at == level else value) for at, value in operand.terms)
                    reach = sum(value * (item.count - 1) for at, value in operand.terms if at == level)
                    turned[name] = Affine(operand.constant + reach, terms)
                result.append(Loop(item.count, (replace(leaf, **turned),)))
            else:
                result.append(Loop(item.count, turn(item.body, level + 1)))
        return tuple(result)

    return Program(turn(program.body, 0))


def shorter_last_loop(program: Program) -> Program:
    """Take one column from the last loop of multiplies."""

    def shorten(body: Block, done: list[bool]) -> Block:
        result: list[Instruction] = []
        for item in reversed(body):
            if not isinstance(item, Loop):
                result.append(item)
            elif isinstance(item.body[0], Command) and item.body[0].kind is Kind.MAC16 and not done[0]:
                done[0] = True
                result.append(Loop(item.count - 1, item.body))
            else:
                result.append(Loop(item.count, shorten(item.body, done)))
        return tuple(reversed(result))

    return Program(shorten(program.body, [False]))


def other_lane(command: Command) -> Block:
    return (replace(command, lane=Affine(command.lane.constant ^ 1)),)


def other_bank(command: Command) -> Block:
    return (replace(command, bank=Affine(command.bank.constant ^ 1)),)


def both_rows_moved(program: Program) -> Program:
    return every(Kind.MAC16, moved("row", 1))(every(Kind.ACT16, moved("row", 1))(program))


def key_in_other_bank(program: Program) -> Program:
    for kind in (Kind.ACT, Kind.WR, Kind.PRE):
        program = every(kind, other_bank)(program)
    return program


def key_in_other_row(program: Program) -> Program:
    for kind in (Kind.ACT, Kind.WR):
        program = every(kind, moved("row", -1))(program)
    return program


def value_in_other_row(program: Program) -> Program:
    for kind in (Kind.ACT16, Kind.WRA16):
        program = every(kind, moved("row", -1))(program)
    return program


def signals_first(program: Program) -> Program:
    """Hand results over before the loop that reads them out."""

    def turn(body: Block) -> Block:
        result: list[Instruction] = []
        for item in body:
            if isinstance(item, Command) and item.kind is Kind.SIGNAL:
                result.insert(max(len(result) - 1, 0), item)
            else:
                result.append(Loop(item.count, turn(item.body)) if isinstance(item, Loop) else item)
        return tuple(result)

    return Program(turn(program.body))


def nothing(program: Program) -> Program:
    return Program(tuple(item for item in program.body if isinstance(item, Command) and item.kind is Kind.WAIT))


def back_one_column(command: Command) -> Command:
    return replace(command, column=command.column.plus(-1))


def other_accumulator(command: Command) -> Command:
    return replace(command, register=command.register.plus(1))


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    schedule: LinearSchedule | AttentionSchedule
    program: str
    damage: Damage
    stored: NumberFormat = NumberFormat.BF16
    device: Device = DEVICE


LINEAR = (
    ("wrong column of one multiply", in_last_repetition(Kind.MAC16, back_one_column)),
    ("wrong accumulator of one multiply", in_last_repetition(Kind.MAC16, other_accumulator)),
    ("every accumulator the neighbour's", every(Kind.MAC16, without_innermost("register"))),
    ("one multiply left out", last(Kind.MAC16, drop)),
    ("last column of the tail left out", shorter_last_loop),
    ("columns in another order", reversed_columns),
    ("stale buffer in the last segment", last(Kind.WRGB, drop)),
    ("one buffer column not written", in_last_repetition(Kind.WRGB, lambda c: replace(c, data=c.data.plus(-1)))),
    ("input of another vector group", every(Kind.WRGB, without_outermost("data"))),
    (
        "buffer offset of the vector forgotten",
        every(Kind.MAC16, lambda c: (replace(c, buffer=Affine(0, c.buffer.terms[-1:])),)),
    ),
    ("wrong row base", both_rows_moved),
    ("row opened that is not multiplied", last(Kind.ACT16, moved("row", -1))),
    ("accumulators not loaded", every(Kind.WRMAC16, drop)),
    ("last accumulators not loaded", last(Kind.WRMAC16, drop)),
    ("last accumulators not read", last(Kind.RDMAC16, drop)),
    ("read-out of another accumulator", last(Kind.RDMAC16, without_innermost("register"))),
    ("read-out to another entry", last(Kind.RDMAC16, moved("data", -1))),
    ("rows not closed", last(Kind.PREA, drop)),
    ("mode not changed", last(Kind.TMOD, drop)),
    ("no input is waited for", every(Kind.WAIT, drop)),
    ("the last input is not waited for", last(Kind.WAIT, drop)),
    ("the event of another segment is waited for", every(Kind.WAIT, without_innermost("event"))),
    ("results are not handed over", last(Kind.SIGNAL, drop)),
    ("results are handed over before they are read out", signals_first),
    ("the event of another group is signalled", last(Kind.SIGNAL, moved("event", 1))),
    ("last multiply with the neighbour's row", last(Kind.MAC16, moved("row", 1))),
)
SCALED = (
    ("scales not loaded", every(Kind.SCALE16, drop)),
    ("scales of the slot before", last(Kind.SCALE16, moved("column", -4))),
    ("the neighbour's scale", every(Kind.MAC16, moved("lane", 1))),
    ("one scale for all groups", every(Kind.MAC16, lambda c: (replace(c, lane=Affine(min(c.lane.constant, 1))),))),
    ("no scale", every(Kind.MAC16, lambda c: (replace(c, lane=Affine(0)),))),
    ("scales taken for values", every(Kind.MAC16, moved("column", -4))),
)
IN_ATTENTION = (
    ("K in the neighbour's column", "k append", every(Kind.WR, moved("column", 1))),
    ("K in the column before", "k append", every(Kind.WR, moved("column", -1))),
    ("K in the neighbour's bank", "k append", key_in_other_bank),
    ("K in the row before", "k append", key_in_other_row),
    ("K not appended", "k append", nothing),
    ("K of the first unit in all units", "k append", every(Kind.WR, without_outermost("data"))),
    ("V in the wrong lane", "v append", every(Kind.WRA16, other_lane)),
    ("V in the next column", "v append", every(Kind.WRA16, moved("column", 1))),
    ("V in the row before", "v append", value_in_other_row),
    ("V not appended", "v append", nothing),
    ("V of one slot in all slots", "v append", every(Kind.WRA16, without_innermost("data"))),
    ("V appended without opening rows", "v append", every(Kind.ACT16, drop)),
    ("scores from the wrong rows", "score", both_rows_moved),
    ("scores of stale queries", "score", last(Kind.WRGB, drop)),
    ("contexts from the wrong rows", "context", both_rows_moved),
    ("contexts without the newest column", "context", shorter_last_loop),
    ("contexts in another order", "context", reversed_columns),
    ("contexts with one wrong column", "context", in_last_repetition(Kind.MAC16, back_one_column)),
    ("contexts with unset accumulators", "context", every(Kind.WRMAC16, drop)),
    ("contexts of weights that have not come", "context", every(Kind.WAIT, drop)),
    ("K written before it has come", "k append", every(Kind.WAIT, drop)),
    ("V written before it has come", "v append", every(Kind.WAIT, drop)),
    ("scores handed over too early", "score", signals_first),
)
HALF_BYTES = (
    ("V of four bits in the neighbour's byte", "v append", every(Kind.WRA16, moved("lane", 2))),
    ("V of four bits one value off", "v append", every(Kind.WRA16, moved("data", 1))),
    ("K of four bits in the column before", "k append", every(Kind.WR, moved("column", -4))),
)


def next_row_first(latch: Command) -> Block:
    return (Command(Kind.ACT16, row=latch.row.plus(1)), latch)


SECOND_BUFFERS = (
    ("rows not latched", every(Kind.LATCH16, drop)),
    ("the last row not latched", last(Kind.LATCH16, drop)),
    ("another row latched", last(Kind.LATCH16, moved("row", -1))),
    ("another row multiplied than is latched", last(Kind.MACL16, moved("row", -1))),
    ("the next row not opened", last(Kind.ACT16, drop)),
    ("the next row opened before this one is latched", every(Kind.LATCH16, next_row_first)),
    ("columns of the neighbour", every(Kind.MACL16, moved("column", 1))),
)
SEVERAL_VECTORS = (
    ("all vectors the first one", every(Kind.MAC16, lambda c: (replace(c, data=Affine(0)),))),
    ("vectors one column further apart", every(Kind.MAC16, moved("data", 1))),
    ("sums in the neighbour's accumulators", every(Kind.MAC16, moved("register", 1))),
    ("one vector a multiply", lambda program: replace(program, vectors_per_multiply=1)),
    ("four vectors a multiply", lambda program: replace(program, vectors_per_multiply=4)),
)
MUTATIONS = (
    *(Mutation(name, schedule, "linear", damage) for schedule in (RELOAD, SPILL) for name, damage in LINEAR),
    *(Mutation(name, ATTENTION, program, damage) for name, program, damage in IN_ATTENTION),
    *(Mutation(f"blocks, {name}", BLOCKS, program, damage) for name, program, damage in IN_ATTENTION),
    *(Mutation(name, SCALES, "linear", damage, NumberFormat.MXFP4) for name, damage in SCALED),
    *(Mutation(name, ATTENTION, program, damage, NumberFormat.INT4) for name, program, damage in HALF_BYTES),
    *(Mutation(f"second buffers, {name}", RELOAD, "linear", damage, device=LATCHED) for name, damage in SECOND_BUFFERS),
    *(
        Mutation(f"several vectors, {name}", RELOAD, "linear", damage, device=TWO_VECTORS)
        for name, damage in SEVERAL_VECTORS
    ),
)


def check(
    schedule: LinearSchedule | AttentionSchedule,
    rewrite: Callable[[str, Program], Program],
    stored: NumberFormat = NumberFormat.BF16,
    device: Device = DEVICE,
) -> str:
    """Return the report's text, empty when the check passed."""
    if isinstance(schedule, LinearSchedule):
        report = check_linear(schedule, device, rewrite, stored)
    else:
        report = check_attention(schedule, device, rewrite, stored)
    return "" if report.passed else str(report)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda item: f"{type(item.schedule).__name__}: {item.name}")
def test_broken_lowering_is_caught(mutation: Mutation) -> None:
    damaged = []

    def rewrite(name: str, program: Program) -> Program:
        if name != mutation.program:
            return program
        result = mutation.damage(program)
        damaged.append(result != program)
        return result

    assert check(mutation.schedule, rewrite, mutation.stored, mutation.device)
    assert any(damaged)


@pytest.mark.parametrize(
    ("schedule", "stored", "device"),
    [
        (RELOAD, NumberFormat.BF16, DEVICE),
        (SPILL, NumberFormat.BF16, DEVICE),
        (SCALES, NumberFormat.MXFP4, DEVICE),
        (ATTENTION, NumberFormat.BF16, DEVICE),
        (ATTENTION, NumberFormat.INT4, DEVICE),
        (BLOCKS, NumberFormat.BF16, DEVICE),
        (RELOAD, NumberFormat.BF16, LATCHED),
        (RELOAD, NumberFormat.BF16, TWO_VECTORS),
    ],
)
def test_undamaged_programs_pass(
    schedule: LinearSchedule | AttentionSchedule, stored: NumberFormat, device: Device
) -> None:
    assert not check(schedule, lambda _, program: program, stored, device)


def test_a_report_names_element_values_and_command() -> None:
    damage = in_last_repetition(Kind.MAC16, back_one_column)
    text = check(RELOAD, lambda _, program: damage(program))
    assert "vector 0, output" in text
    assert "expected" in text
    assert "written by RDMAC16" in text
    assert "smallest failing case: 1 outputs, 17 inputs, 1 vectors of bf16 on 2 channels of 1 banks" in text
