"""Programs on values against the declared order and fp64: random legal schedules on random devices."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from compiler.attention import attention_geometry
from compiler.numerics.attention import check_attention_case
from compiler.numerics.check import check_attention, check_linear, numerics_of
from compiler.numerics.emulation import ReductionOrder, emulate_linear, exact_linear
from compiler.numerics.report import as_lowered
from compiler.numerics.small_sizes import DECODE_STEPS, FIRST_ROW, attention_cases, linear_cases
from compiler.numerics.small_values import random_values
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder, Place, pool_shape
from configs.device import Device, load_device
from configs.knobs import base_knobs
from simulator.bf16 import round_to_bf16
from simulator.laws.device import impossibilities, scaled_device

BASE = load_device("gddr6-aim")
SEGMENTS = (1, 5, 8, 16, 32, 64)


def random_device(random: Random) -> Device:
    while True:
        lanes = random.choice((8, 16, 32))
        knobs = replace(
            base_knobs(BASE),
            channels=random.choice((8, 16, 32, 64)),
            banks_per_channel=random.choice((8, 16, 32, 64)),
            row_bytes=random.choice((1024, 2048, 4096)),
            lanes=lanes,
            column_bytes=2 * lanes,
            global_buffer_bytes=random.choice((1024, 2048, 4096)),
        )
        if not impossibilities(BASE, knobs):
            return scaled_device(BASE, knobs)


def random_linear(random: Random, device: Device) -> LinearSchedule:
    pool = pool_shape(device, 1)
    segment = min(random.choice(SEGMENTS), pool.columns, pool.buffer_columns)
    return LinearSchedule(
        reduction_split=random.choice((1, 2, 4, 8)),
        segment_columns=segment,
        reuse=min(random.choice((1, 1, 2, 3, 4)), pool.buffer_columns // segment),
        registers=random.choice((4, 8, 15, 16, 32)),
        order=random.choice(tuple(LoopOrder)),
        merged=random.random() < 0.5,
        preactivate=random.random() < 0.5,
    )


def random_attention(random: Random, device: Device) -> AttentionSchedule:
    pool = pool_shape(device, 1)
    segment = min(random.choice(SEGMENTS), pool.columns, pool.buffer_columns)
    return AttentionSchedule(
        token_split=random.choice((1, 2, 4)),
        score_reuse=random.choice((1, 2, 4)),
        context_segment_columns=segment,
        context_reuse=min(random.choice((1, 2, 4)), pool.buffer_columns // segment),
        registers=random.choice((4, 8, 16, 32)),
        preactivate=random.random() < 0.5,
    )


@pytest.mark.parametrize("seed", range(60))
def test_random_linear_schedules_pass(seed: int) -> None:
    random = Random(seed)
    device = random_device(random)
    report = check_linear(random_linear(random, device), device)
    assert report.passed, str(report)
    assert report.cases >= 8


@pytest.mark.parametrize("seed", range(16))
def test_random_attention_schedules_pass(seed: int) -> None:
    random = Random(1000 + seed)
    device = random_device(random)
    report = check_attention(random_attention(random, device), device)
    assert report.passed, str(report)


def test_small_sizes_preserve_the_structure() -> None:
    pool = pool_shape(BASE, 1)
    schedule = LinearSchedule(segment_columns=16, registers=8, reduction_split=8, order=LoopOrder.SPILL)
    many = linear_cases(schedule, pool)[-1]
    (sizes,) = many.passes
    assert (sizes.segments, sizes.groups, sizes.vector_groups) == (4, 3, 2)
    assert sizes.spills
    assert sizes.tail_columns < sizes.segment_columns
    assert sizes.slots % sizes.group_slots
    assert many.schedule == replace(schedule, reduction_split=3)
    for case in attention_cases(AttentionSchedule(token_split=4, context_segment_columns=8), pool):
        assert case.steps == DECODE_STEPS >= 17
        assert case.shape.units % 2  # a channel with a padding unit
        assert case.schedule.token_split == 3


def test_attention_growth_crosses_row_column_and_segment() -> None:
    schedule = AttentionSchedule(token_split=2, context_segment_columns=8)
    value, key = attention_cases(schedule, pool_shape(BASE, 1))
    before, after = value.shape.tokens // 2, (value.shape.tokens + value.steps) // 2
    assert before // (8 * 16) < (after - 1) // (8 * 16)
    per_row = (64 // -(-key.shape.head_dim // 16)) * key.pool.banks
    before, after = key.shape.tokens // 2, (key.shape.tokens + key.steps) // 2
    assert before // per_row < (after - 1) // per_row


def test_host_schedules_pass_with_a_note() -> None:
    for schedule in (LinearSchedule(place=Place.HOST), AttentionSchedule(place=Place.HOST)):
        report = numerics_of(schedule, BASE)
        assert (report.passed, report.cases, report.note) == (True, 0, "placed on host")


def test_reports_are_kept_for_devices_of_equal_structure() -> None:
    schedule = LinearSchedule(segment_columns=8, registers=4)
    report = numerics_of(schedule, BASE)
    slower = BASE.model_copy(update={"clock_ps": 1000})
    assert numerics_of(schedule, slower) is report
    assert numerics_of(replace(schedule, registers=8), BASE) is not report


def test_an_illegal_schedule_fails_with_the_command() -> None:
    report = check_linear(LinearSchedule(registers=64, segment_columns=8), BASE)
    assert not report.passed
    assert "register" in str(report)


def plain_emulation(weights: np.ndarray, vector: np.ndarray, order: ReductionOrder) -> np.ndarray:
    """One value at a time, as the definition reads."""
    results = []
    part = -(-len(vector) // order.parts)
    for row in weights:
        total = np.float32(0)
        for number in range(order.parts):
            own = slice(number * part, (number + 1) * part)
            products = row[own] * vector[own]
            columns = -(-part // order.lanes)
            products = np.pad(products, (0, columns * order.lanes - len(products)))
            accumulator = np.float32(0)
            for column in range(columns):
                sums = list(products[column * order.lanes : (column + 1) * order.lanes])
                while len(sums) > 1:
                    sums = [sums[i] + sums[i + 1] for i in range(0, len(sums), 2)]
                accumulator = accumulator + sums[0]
                if order.spills and (column + 1) % order.segment_columns == 0:
                    accumulator = round_to_bf16(np.array([accumulator]))[0]
            total = total + round_to_bf16(np.array([accumulator]))[0]
        results.append(total)
    return round_to_bf16(np.array(results, dtype=np.float32))


@pytest.mark.parametrize("seed", range(10))
def test_emulation_equals_the_definition_and_its_bound_holds(seed: int) -> None:
    random, generator = Random(seed), np.random.default_rng(seed)
    order = ReductionOrder(random.choice((1, 4, 16)), random.randint(1, 4), seed % 2 == 0, random.randint(1, 4))
    weights = random_values(generator, 7, random.randint(4, 150))
    vectors = random_values(generator, 2, weights.shape[1])
    result = emulate_linear(weights, vectors, order)
    for found, vector in zip(result, vectors, strict=True):
        assert np.array_equal(found, plain_emulation(weights, vector, order))
    exact, size = exact_linear(weights, vectors)
    assert (np.abs(result - exact) <= order.gamma(weights.shape[1]) * size).all()


def test_gamma_counts_roundings() -> None:
    assert ReductionOrder(16, 8).gamma(16) == pytest.approx(2.0**-8 + 5 * 2.0**-24, rel=1e-3)
    spilled = ReductionOrder(16, 1, spills=True).gamma(16 * 4)
    assert spilled == pytest.approx((1 + 2.0**-8) ** 4 - 1, rel=1e-3)


@pytest.mark.parametrize("widened", [-16, 24])
@pytest.mark.parametrize("blocks", [1, 2])
def test_values_may_be_narrower_or_wider_than_keys(blocks: int, widened: int) -> None:
    pool = replace(pool_shape(BASE, 1), channels=0, rows=0)
    schedule = AttentionSchedule(token_split=2, token_blocks=blocks, score_reuse=2)
    for case in attention_cases(schedule, pool):
        shape = replace(case.shape, value_dim=case.shape.head_dim + widened)
        rows = FIRST_ROW + int(attention_geometry(shape, case.schedule, case.pool).rows)
        other = replace(case, shape=shape, pool=replace(case.pool, rows=rows))
        assert check_attention_case(other, as_lowered) > 0
