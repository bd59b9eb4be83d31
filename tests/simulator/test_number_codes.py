"""Are the elements of every number format those of its definition, and is rounding to them to nearest even?"""

import numpy as np
import pytest
import torch

from configs.number_format import CACHE_STORAGE, STORAGE, NumberFormat, accesses_per_column, stored_bytes
from simulator.number_codes import elements, quantise, round_to_elements, round_to_scale

NARROW = [item for item in NumberFormat if STORAGE[item].bits < 16]


def test_every_format_has_the_elements_of_its_definition() -> None:
    counts = {item: len(elements(item)) for item in NARROW}
    assert counts[NumberFormat.INT8] == 255  # -127..127
    assert counts[NumberFormat.INT4] == 15
    assert counts[NumberFormat.FP8] == 253  # 256 codes less two NaN and a second zero
    assert elements(NumberFormat.MXFP4).tolist() == [
        -6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6,
    ]  # fmt: skip


def test_fp8_rounds_like_torch_ties_included() -> None:
    grid = elements(NumberFormat.FP8)
    ties = (grid[1:] + grid[:-1]) / 2
    values = np.concatenate([grid, ties, np.nextafter(ties, np.float32(9999)), np.nextafter(ties, np.float32(-9999))])
    expected = torch.tensor(values).to(torch.float8_e4m3fn).to(torch.float32).numpy()
    assert np.array_equal(round_to_elements(values, NumberFormat.FP8), expected)


def test_fp4_ties_go_to_the_even_code() -> None:
    values = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, -0.25, -2.5, 100.0], dtype=np.float32)
    assert round_to_elements(values, NumberFormat.NVFP4).tolist() == [0, 1, 1, 2, 2, 4, 4, 0, -2, 6]


def test_sixteen_bit_formats_round_like_torch() -> None:
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32) * 100
    for number_format, dtype in ((NumberFormat.BF16, torch.bfloat16), (NumberFormat.FP16, torch.float16)):
        expected = torch.tensor(values).to(dtype).to(torch.float32).numpy()
        assert np.array_equal(round_to_elements(values, number_format), expected)


@pytest.mark.parametrize("number_format", NumberFormat)
def test_quantising_keeps_every_value_within_half_a_step_of_its_block(number_format: NumberFormat) -> None:
    storage = STORAGE[number_format]
    values = np.random.default_rng(1).standard_normal((7, 300)).astype(np.float32)
    found = quantise(values, number_format, storage)
    error = np.abs(found.dequantised(storage.group) - values).max() / np.abs(values).max()
    widest = {16: 2.0**-8, 8: 2.0**-4, 4: 1 / 4}[storage.bits]
    assert error <= widest
    if storage.bits < 16:
        assert set(np.unique(found.elements)) <= set(elements(number_format).tolist())


def test_quantising_what_is_on_the_grid_changes_nothing() -> None:
    values = np.array([[-127.0, 3.0, 127.0], [0.0, 0.0, 0.0]], dtype=np.float32)
    found = quantise(values, NumberFormat.INT8, STORAGE[NumberFormat.INT8])
    assert np.array_equal(found.dequantised(0), values)


def test_scales_are_of_their_own_formats_and_cut_nothing_off() -> None:
    wanted = np.array([0.3, 1.0, 5.1], dtype=np.float32)
    assert round_to_scale(wanted, NumberFormat.MXFP4).tolist() == [0.5, 1.0, 8.0]
    for number_format in (NumberFormat.NVFP4, NumberFormat.INT4):
        assert (round_to_scale(wanted, number_format) >= wanted).all()
    assert set(round_to_scale(wanted, NumberFormat.NVFP4)) <= set(elements(NumberFormat.FP8))


def test_bytes_count_the_scales_that_lie_beside_values() -> None:
    assert stored_bytes(10, 256, STORAGE[NumberFormat.BF16]) == 10 * 512
    assert stored_bytes(10, 256, STORAGE[NumberFormat.INT8]) == 10 * 256
    assert stored_bytes(10, 256, STORAGE[NumberFormat.INT4]) == 10 * (128 + 2 * 2)
    assert stored_bytes(10, 256, STORAGE[NumberFormat.MXFP4]) == 10 * (128 + 8)
    assert stored_bytes(10, 256, STORAGE[NumberFormat.NVFP4]) == 10 * (128 + 16)
    assert stored_bytes(10, 256, STORAGE[NumberFormat.FP8_BLOCK]) == 10 * (256 + 2 * 4)


def test_a_column_holds_more_accesses_of_narrower_values() -> None:
    assert [accesses_per_column(STORAGE[item]) for item in NumberFormat] == [1, 1, 2, 2, 2, 4, 4, 4]
    assert set(CACHE_STORAGE) < set(NumberFormat)
