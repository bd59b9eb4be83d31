"""Is CENT's mapping ours to emit? Against its published trace, its published cycles, and the device it is meant for.

Cycles: CENT, ASPLOS'25, cent_simulation/simulation_results.csv, pipeline parallel (PIM latency x 2 GHz), which are
those of the public AiM simulator.
"""

import gzip
from functools import cache
from pathlib import Path

import pytest

from autotune.block_replay import BlockCycles, replay_block, whole_trace
from compiler.aim.block import BlockOp, block_shape, placement
from compiler.aim.cent_block import cent_block
from compiler.aim.cent_corrections import ALL_CORRECTIONS, NO_CORRECTIONS, Correction
from compiler.aim.text import trace_text
from configs.device import load_device
from configs.model_config import load_model_config

DEVICE = load_device("gddr6-aim-compat")
TRACE = Path(__file__).parent / "data" / "aim" / "cent_7b_c8_s128.trace.gz"
PUBLISHED = {
    ("llama-2-7b", 8, 128): 425_585,
    ("llama-2-7b", 8, 1024): 498_161,
    ("llama-2-7b", 8, 4096): 762_782,
    ("llama-2-13b", 16, 1024): 376_356,
    ("llama-2-70b", 10, 1024): 1_446_626,
}
BETWEEN = {("llama-2-7b", 8, 256): 435_953, ("llama-2-13b", 16, 128): 332_629, ("llama-2-70b", 10, 256): 1_350_954}


@cache
def block(model: str, channels: int, context: int, corrections: frozenset[Correction]) -> tuple[BlockOp, ...]:
    shape, place = block_shape(load_model_config(model), context), placement(DEVICE, channels)
    return cent_block(shape, place, corrections)


@cache
def cycles(
    model: str, channels: int, context: int, corrections: frozenset[Correction] = ALL_CORRECTIONS
) -> BlockCycles:
    return replay_block(block(model, channels, context, corrections), DEVICE)


def test_without_corrections_the_published_trace_comes_out_line_by_line() -> None:
    text = trace_text(whole_trace(block("llama-2-7b", 8, 128, NO_CORRECTIONS), DEVICE))
    assert text == gzip.decompress(TRACE.read_bytes()).decode()


@pytest.mark.parametrize("case", PUBLISHED)
def test_corrected_block_cycles_are_within_one_percent(case: tuple[str, int, int]) -> None:
    found, published = cycles(*case).total, PUBLISHED[case]
    print(f"{case}: {found:,} against {published:,}, {found / published - 1:+.3%}")
    assert abs(found / published - 1) < 0.01


@pytest.mark.parametrize("case", [("llama-2-7b", 8, 1024), *BETWEEN])
def test_without_corrections_the_published_cycles_come_out_exactly(case: tuple[str, int, int]) -> None:
    assert cycles(*case, NO_CORRECTIONS).total == {**PUBLISHED, **BETWEEN}[case]


def test_operators_add_up_to_the_block() -> None:
    found = cycles("llama-2-7b", 8, 128)
    assert sum(found.by_op.values()) == found.total


def test_cycles_grow_with_the_context() -> None:
    contexts = (1, 128, 129, 1024, 1025, 2048, 4096)
    found = [cycles("llama-2-7b", 8, context).total for context in contexts]
    assert found == sorted(found)
    by_step = [cycles("llama-2-7b", 8, context).total for context in (1024, 2048, 4096)]
    slopes = [(by_step[1] - by_step[0]) / 1024, (by_step[2] - by_step[1]) / 2048]
    assert slopes[0] == pytest.approx(slopes[1], rel=0.01)
