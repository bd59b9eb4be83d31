"""The meaning of each command on values, and that nothing unwritten, closed or out of range is used in silence."""

from random import Random

import numpy as np
import pytest

from compiler.linear import LinearShape, linear_phases
from compiler.numerics.report import UNTIMED_HOST
from compiler.schedule import LinearSchedule, LoopOrder, PoolShape
from simulator.bf16 import BF16_ROUNDOFF, is_bf16, round_to_bf16
from simulator.channel import CLOSED
from simulator.functional import ChannelSizes, FunctionalChannel, HostMemory, execute, fresh_channel, host_memory
from simulator.functional_errors import (
    ModeError,
    OperandRangeError,
    RowStateError,
    UnsupportedCommandError,
    UnwrittenValueError,
)
from simulator.functional_reference import execute_reference
from simulator.isa import Affine, Command, Instruction, Kind, Loop, Program
from simulator.step import PimPhase

SIZES = ChannelSizes(banks=4, rows=3, columns=5, lanes=8, buffer_columns=6, accumulators=2)
MODE = Command(Kind.TMOD)
CLOSE = Command(Kind.PREA)


def at(**operands: int) -> dict[str, Affine]:
    return {name: Affine(value) for name, value in operands.items()}


def command(kind: Kind, **operands: int) -> Command:
    return Command(kind, **at(**operands))


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return round_to_bf16(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def filled() -> tuple[FunctionalChannel, HostMemory]:
    channel = fresh_channel(SIZES)
    channel.cells[:] = values(3, 5, 8, 4, seed=1)
    channel.buffer[:] = values(6, 8, seed=2)
    channel.accumulators[:] = 0
    return channel, host_memory(SIZES, values(7, 8, seed=3), values(7, 4, seed=4), 3)


def run(channel: FunctionalChannel, memory: HostMemory, *body: Instruction) -> int:
    return execute(Program(body), channel, memory)


def test_mac_adds_the_balanced_tree_of_every_bank_to_one_accumulator() -> None:
    channel, memory = filled()
    channel.accumulators[1] = 0.5
    run(channel, memory, command(Kind.ACT16, row=2), command(Kind.MAC16, row=2, column=3, buffer=4, register=1), CLOSE)
    for bank in range(4):
        p = [channel.cells[2, 3, lane, bank] * channel.buffer[4, lane] for lane in range(8)]
        tree = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))
        assert channel.accumulators[1, bank] == np.float32(0.5) + tree
    assert (channel.accumulators[0] == 0).all()


def test_tree_order_is_not_that_of_a_running_sum() -> None:
    channel, memory = filled()
    channel.cells[0, 0] = 1
    channel.buffer[0] = [1, 2.0**-24, 2.0**-24, 2.0**-24, 0, 0, 0, 0]
    run(channel, memory, command(Kind.ACT16), command(Kind.MAC16))
    assert channel.accumulators[0, 0] == np.float32(1 + 2.0**-23)


def test_read_out_rounds_to_nearest_even_and_write_back_loads_it() -> None:
    channel, memory = filled()
    channel.accumulators[0] = [1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-9]
    body = (MODE, command(Kind.RDMAC16, register=0, data=2), command(Kind.WRMAC16, register=1, data=2))
    run(channel, memory, *body)
    expected = np.array([1, 1 + 2**-6, 1 + 2**-7, -1], dtype=np.float32)
    assert np.array_equal(memory.outputs[2], expected)
    assert np.array_equal(channel.accumulators[1], expected)
    assert memory.writers.tolist() == [-1, -1, 1]


def test_global_buffer_takes_one_host_column() -> None:
    channel, memory = filled()
    run(channel, memory, MODE, command(Kind.WRGB, buffer=5, data=6))
    assert np.array_equal(channel.buffer[5], memory.inputs[6])


def test_write_stores_a_column_of_one_bank() -> None:
    channel, memory = filled()
    before = channel.cells.copy()
    run(channel, memory, command(Kind.ACT, bank=2, row=1), command(Kind.WR, bank=2, row=1, column=4, data=3))
    assert np.array_equal(channel.cells[1, 4, :, 2], memory.inputs[3])
    before[1, 4, :, 2] = memory.inputs[3]
    assert np.array_equal(channel.cells, before)
    assert channel.open_row.tolist() == [CLOSED, CLOSED, 1, CLOSED]
    run(channel, memory, command(Kind.PRE, bank=2))
    assert channel.open_row.tolist() == [CLOSED] * 4


def test_write_to_all_banks_stores_one_lane_and_closes() -> None:
    channel, memory = filled()
    before = channel.cells.copy()
    run(channel, memory, command(Kind.ACT16, row=1), command(Kind.WRA16, row=1, column=2, lane=7, data=5))
    before[1, 2, 7] = memory.inputs_by_bank[5]
    assert np.array_equal(channel.cells, before)
    assert channel.open_row.tolist() == [CLOSED] * 4


