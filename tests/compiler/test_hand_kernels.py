"""Do kernels written by hand keep the contract of the generated one, and does the tuner weigh them?"""

from collections import Counter
from dataclasses import replace

import pytest

from autotune.hand_mapping import hand_schedules
from autotune.tuning import tune
from compiler.hand_kernels import KERNELS
from compiler.legality import kernel_reasons
from compiler.linear import LinearShape, linear_phases
from compiler.lowering import System
from compiler.numerics.check import check_linear
from compiler.schedule import LinearSchedule, LoopOrder
from configs.device import load_device
from configs.number_format import STORAGE, NumberFormat
from simulator.isa import Program, walk
from simulator.step import PimPhase

DEVICE = load_device("gddr6-aim")
SYSTEM = System(DEVICE, 1)
CENT = LinearSchedule(order=LoopOrder.SPILL, preactivate=False, registers=8, segment_columns=16, kernel="cent")


def program(schedule: LinearSchedule, shape: LinearShape) -> Program:
    (phase,) = linear_phases(shape, schedule, SYSTEM.pool, 1, SYSTEM.host)
    assert isinstance(phase, PimPhase)
    return phase.program


@pytest.mark.parametrize("segment_columns", [5, 16, 64])
@pytest.mark.parametrize("weights", [NumberFormat.BF16, NumberFormat.INT8])
def test_the_kernel_of_cent_computes_what_is_declared(segment_columns: int, weights: NumberFormat) -> None:
    report = check_linear(replace(CENT, segment_columns=segment_columns), DEVICE, weights=weights)
    assert report.passed, str(report)


def test_the_kernel_of_cent_issues_the_commands_of_the_spilling_schedule_but_in_whole_reads() -> None:
    shape = LinearShape("linear", (5000,), 1000, 2)
    by_hand, generated = (
        Counter(command.kind for command in walk(program(schedule, shape)))
        for schedule in (CENT, replace(CENT, kernel="generated"))
    )
    differing = {str(kind) for kind in by_hand if by_hand[kind] != generated[kind]}
    assert differing <= {"TMOD", "SIGNAL"}


def test_a_kernel_says_which_schedules_and_formats_it_cannot_serve() -> None:
    assert not kernel_reasons("linear", CENT, STORAGE[NumberFormat.INT8], SYSTEM.pool)
    wrong = kernel_reasons("linear", replace(CENT, order=LoopOrder.RELOAD), STORAGE[NumberFormat.MXFP4], SYSTEM.pool)
    assert wrong == (
        "linear: the kernel cent needs order spill, the schedule has reload",
        "linear: it takes no scales from rows",
    )


def test_the_tuner_weighs_every_kernel_by_hand_and_says_who_won() -> None:
    shape = LinearShape("linear", (4096,), 4096, 1)
    (found,) = tune([shape], SYSTEM, 60)
    assert set(found.hand_cycles) == set(hand_schedules(shape, SYSTEM)) >= {f"kernel {name}" for name in KERNELS}
    assert found.hand_cycles["kernel cent"] > found.cycles
    assert found.winner == "tuned"


def test_the_tuner_does_not_claim_to_win_where_the_space_holds_nothing_as_fast() -> None:
    shape = LinearShape("linear", (4096,), 4096, 1)
    (found,) = tune([shape], SYSTEM, 60, {"*.registers": (8,), "*.segment_columns": (8,), "*.place": ("pim",)})
    assert isinstance(found.schedule, LinearSchedule)
    assert found.schedule.registers == 8
    assert found.winner == "overlapped"
    assert found.hand_cycles["overlapped"] < found.cycles
