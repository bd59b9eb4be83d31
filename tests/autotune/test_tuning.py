"""Does the tuner find the fastest schedule of an operator, and does it spread the tokens of few heads by itself?"""

from itertools import product

import pytest

from autotune.hand_mapping import HAND_MAPPINGS
from autotune.tuning import TUNED, tune
from compiler.attention import AttentionShape
from compiler.linear import LinearShape
from compiler.lowering import System, lower_steps, lower_task
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder
from compiler.workload import StoredFormats, Workload
from configs.device import load_device
from configs.number_format import NumberFormat
from simulator.step import Step, TaskPhases
from simulator.timeline import StepSimulator
from tests.small_workloads import small_workload

DEVICE = load_device("gddr6-aim")
SYSTEM = System(DEVICE, 1)
LONG = StoredFormats(NumberFormat.INT8, NumberFormat.FP8)
ONE_HEAD_PER_CHANNEL = {"*.place": ("pim",), "*.token_split": (1,)}


def test_the_tuned_schedule_is_the_fastest_of_all_where_that_is_proved() -> None:
    shape = LinearShape("small", (512, 256), 1024, 1)
    restrictions = {"*.place": ("pim",), "*.reduction_split": (1, 4), "*.segment_columns": (64, 16)}
    (found,) = tune([shape], SYSTEM, 10**6, restrictions)
    assert found.proved
    simulator = StepSimulator(DEVICE)
    every = [
        LinearSchedule(
            reduction_split=split, segment_columns=segment, registers=registers, order=order, merged=merged,
            preactivate=preactivate,
        )
        for split, segment, registers, order, merged, preactivate in product(
            (1, 4), (64, 16), (32, 16, 8), tuple(LoopOrder), (True, False), (True, False)
        )
    ]  # fmt: skip
    cycles = [
        simulator.run(Step((TaskPhases("small", lower_task(shape, {"small": item}, SYSTEM)),), (0,), ((),)))
        for item in every
    ]
    assert found.cycles == min(report.latency_cycles for report in cycles)
    assert found.legal == len(every)


def test_no_hand_mapping_beats_the_tuned_one() -> None:
    for item in tune(small_workload().schedulables, SYSTEM, 40):
        assert item.cycles <= min(item.hand_cycles.values())
        assert item.least_bound_cycles <= item.cycles
        assert (item.winner == TUNED) == (item.cycles < min(item.hand_cycles.values()))


@pytest.fixture(scope="module")
def llama() -> Workload:
    from autotune.problem_spec import import_workload

    return import_workload("llama-3.1-8b", 1, 32768, LONG)


def test_tokens_of_few_heads_are_spread_over_all_channels(llama: Workload) -> None:
    attention = [shape for shape in llama.schedulables if isinstance(shape, AttentionShape)]
    (idle,) = tune(attention, SYSTEM, restrictions=ONE_HEAD_PER_CHANNEL)
    (spread,) = tune(attention, SYSTEM)
    assert isinstance(spread.schedule, AttentionSchedule)
    assert spread.schedule.token_split == 4  # 8 KV heads on 32 channels
    print(f"attention: {idle.cycles} cycles with 24 channels idle, {spread.cycles} spread over 32")
    assert idle.cycles / spread.cycles >= 3.3
    schedules = {item.name: item.schedule for item in tune(llama.schedulables, SYSTEM)}
    simulator = StepSimulator(DEVICE)
    steps = [
        simulator.run(lower_steps(llama, schedules | {item.name: item.schedule}, SYSTEM, ((),))[0])
        for item in (idle, spread)
    ]
    print(f"whole step: {steps[0].latency_cycles} and {steps[1].latency_cycles} cycles")
    assert steps[0].latency_cycles / steps[1].latency_cycles >= 2


def test_mappings_by_hand_are_legal_for_a_single_token() -> None:
    shape = AttentionShape("attention", 1, 8, 2, 64, 1)
    (found,) = tune([shape], SYSTEM, 5)
    assert set(found.hand_cycles) == set(HAND_MAPPINGS)
