"""Is the space of an operator on a small device exactly the schedules that were looked at, simplest first?"""

from dataclasses import replace
from pathlib import Path

from autotune.tuning import legal_schedules
from compiler.attention import AttentionShape
from compiler.linear import LinearShape
from compiler.lowering import System
from compiler.schedule import schedule_text
from configs.device import load_device
from configs.knobs import base_knobs
from configs.number_format import NumberFormat
from simulator.laws.device import scaled_device
from tests.conftest import Golden

BASE = load_device("gddr6-aim")
KNOBS = replace(base_knobs(BASE), channels=8, row_bytes=1024, global_buffer_bytes=1024)
SMALL = System(scaled_device(BASE, KNOBS), 1)
HERE = Path(__file__).parent


def test_the_space_of_a_small_linear_operator(golden: Golden) -> None:
    shape = LinearShape("linear", (96,), 160, 3, weights=NumberFormat.INT4)
    restrictions = {"*.place": ("pim",), "*.registers": (32, 8), "*.preactivate": (1,)}
    found = [schedule_text(schedule) for schedule in legal_schedules(shape, SMALL, restrictions)]
    assert len(set(found)) == len(found)
    golden.check(HERE / "linear.space", "\n".join(found) + "\n")


def test_the_space_of_a_small_attention_operator(golden: Golden) -> None:
    shape = AttentionShape("attention", 1, 6, 2, 128, 3)
    restrictions = {"*.place": ("pim",), "*.registers": (32,), "*.preactivate": (1,), "*.token_blocks": (1,)}
    found = [schedule_text(schedule) for schedule in legal_schedules(shape, SMALL, restrictions)]
    assert len(set(found)) == len(found)
    golden.check(HERE / "attention.space", "\n".join(found) + "\n")