def test_loops_resolve_every_operand_and_zero_repetitions_do_nothing() -> None:
    channel, memory = filled()
    inner = Command(Kind.WRGB, buffer=Affine(0, ((0, 3), (1, 1))), data=Affine(1, ((0, 3), (1, 1))))
    issued = run(channel, memory, Loop(0, (CLOSE,)), MODE, Loop(2, (Loop(3, (inner,)),)), MODE)
    assert issued == 8
    assert np.array_equal(channel.buffer, memory.inputs[1:7])


def test_events_do_not_matter() -> None:
    channel, memory = filled()
    assert run(channel, memory, Command(Kind.WAIT), MODE, Command(Kind.SIGNAL), MODE) == 4


OPEN = command(Kind.ACT16, row=1)
MAC = command(Kind.MAC16, row=1)


@pytest.mark.parametrize("poisoned", ["cells", "buffer", "accumulators"])
def test_multiplying_what_was_never_written_is_refused(poisoned: str) -> None:
    channel, memory = filled()
    getattr(channel, poisoned)[:] = getattr(fresh_channel(SIZES), poisoned)
    name = {"cells": "a cell", "buffer": "a global-buffer column", "accumulators": "an accumulator"}[poisoned]
    with pytest.raises(UnwrittenValueError, match=f"command 1, MAC16: .*{name}"):
        run(channel, memory, OPEN, MAC)


def test_one_unwritten_lane_of_one_bank_is_enough() -> None:
    channel, memory = filled()
    channel.cells[1, 0, 5, 3] = np.nan
    with pytest.raises(UnwrittenValueError):
        run(channel, memory, OPEN, MAC)


def test_reading_an_unwritten_accumulator_is_refused() -> None:
    with pytest.raises(UnwrittenValueError, match="RDMAC16"):
        run(fresh_channel(SIZES), filled()[1], MODE, command(Kind.RDMAC16))


@pytest.mark.parametrize(
    "body",
    [(MAC,), (OPEN, command(Kind.MAC16, row=2)), (OPEN, OPEN), (OPEN, command(Kind.PRE, bank=2), MAC)],
    ids=["closed", "other row", "already open", "one bank closed"],
)
def test_wrong_rows_are_refused(body: tuple[Instruction, ...]) -> None:
    with pytest.raises(RowStateError):
        run(*filled(), *body)


@pytest.mark.parametrize("body", [(command(Kind.WRGB),), (MODE, OPEN), (command(Kind.RDMAC16),), (OPEN, MODE, MAC)])
def test_the_wrong_mode_is_refused(body: tuple[Instruction, ...]) -> None:
    with pytest.raises(ModeError):
        run(*filled(), *body)


@pytest.mark.parametrize(
    "body",
    [
        (command(Kind.ACT16, row=3),),
        (command(Kind.ACT, bank=4),),
        (OPEN, command(Kind.MAC16, row=1, column=5)),
        (OPEN, command(Kind.MAC16, row=1, buffer=6)),
        (OPEN, command(Kind.MAC16, row=1, register=2)),
        (OPEN, command(Kind.WRA16, row=1, lane=8)),
        (OPEN, command(Kind.WRA16, row=1, data=7)),
        (OPEN, command(Kind.WR, row=1, data=-1)),
        (MODE, command(Kind.WRGB, data=7)),
        (MODE, command(Kind.RDMAC16, data=3)),
        (MODE, command(Kind.WRMAC16, register=-1)),
        (Command(Kind.ACT16, row=Affine(0, ((0, 1),))),),
    ],
)
def test_operands_out_of_range_are_refused(body: tuple[Instruction, ...]) -> None:
    with pytest.raises(OperandRangeError):
        run(*filled(), *body)


LATCH = command(Kind.LATCH16, row=1)
LATCHED_MAC = command(Kind.MACL16, row=1, column=2, buffer=3, register=1)


def test_a_latched_row_is_multiplied_like_an_open_one_and_leaves_the_arrays_closed() -> None:
    (channel, memory), (opened, _) = filled(), filled()
    run(channel, memory, OPEN, LATCH, LATCHED_MAC)
    run(opened, memory, OPEN, command(Kind.MAC16, row=1, column=2, buffer=3, register=1))
    assert np.array_equal(channel.accumulators, opened.accumulators)
    assert channel.open_row.tolist() == [CLOSED] * 4
    assert channel.latched_row.tolist() == [1]


