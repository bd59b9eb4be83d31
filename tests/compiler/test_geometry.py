"""Closed forms of kernels against the programs that are emitted for them, over random kernels."""

from collections import Counter
from random import Random

import pytest

from compiler.attention import AttentionShape
from compiler.attention_lowering import AttentionLowering
from compiler.geometry import Geometry, geometry, kernel_counts
from compiler.kernel_events import read_slots, written_columns
from compiler.matvec import MatVecKernel, Operands
from compiler.numerics.report import UNTIMED_HOST
from compiler.schedule import AttentionSchedule, LoopOrder, PoolShape
from simulator.isa import Affine, Kind, Program, walk

KINDS = {
    "activate": Kind.ACT16,
    "mac": Kind.MAC16,
    "buffer_write": Kind.WRGB,
    "register_write": Kind.WRMAC16,
    "register_read": Kind.RDMAC16,
    "mode_change": Kind.TMOD,
}


def random_kernel(random: Random) -> Geometry:
    columns, lanes, reuse = random.choice((4, 8, 12)), random.choice((2, 4)), random.randint(1, 3)
    pool = PoolShape(1, random.randint(1, 4), 1000, columns, lanes, 3 * columns, 12)
    return geometry(
        pool,
        random.randint(1, 60),
        random.randint(1, 12 * lanes),
        reuse * random.randint(1, 3),
        segment_columns=random.randint(1, columns),
        reuse=reuse,
        registers=random.randint(reuse, 12),
        order=random.choice(tuple(LoopOrder)),
        growing=random.random() < 0.3,
    )


@pytest.mark.parametrize("seed", range(150))
def test_closed_form_counts_are_those_of_the_program(seed: int) -> None:
    random = Random(seed)
    shape = random_kernel(random)
    operands = Operands(Affine(3), Affine(), Affine())
    issued = list(walk(Program(MatVecKernel(shape, operands, random.random() < 0.5).emit())))
    walked = Counter(command.kind for command in issued)
    counts = kernel_counts(shape)
    assert {name: walked[kind] for name, kind in KINDS.items()} == {name: getattr(counts, name) for name in KINDS}
    loads = counts.buffer_write // (shape.vectors * shape.total_columns)
    assert walked[Kind.WAIT] == len(written_columns(shape)) * loads
    assert walked[Kind.SIGNAL] == len(read_slots(shape))


@pytest.mark.parametrize("seed", range(60))
def test_events_and_signals_follow_the_commands(seed: int) -> None:
    shape = random_kernel(Random(900 + seed))
    written: dict[int, set[int]] = {}
    read: list[int] = [0]
    for command in walk(Program(MatVecKernel(shape, Operands(Affine(), Affine(), Affine()), True).emit())):
        match command.kind:
            case Kind.WAIT:
                event = command.event
            case Kind.WRGB:
                written.setdefault(event, set()).add(command.data)
            case Kind.RDMAC16:
                read[-1] += 1
            case Kind.SIGNAL:
                assert command.event == len(read) - 1
                read.append(0)
    assert [len(written[number]) for number in range(len(written))] == list(written_columns(shape))
    if not shape.spills:
        assert read[:-1] == [slots * shape.reuse for slots in read_slots(shape)]


@pytest.mark.parametrize("seed", range(150))
def test_every_column_of_every_slot_has_a_place_of_its_own_within_the_rows(seed: int) -> None:
    random = Random(5000 + seed)
    shape = random_kernel(random)
    issued = list(walk(Program(MatVecKernel(shape, Operands(Affine(3), Affine(), Affine()), True).emit())))
    visits = Counter((command.row, command.column) for command in issued if command.kind is Kind.MAC16)
    assert len(visits) == shape.slots * shape.total_columns
    assert set(visits.values()) == {shape.vectors}
    assert all(3 <= row < 3 + shape.rows for row, _ in visits)


@pytest.mark.parametrize("seed", range(20))
def test_a_cache_that_grows_within_its_room_stays_where_it_is(seed: int) -> None:
    random = Random(seed)
    pool = PoolShape(4, 4, 1000, 8, 4, 24, 12)
    schedule = AttentionSchedule(token_split=random.choice((1, 2)), context_segment_columns=3, registers=12)
    places: dict[tuple[int, int, int, int], int] = {}
    for tokens in range(20, 20 + 3 * 12 * schedule.token_split):
        shape = AttentionShape("growing", 1, 3, 3, 10, tokens, capacity=400)
        lowering = AttentionLowering(shape, schedule, pool, 1, UNTIMED_HOST)
        assert lowering.first_value_row == lowering.sizes.units_per_channel * lowering.sizes.key_rows
        part = (tokens - 1) % schedule.token_split
        for command in walk(lowering.key_append()):
            if command.kind is Kind.WR:
                assert command.row < lowering.first_value_row
                assert places.setdefault((part, command.bank, command.row, command.column), tokens) == tokens
        rows = lowering.first_value_row + lowering.sizes.units_per_channel * lowering.sizes.value_rows
        for command in walk(lowering.value_append()):
            if command.kind is Kind.WRA16:
                assert lowering.first_value_row <= command.row < rows
                lane = 1000 * (1 + command.lane)
                assert places.setdefault((part, lane, command.row, command.column), tokens) == tokens
