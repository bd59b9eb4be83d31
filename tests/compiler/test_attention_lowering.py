"""Do appends write what is new and no more, and does a link carry what its device's part of the plan needs?"""

from itertools import product

import pytest

from compiler.attention import AttentionShape, attention_geometry, busiest_device
from compiler.attention_lowering import AttentionLowering
from compiler.graph import OpKind
from compiler.numerics.report import UNTIMED_HOST
from compiler.schedule import AttentionSchedule, PoolShape, pool_shape
from compiler.workload import AppendShape, workload_of
from configs.device import load_device
from simulator.isa import Kind, walk
from simulator.step import PimPhase

DEVICE = load_device("gddr6-aim")
POOL = pool_shape(DEVICE, 1)


def written(shape: AttentionShape, schedule: AttentionSchedule, kind: Kind) -> float:
    """Return the commands of a kind that appends issue over all channels."""
    lowering = AttentionLowering(shape, schedule, POOL, 1, UNTIMED_HOST)
    phases = [*lowering.append_phases(), *lowering.attend_phases()]
    return sum(
        phase.active_channels * sum(command.kind is kind for command in walk(phase.program))
        for phase in phases
        if isinstance(phase, PimPhase)
    )


@pytest.mark.parametrize(("queries", "split"), list(product((1, 2, 3, 5, 7), (1, 2, 4, 8))))
def test_every_new_token_is_written_once(queries: int, split: int) -> None:
    shape = AttentionShape("attention", 1, 16, 4, 128, 300, queries=queries)
    schedule = AttentionSchedule(token_split=split)
    columns = 128 // 16
    assert written(shape, schedule, Kind.WR) == pytest.approx(shape.units * queries * columns)
    assert written(shape, schedule, Kind.WRA16) == pytest.approx(shape.units * queries * 128 / 16)


@pytest.mark.parametrize(
    ("devices", "kv_heads", "split"),
    [(1, 8, 4), (2, 8, 4), (3, 8, 8), (2, 8, 64), (4, 1, 64), (12, 8, 32), (3, 40, 3), (5, 7, 2)],
)
def test_the_busiest_link_carries_one_copy_for_every_head_that_its_device_has_part_of(
    devices: int, kv_heads: int, split: int
) -> None:
    pool = pool_shape(DEVICE, devices)
    shape = AttentionShape("attention", 1, 4 * kv_heads, kv_heads, 128, 4096)
    sizes = attention_geometry(shape, AttentionSchedule(token_split=split), pool)
    own = pool.channels // devices
    groups, channels = heads_and_channels(sizes.units_per_channel, kv_heads, split, pool, devices)
    found = busiest_device(sizes, split, pool, devices)
    assert int(found.query_copies) >= max(groups)
    assert int(found.channels) == max(channels)
    if own % split == 0 or split % own == 0:
        assert int(found.query_copies) == max(groups)


def heads_and_channels(
    units_per_channel: int, units: int, split: int, pool: PoolShape, devices: int
) -> tuple[list[int], list[int]]:
    """Count, channel by channel, the groups of channels and the channels at work on every device."""
    own = pool.channels // devices
    groups, channels = [], []
    for device in range(devices):
        at_work = [
            channel
            for channel in range(device * own, (device + 1) * own)
            if channel // split * units_per_channel < units
        ]
        groups.append(len({channel // split for channel in at_work}))
        channels.append(len(at_work))
    return groups, channels


def test_several_queries_reach_back_over_their_own_windows() -> None:
    from compiler.frontend import import_model
    from compiler.passes import run_passes
    from compiler.tasks import tasks_of
    from tests.tiny_models import tiny_config

    config = tiny_config("mistral", sliding_window=4)
    graph = tasks_of(run_passes(import_model(config, 3, 40)))
    workload = workload_of(graph, "windowed", 1, 40, queries=3)
    (attention,) = [shape for shape in workload.shapes if isinstance(shape, AttentionShape)]
    assert attention.tokens == 4 + 2
    assert any(isinstance(shape, AppendShape) for shape in workload.shapes)
    assert OpKind.ATTENTION in {task.kind for task in graph.tasks}


def test_more_queries_than_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 3 queries, found 4"):
        AttentionShape("attention", 1, 4, 4, 64, 3, queries=4)
