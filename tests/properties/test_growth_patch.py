"""Do patched programs equal compiled ones, for any growth of any attention and for any two programs at all?"""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compiler.attention import AttentionShape
from compiler.attention_lowering import AttentionLowering
from compiler.legality import legal, rules
from compiler.patch.growth import attention_programs, grown, growth_patch, patch_sizes, print_patch
from compiler.patch.program import BlockEdit, FieldEdit, edits_between, instructions_written, patch_programs
from compiler.schedule import AttentionSchedule, Place, PoolShape
from configs.device import load_device
from simulator.instructions import program_size
from simulator.isa import Affine, Command, Kind, Loop, Program
from tests.properties.test_program_text_round_trip import BLOCKS

AIM = load_device("gddr6-aim")
# So small that rows of K, columns, rows and segments of V, and groups of accumulators end within a few tokens.
TINY = PoolShape(channels=4, banks=2, rows=1 << 20, columns=8, lanes=2, buffer_columns=8, accumulators=8)
ROOM = 300
SHAPES = st.builds(
    AttentionShape,
    st.just("attention"),
    batch=st.integers(1, 5),
    heads=st.just(4),
    kv_heads=st.sampled_from((1, 2, 4)),
    head_dim=st.sampled_from((2, 5, 8)),
    tokens=st.integers(1, ROOM - 50),
    capacity=st.just(ROOM),
)
SCHEDULES = st.builds(
    AttentionSchedule,
    token_split=st.sampled_from((1, 2, 4)),
    token_blocks=st.integers(1, 3),
    score_reuse=st.sampled_from((1, 2)),
    context_segment_columns=st.integers(1, 4),
    context_reuse=st.sampled_from((1, 2)),
    registers=st.sampled_from((2, 4, 8)),
    preactivate=st.booleans(),
)


def lowering(shape: AttentionShape, schedule: AttentionSchedule) -> AttentionLowering:
    assert AIM.host is not None
    return AttentionLowering(shape, schedule, TINY, 1, AIM.host, first_row=7)


@given(SHAPES, SCHEDULES, st.integers(1, 50))
@settings(deadline=None)
def test_patched_programs_are_those_compiled_for_more_tokens(shape, schedule, tokens):
    assume(legal(schedule.place, rules(shape, schedule, TINY)))
    before = lowering(shape, schedule)
    after = grown(before, tokens)
    patch = growth_patch(before, after)
    assert patch.apply(attention_programs(before)) == attention_programs(after)
    assert bool(patch.edits) == (attention_programs(before) != attention_programs(after))


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_growing_program_patched_token_by_token_stays_the_compiled_one(split, blocks):
    shape = AttentionShape("attention", batch=3, heads=4, kv_heads=2, head_dim=5, tokens=split, capacity=ROOM)
    schedule = AttentionSchedule(
        token_split=split, token_blocks=blocks, score_reuse=2, context_segment_columns=2, context_reuse=2, registers=4
    )
    current = lowering(shape, schedule)
    programs = attention_programs(current)
    # Over several rows of K (two banks of two slots) and segments of V (two columns of two lanes).
    for _ in range(40 * split):
        patch = growth_patch(current, grown(current))
        programs, current = patch.apply(programs), grown(current)
        assert programs == attention_programs(current)


@given(st.lists(BLOCKS, min_size=2, max_size=2))
def test_any_program_becomes_any_other(bodies):
    old, new = ({"one": Program(body)} for body in bodies)
    edits = edits_between(old, new)
    assert patch_programs(old, edits) == new
    assert instructions_written(old, edits) >= 0


@given(BLOCKS)
def test_equal_programs_need_no_edit(body):
    assert edits_between({"one": Program(body)}, {"one": Program(body)}) == ()


def test_programs_come_and_go():
    old, new = {"one": Program((Command(Kind.ACT),))}, {"two": Program((Command(Kind.PRE), Command(Kind.PREA)))}
    edits = edits_between(old, new)
    assert patch_programs(old, edits) == new
    assert instructions_written(old, edits) == 2


def test_operands_and_counts_change_in_place_and_instructions_in_blocks():
    mac = Command(Kind.MAC16, row=Affine(1), column=Affine(0, ((0, 1),)))
    old = {"score": Program((Command(Kind.WAIT), Loop(3, (mac,)), Command(Kind.PREA)))}
    body = (Command(Kind.WAIT), Loop(4, (replace(mac, row=Affine(2)),)), Command(Kind.TMOD), Command(Kind.PREA))
    edits = edits_between(old, {"score": Program(body)})
    assert edits == (
        FieldEdit("score", (1,), "count", 3, 4),
        FieldEdit("score", (1, 0), "row", Affine(1), Affine(2)),
        BlockEdit("score", (2,), (), (Command(Kind.TMOD),)),
    )
    # A loop of one command is one instruction of the dispatcher.
    assert instructions_written(old, edits) == 2


def test_a_patch_for_other_programs_is_refused():
    old, new, other = ({"one": Program((Command(Kind.ACT, row=Affine(row)),))} for row in (1, 2, 3))
    with pytest.raises(ValueError, match=r"expected .*constant=1.* found .*constant=3.*a patch for other programs"):
        patch_programs(other, edits_between(old, new))


def test_most_tokens_change_the_place_of_the_append_alone():
    assert AIM.host is not None
    assert AIM.dispatcher is not None
    pool = PoolShape(channels=32, banks=16, rows=1 << 20, columns=64, lanes=16, buffer_columns=64, accumulators=32)
    shape = AttentionShape("attention", batch=1, heads=32, kv_heads=8, head_dim=128, tokens=4096, capacity=8192)
    schedule = AttentionSchedule(token_split=4, score_reuse=4, context_segment_columns=16, context_reuse=4)
    start = AttentionLowering(shape, schedule, pool, 1, AIM.host)
    patches = [growth_patch(grown(start, n), grown(start, n + 1)) for n in range(0, 130)]
    sizes = patch_sizes(patches, AIM.dispatcher)
    # Four channels share a head's tokens, so that every fourth token has new places.
    assert sizes.unchanged >= 3 * len(patches) // 4
    assert sizes.typical_fields == 4
    text = print_patch(next(patch for patch in patches if patch.tokens == 4100))
    assert "attention k append, 1 bank: 0 -> 1" in text
    assert sizes.worst_tokens == 4096
    whole = sum(program_size(program) for program in attention_programs(start).values())
    assert sizes.worst_bytes < whole * AIM.dispatcher.instruction_bytes


def test_what_the_host_runs_has_nothing_to_patch():
    shape = AttentionShape("attention", batch=1, heads=4, kv_heads=2, head_dim=8, tokens=9)
    before = lowering(shape, AttentionSchedule(place=Place.HOST))
    assert growth_patch(before, grown(before)).edits == ()
