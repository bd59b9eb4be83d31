"""2,000 random operators, shapes, number formats, schedules and units: programs on values against the emulation."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from compiler.attention import AttentionShape, attention_geometry
from compiler.legality import reasons, rules
from compiler.linear import LinearShape
from compiler.numerics.attention import check_attention_case
from compiler.numerics.linear import check_linear_case
from compiler.numerics.report import as_lowered
from compiler.numerics.shrink import case_text
from compiler.numerics.small_sizes import FIRST_ROW, GROUPS, AttentionCase, LinearCase
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder, PoolShape
from configs.number_format import CACHE_STORAGE, NumberFormat

BATCHES, LINEAR_PER_BATCH, ATTENTION_PER_BATCH = 20, 80, 20


def random_pool(random: Random) -> PoolShape:
    """A unit of a few banks: structure is in rows, columns, lanes, buffer and accumulators."""
    return PoolShape(
        channels=GROUPS,
        banks=random.choice((1, 2, 4, 8)),
        rows=1 << 14,
        columns=random.choice((16, 32, 64)),
        lanes=random.choice((4, 8, 16, 32)),
        buffer_columns=random.choice((16, 32, 64, 128)),
        accumulators=random.choice((8, 16, 32)),
        column_accesses=random.choice((1, 1, 2, 4)),
        row_buffers=random.choice((1, 1, 2)),
        vectors_per_multiply=random.choice((1, 1, 2, 3, 4)),
    )


def linear_cases(random: Random) -> Iterator[LinearCase]:
    while True:
        pool, reuse = random_pool(random), random.choice((1, 1, 2, 3, 4))
        split = random.choice((1, 1, 2, 3))
        schedule = LinearSchedule(
            reduction_split=split,
            segment_columns=random.choice((1, 2, 4, 5, 8, 16, 32, 64)),
            reuse=reuse,
            registers=random.choice((4, 7, 8, 16, 32)),
            order=random.choice(tuple(LoopOrder)),
            merged=random.random() < 0.5,
            preactivate=random.random() < 0.5,
        )
        outputs = tuple(random.randint(1, 150) for _ in range(random.choice((1, 1, 2, 3))))
        stored = random.choice(tuple(NumberFormat))
        inputs = random.randint(1, 900)
        shape = LinearShape("linear", outputs, inputs, reuse * random.randint(1, 2), weights=stored)
        pool = replace(pool, channels=GROUPS * split)
        if not reasons("linear", schedule.place, rules(shape, schedule, pool)):
            case = LinearCase("random", shape, schedule, pool)
            yield replace(case, pool=replace(pool, rows=FIRST_ROW + sum(item.rows for item in case.passes)))


def attention_cases(random: Random) -> Iterator[AttentionCase]:
    while True:
        pool = random_pool(random)
        split, group = random.choice((1, 2, 3)), random.choice((1, 2, 4))
        schedule = AttentionSchedule(
            token_split=split,
            token_blocks=random.choice((1, 2, 3, 4)),
            score_reuse=random.choice((1, 2, 4)),
            context_segment_columns=random.choice((1, 2, 4, 8)),
            context_reuse=random.choice((1, 2, 4)),
            registers=random.choice((4, 8, 16)),
            preactivate=random.random() < 0.5,
        )
        steps, queries = random.randint(1, 3), random.choice((1, 1, 2, 5))
        tokens = random.randint(max(split, queries), 500)
        shape = AttentionShape(
            "attention", 1, 3 * group, 3, random.randint(1, 70), tokens, 2, tokens + steps * queries,
            cache=random.choice(tuple(CACHE_STORAGE)), queries=queries,
        )  # fmt: skip
        pool = replace(pool, channels=GROUPS * split)
        if not reasons("attention", schedule.place, rules(shape, schedule, pool)):
            rows = FIRST_ROW + int(attention_geometry(shape, schedule, pool).rows)
            yield AttentionCase("random", shape, schedule, replace(pool, rows=rows), steps)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_cases_compute_what_is_declared(batch: int) -> None:
    random = Random(batch)
    linear, attention = linear_cases(random), attention_cases(random)
    for _ in range(LINEAR_PER_BATCH):
        case = next(linear)
        assert check_linear_case(case, as_lowered), case_text(case)
    for _ in range(ATTENTION_PER_BATCH):
        case = next(attention)
        assert check_attention_case(case, as_lowered), case_text(case)


def test_the_cases_are_as_many_and_as_mixed_as_they_say() -> None:
    random = Random(0)
    assert BATCHES * (LINEAR_PER_BATCH + ATTENTION_PER_BATCH) >= 2000
    linear, attention = linear_cases(random), attention_cases(random)
    drawn = [next(linear) for _ in range(2 * LINEAR_PER_BATCH)]
    assert {case.shape.weights for case in drawn} == set(NumberFormat)
    assert any(any(item.spills for item in case.passes) for case in drawn)
    units = {(item.latched, item.together > 1, case.pool.column_accesses > 1) for case in drawn for item in case.passes}
    assert len(units) == 8
    caches = [next(attention) for _ in range(100)]
    assert {case.shape.cache for case in caches} == set(CACHE_STORAGE)
    blocks = [attention_geometry(case.shape, case.schedule, case.pool).blocks for case in caches]
    assert max(blocks) >= 3
