"""Are both mappings legal on the device at odd sizes, and does every access they ask for take place?"""

from collections.abc import Iterator

import pytest

from autotune.block_replay import whole_trace
from autotune.own_choice import Chooser
from compiler.aim.block import BlockOp, BlockShape, OpName, placement
from compiler.aim.cent_block import cent_block
from compiler.aim.own_block import OwnSchedules, own_block
from compiler.aim.text import trace_text
from compiler.schedule import AttentionSchedule, LinearSchedule
from configs.device import load_device
from configs.errors import UserError
from simulator.aim.instructions import Instruction, Opcode
from simulator.aim.replay import execute
from simulator.aim.requests import requests_of
from simulator.aim.rules import rules_of
from simulator.aim.trace import Trace, parse_trace

DEVICE = load_device("gddr6-aim-compat")
COLUMNS = 64
SIZES = [(context, channels) for context in (1, 17, 129) for channels in (1, 3, 32)] + [(1025, 3), (4099, 8)]
LINEAR = LinearSchedule()
HALF = LinearSchedule(registers=16)


def shape_of(context: int, kv_heads: int = 3) -> BlockShape:
    return BlockShape(hidden=768, heads=6, kv_heads=kv_heads, head_dim=128, intermediate=5000, context=context)


def own(shape: BlockShape, channels: int, attention: AttentionSchedule) -> tuple[BlockOp, ...]:
    schedules = OwnSchedules(LINEAR, attention, LINEAR, HALF, LINEAR, LINEAR)
    return own_block(shape, placement(DEVICE, channels), DEVICE, schedules)


def mappings(context: int, channels: int) -> Iterator[tuple[BlockOp, ...]]:
    yield cent_block(shape_of(context), placement(DEVICE, channels))
    split = 3 if channels == 3 else 1
    yield own(shape_of(context), channels, AttentionSchedule(token_split=split, context_segment_columns=16))


@pytest.mark.parametrize(("context", "channels"), SIZES)
def test_traces_read_back_and_stay_within_rows_and_blocks(context: int, channels: int) -> None:
    used = set(range(32 // channels * channels))
    for ops in mappings(context, channels):
        found = whole_trace(ops, DEVICE)
        assert parse_trace(trace_text(found), DEVICE.organisation).instructions == found
        for item in found:
            if item.opcode not in (Opcode.SYNC, Opcode.EOC):
                assert set(item.channels) <= used
            if item.opcode is not Opcode.EWADD:
                assert item.opsize <= COLUMNS


@pytest.mark.parametrize(("context", "channels"), SIZES)
def test_every_access_takes_place_once(context: int, channels: int) -> None:
    for ops in mappings(context, channels):
        found = whole_trace(ops, DEVICE)
        _, commands = execute(requests_of(Trace(found), 32), rules_of(DEVICE), where="test")
        counts = commands.counts()
        for kind, opcodes in (
            ("WR", (Opcode.WRITE_MEM, Opcode.WR_SBK)),
            ("RD", (Opcode.READ_MEM, Opcode.RD_SBK)),
            ("WRA16", (Opcode.WR_ABK,)),
            ("MAC16", (Opcode.MAC_ABK,)),
            ("RDMAC16", (Opcode.RD_MAC,)),
        ):
            assert counts.get(kind, 0) == sum(
                item.opsize * len(item.channels) for item in found if item.opcode in opcodes
            ), kind


def test_copies_of_a_block_do_the_same() -> None:
    ops = cent_block(shape_of(129), placement(DEVICE, 8))
    per_copy = [0, 0, 0, 0]
    for op in ops:
        for item in op.instructions:
            for channel in item.channels if item.opcode is not Opcode.SYNC else ():
                per_copy[channel // 8] += item.opsize
    assert len(set(per_copy)) == 1


def test_the_newest_token_is_written_once_in_every_copy() -> None:
    ops = own(shape_of(18), 4, AttentionSchedule(token_split=2, context_segment_columns=16))
    append = next(op for op in ops if op.name is OpName.APPEND)
    keys = [item for item in append.instructions if item.opcode is Opcode.WR_SBK]
    # Token 17 lies in the second channel of each pair; two pairs hold two heads and one.
    assert {item.channels for item in keys} == {tuple(8 * [1, 3][i % 2] // 8 + 4 * (i // 2) for i in range(16))}
    assert len(keys) == 2 * 8


def test_activated_outputs_are_read_through_the_activation_function_once_each() -> None:
    ops = own(shape_of(17), 8, AttentionSchedule(context_segment_columns=16))
    gate = next(op for op in ops if op.name is OpName.GATE_UP).instructions
    slots = -(-5000 // (8 * 16))
    assert sum(item.opcode is Opcode.AF for item in gate) == slots
    assert sum(item.opcode is Opcode.RD_AF for item in gate) == slots


def test_spilled_partial_sums_are_not_activated() -> None:
    from compiler.aim.own_block import block_pool, own_layers
    from compiler.aim.own_linear import linear_trace
    from compiler.schedule import LoopOrder

    place = placement(DEVICE, 2)
    layer = own_layers(shape_of(17)).gate
    layer = type(layer)("gate", (2000,), 3000, 1)
    schedule = LinearSchedule(registers=16, order=LoopOrder.SPILL)
    found = linear_trace(layer, schedule, block_pool(DEVICE, place), (0, 1), 0, activated=True).instructions
    slots = -(-2000 // 32)
    assert sum(item.opcode is Opcode.RD_MAC for item in found) == 3 * slots
    assert sum(item.opcode is Opcode.AF for item in found) == slots


def test_contexts_end_with_the_sum_of_exponentials() -> None:
    def macs(instructions: tuple[Instruction, ...]) -> int:
        return sum(item.opsize for item in instructions if item.opcode is Opcode.MAC_ABK)

    ops = own(shape_of(64, kv_heads=6), 6, AttentionSchedule(context_segment_columns=4))
    by_name = {op.name: op.instructions for op in ops}
    assert macs(by_name[OpName.CONTEXT]) == (128 // 16 + 1) * (64 // 16)


def test_a_block_that_does_not_fit_says_so() -> None:
    shape = BlockShape(5120, 40, 40, 128, 13824, 128)
    with pytest.raises(UserError, match="rows for one block"):
        cent_block(shape, placement(DEVICE, 1))
    with pytest.raises(UserError, match="rows for one block"):
        own(shape, 1, AttentionSchedule())


def test_the_choice_is_deterministic() -> None:
    shape, place = shape_of(40), placement(DEVICE, 4)
    chooser = Chooser(shape, place, DEVICE, rules_of(DEVICE))
    assert chooser.schedules() == chooser.schedules()