def test_a_latched_row_keeps_its_values_while_other_rows_are_opened_and_its_cells_written() -> None:
    (channel, memory), (before, _) = filled(), filled()
    write = (OPEN, command(Kind.WRA16, row=1, column=2, data=5))
    run(channel, memory, OPEN, LATCH, *write, command(Kind.ACT16, row=2), LATCHED_MAC, CLOSE, LATCHED_MAC)
    run(before, memory, OPEN, LATCH, LATCHED_MAC, LATCHED_MAC)
    assert np.array_equal(channel.accumulators, before.accumulators)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((LATCHED_MAC,), "row 1 in the second row buffers, found none"),
        ((OPEN, LATCH, command(Kind.MACL16, row=2)), "row 2 in the second row buffers, found row 1"),
        ((LATCH,), "found it closed"),
        ((OPEN, command(Kind.LATCH16, row=2)), "with open row 1"),
        ((OPEN, LATCH, MAC), "found it closed"),
    ],
)
def test_wrong_latched_rows_are_refused(body: tuple[Instruction, ...], message: str) -> None:
    with pytest.raises(RowStateError, match=message):
        run(*filled(), *body)


def test_one_multiply_serves_several_vectors_into_accumulators_that_follow_each_other() -> None:
    (channel, memory), (single, _) = filled(), filled()
    both = command(Kind.MAC16, row=1, column=2, buffer=1, register=0, data=3)
    execute(Program((OPEN, both, CLOSE), vectors_per_multiply=2), channel, memory)
    one, other = (command(Kind.MAC16, row=1, column=2, buffer=1 + 3 * j, register=j) for j in range(2))
    run(single, memory, OPEN, one, other, CLOSE)
    assert np.array_equal(channel.accumulators, single.accumulators)
    assert (channel.accumulators[0] != channel.accumulators[1]).all()


@pytest.mark.parametrize("operands", [{"register": 1}, {"buffer": 4, "data": 2}, {"data": -1}])
def test_the_last_of_several_vectors_has_to_be_in_range(operands: dict[str, int]) -> None:
    body = (OPEN, command(Kind.MAC16, row=1, **operands))
    with pytest.raises(OperandRangeError):
        execute(Program(body, vectors_per_multiply=2), *filled())


def test_commands_without_a_meaning_are_refused() -> None:
    with pytest.raises(UnsupportedCommandError):
        run(*filled(), command(Kind.EWMUL16))


def test_host_values_have_to_be_finite_bf16() -> None:
    for bad in (np.nan, np.inf, 1 + 2.0**-9):
        with pytest.raises(ValueError, match="bf16"):
            host_memory(SIZES, np.full((1, 8), bad, dtype=np.float32))


def test_lanes_have_to_be_a_power_of_two() -> None:
    with pytest.raises(OperandRangeError):
        ChannelSizes(banks=4, rows=1, columns=1, lanes=12, buffer_columns=1, accumulators=1)


def test_rounding_is_within_the_unit_roundoff_and_keeps_bf16() -> None:
    numbers = np.random.default_rng(0).standard_normal(10000).astype(np.float32)
    rounded = round_to_bf16(numbers)
    assert is_bf16(rounded)
    assert np.array_equal(round_to_bf16(rounded), rounded)
    assert (np.abs(rounded - numbers) <= BF16_ROUNDOFF * np.abs(numbers)).all()
    assert np.abs(rounded / numbers - 1).max() > BF16_ROUNDOFF / 1.1


@pytest.mark.parametrize("seed", range(12))
def test_compiled_engine_equals_the_reference(seed: int) -> None:
    random = Random(seed)
    lanes = random.choice((1, 2, 4, 16))
    reuse, columns = random.choice((1, 2)), random.choice((4, 8))
    banks, units = random.choice((1, 3, 4)), {"row_buffers": 1 + seed % 2, "vectors_per_multiply": 1 + seed // 2 % 2}
    pool = PoolShape(1, banks, 400, columns, lanes, 2 * columns, 8, **units)
    schedule = LinearSchedule(
        segment_columns=random.randint(1, columns),
        reuse=reuse,
        registers=random.choice((2, 5, 8)),
        order=random.choice(tuple(LoopOrder)),
        preactivate=random.random() < 0.5,
    )
    shape = LinearShape("random", (random.randint(1, 40),), random.randint(1, 12 * lanes), 2 * reuse)
    (phase,) = linear_phases(shape, schedule, pool, 1, UNTIMED_HOST)
    assert isinstance(phase, PimPhase)
    sizes = ChannelSizes(pool.banks, 400, columns, lanes, 2 * columns, 8)
    states = []
    for execute_program in (execute, execute_reference):
        channel = fresh_channel(sizes)
        channel.cells[:] = values(*channel.cells.shape, seed=seed)
        memory = host_memory(sizes, values(100, lanes, seed=seed + 1), None, 400)
        execute_program(phase.program, channel, memory)
        states.append((channel, memory))
    (fast, fast_memory), (slow, slow_memory) = states
    assert np.array_equal(fast_memory.outputs.view(np.uint32), slow_memory.outputs.view(np.uint32))
    assert np.array_equal(fast.accumulators, slow.accumulators, equal_nan=True)
    assert np.array_equal(fast.open_row, slow.open_row)
    assert fast.register_mode == slow.register_mode
