"""Accelerator and link times: CENT's published ones, and no work of ours free."""

import pytest

from compiler.aim.block import BlockShape, OpName, placement
from compiler.aim.latency import cent_time, lanes_of_device
from compiler.aim.own_block import OwnSchedules
from compiler.aim.own_latency import own_time
from compiler.schedule import AttentionSchedule, LinearSchedule
from configs.device import load_device

DEVICE = load_device("gddr6-aim-compat")
SEVEN = (4096, 32, 32, 128, 11008)
# Milliseconds of accelerators and link: CENT, ASPLOS'25, cent_simulation/simulation_results.csv, pipeline parallel.
PUBLISHED = (
    (SEVEN, 8, 128, 18, 0.00932, 0.00032238887363),
    (SEVEN, 8, 4096, 18, 0.06388, 0.00032238887363),
    ((5120, 40, 40, 128, 13824), 16, 128, 7, 0.0058105, 0.0006398072596958),
    ((8192, 64, 8, 128, 28672), 10, 128, 4, 0.009861, 0.0014614998626708),
)


@pytest.mark.parametrize(("sizes", "channels", "context", "lanes", "accelerators_ms", "link_ms"), PUBLISHED)
def test_cent_times_equal_the_published_ones(
    sizes: tuple[int, ...], channels: int, context: int, lanes: int, accelerators_ms: float, link_ms: float
) -> None:
    found = cent_time(BlockShape(*sizes, context), placement(DEVICE, channels), DEVICE.nanoseconds(1), lanes)
    assert DEVICE.nanoseconds(1) * sum(found.accelerators.values()) / 1e6 == pytest.approx(accelerators_ms, rel=1e-9)
    assert DEVICE.nanoseconds(1) * found.link / 1e6 == pytest.approx(link_ms, rel=1e-9)


def test_lanes_are_shared_by_the_devices_that_a_model_needs() -> None:
    assert lanes_of_device(32, placement(DEVICE, 8)) == 18
    assert lanes_of_device(40, placement(DEVICE, 16)) == 7


def own_accelerators(linear: LinearSchedule, attention: AttentionSchedule) -> dict[OpName, float]:
    schedules = OwnSchedules(linear, attention, linear, LinearSchedule(registers=16), linear, linear)
    shape, place = BlockShape(*SEVEN, 128), placement(DEVICE, 8)
    return own_time(shape, place, schedules, 0.5, 18).accelerators


def test_what_leaves_the_banks_is_charged_to_the_accelerators() -> None:
    found = own_accelerators(LinearSchedule(), AttentionSchedule())
    cent = cent_time(BlockShape(*SEVEN, 128), placement(DEVICE, 8), 0.5, 18).accelerators
    for name in (OpName.ATTENTION_NORM, OpName.MLP_NORM):
        assert found[name] > cent[name]
    for name in (OpName.ROTARY, OpName.SOFTMAX, OpName.CONTEXT, OpName.ACTIVATION):
        assert found[name] > 0
    # Gate, sigmoid and up are read for each of 11008 products: 3 x 32 reads, two products, a write, for 512 values.
    assert found[OpName.ACTIVATION] == pytest.approx(4 * 11008 / 512 * (96 + 2 + 1))


def test_splits_pay_for_their_additions() -> None:
    whole = own_accelerators(LinearSchedule(), AttentionSchedule())
    split = own_accelerators(LinearSchedule(reduction_split=2), AttentionSchedule(token_split=2))
    assert split[OpName.DOWN] == pytest.approx(4 * 4096 / 512 * 66)
    assert OpName.DOWN not in whole
    assert split[OpName.CONTEXT] > whole[OpName.CONTEXT]
