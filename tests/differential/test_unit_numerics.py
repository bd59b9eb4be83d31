"""Schedules on devices with other units, on values against the declared order: what `explore check` would say."""

from random import Random

import pytest

from compiler.numerics.check import check_attention, check_linear
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder, pool_shape
from configs.device import Device
from configs.number_format import NumberFormat
from tests.unit_devices import random_unit_device

SEGMENTS = (1, 5, 8, 16, 32)
STORED = (NumberFormat.BF16, NumberFormat.FP16, NumberFormat.INT8)


def random_linear(random: Random, device: Device) -> LinearSchedule:
    pool = pool_shape(device, 1)
    segment = min(random.choice(SEGMENTS), pool.row_accesses, pool.buffer_columns)
    return LinearSchedule(
        reduction_split=random.choice((1, 2, 4)),
        segment_columns=segment,
        reuse=min(random.choice((1, 2, 3, 4, 8)), pool.buffer_columns // segment, pool.accumulators),
        registers=random.choice([count for count in (8, 15, 16, 32) if count <= pool.accumulators]),
        order=random.choice(tuple(LoopOrder)),
        merged=random.random() < 0.5,
        preactivate=random.random() < 0.5,
    )


def random_attention(random: Random, device: Device) -> AttentionSchedule:
    pool = pool_shape(device, 1)
    segment = min(random.choice(SEGMENTS), pool.row_accesses, pool.buffer_columns)
    return AttentionSchedule(
        token_split=random.choice((1, 2, 4)),
        score_reuse=min(random.choice((1, 2, 4)), pool.buffer_columns // (2 * pool.column_accesses)),
        context_segment_columns=segment,
        context_reuse=min(random.choice((1, 2, 4)), pool.buffer_columns // segment),
        registers=random.choice([count for count in (8, 16, 32) if count <= pool.accumulators]),
        preactivate=random.random() < 0.5,
    )


@pytest.mark.parametrize("seed", range(24))
def test_linear_schedules_on_any_unit_compute_what_is_declared(seed: int) -> None:
    random = Random(seed)
    device = random_unit_device(random)
    report = check_linear(random_linear(random, device), device, weights=random.choice(STORED))
    assert report.passed, str(report)


@pytest.mark.parametrize("seed", range(8))
def test_attention_schedules_on_any_unit_compute_what_is_declared(seed: int) -> None:
    random = Random(500 + seed)
    device = random_unit_device(random)
    report = check_attention(random_attention(random, device), device, queries=random.choice((1, 1, 3)))
    assert report.passed, str(report)
