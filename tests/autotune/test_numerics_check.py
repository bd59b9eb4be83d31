"""Does `explore check` tell what is wrong from what is not legal, and check what the scenario asks for?"""

from dataclasses import replace

import numpy as np
import pytest

from autotune.numerics_check import check_model, random_legal
from autotune.scenario import require_formats
from autotune.tuning import tune
from compiler.attention import AttentionShape
from compiler.legality import all_reasons
from compiler.linear import LinearShape
from compiler.lowering import System
from compiler.numerics.check import check_attention
from compiler.schedule import AttentionSchedule
from compiler.workload import StoredFormats
from configs.device import load_device
from configs.errors import UserError
from configs.knobs import base_knobs
from configs.number_format import NumberFormat
from simulator.isa import Instruction, Kind, Loop, Program
from simulator.laws.device import scaled_device
from tests.small_workloads import small_workload

BASE = load_device("gddr6-aim")
SYSTEM = System(BASE, 1)
WIDE = System(scaled_device(BASE, replace(base_knobs(BASE), lanes=32, column_bytes=64)), 1)


def test_a_schedule_that_is_not_legal_is_told_and_is_no_failure() -> None:
    shape = LinearShape("linear", (96,), 320, 1, weights=NumberFormat.NVFP4)
    first = next(check_model([shape], WIDE, 0, 0))
    assert first.passed
    assert first.kernels == 0
    assert first.report.startswith("not legal: linear: 16 of the values that share a scale are left over by the lanes")


def test_an_operator_without_any_legal_schedule_names_the_rule() -> None:
    shape = LinearShape("linear", (96,), 320, 1, weights=NumberFormat.NVFP4)
    with pytest.raises(UserError, match="rules broken: scale group in"):
        tune([shape], WIDE, restrictions={"*.place": ("pim",)})


def test_every_schedule_of_a_small_model_passes_in_narrow_formats_and_with_several_queries() -> None:
    formats = StoredFormats(NumberFormat.MXFP4, NumberFormat.INT8)
    shapes = small_workload("llama", 1, 700, formats, queries=3).schedulables
    found = list(check_model(shapes, SYSTEM, 1, 0))
    assert all(item.passed for item in found), [item.report for item in found if not item.passed]
    assert {item.mapping for item in found} == {"hand", "overlapped", "kernel cent", "tuned", "random"}
    assert {item.mapping for item in found if item.report.startswith("not legal")} == {"kernel cent"}


def test_matrices_with_zero_points_beside_their_scales_pass() -> None:
    shapes = small_workload("llama", 1, 700, StoredFormats(NumberFormat.AWQ_INT4)).schedulables
    found = list(check_model(shapes, SYSTEM, 1, 0))
    assert all(item.passed for item in found), [item.report for item in found if not item.passed]
    assert {item.mapping for item in found if item.kernels} >= {"hand", "overlapped", "tuned", "random"}


def test_a_format_that_the_units_do_not_take_is_refused() -> None:
    workload = small_workload("llama", 1, 700, StoredFormats(NumberFormat.INT4))
    with pytest.raises(UserError, match="int4"):
        require_formats(workload, load_device("gddr6-aim-compat"))


def test_a_second_new_token_that_is_not_written_is_caught() -> None:
    schedule = AttentionSchedule(context_segment_columns=8)
    assert check_attention(schedule, BASE, queries=2).passed
    report = check_attention(schedule, BASE, only_the_first_token, queries=2)
    assert not report.passed
    assert "tokens of bf16" in str(report)


def only_the_first_token(name: str, program: Program) -> Program:
    """Keep only the writes of the first new token of every unit."""

    def kept(body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        closes = [index for index, item in enumerate(body) if not isinstance(item, Loop) and item.kind is Kind.PRE]
        if closes:
            return body[: closes[0] + 1]
        return tuple(Loop(item.count, kept(item.body)) if isinstance(item, Loop) else item for item in body)

    return Program(kept(program.body)) if name == "k append" else program


def test_random_schedules_are_legal() -> None:
    shape = AttentionShape("attention", 1, 8, 2, 128, 700)
    found = list(random_legal(shape, SYSTEM, 20, np.random.default_rng(1)))
    assert len(found) == 20
    assert not any(all_reasons(shape, schedule, SYSTEM.pool) for schedule in found)
