"""Are the elements of every number format those of its definition, and is rounding to them to nearest even?"""

import numpy as np
import torch

from configs.number_format import CACHE_STORAGE, STORAGE, NumberFormat, accesses_per_column, stored_bytes
from simulator.number_codes import code_values, elements, round_to_elements, round_to_scale

NARROW = [item for item in NumberFormat if STORAGE[item].bits < 16]


def test_every_format_has_the_elements_of_its_definition() -> None:
    counts = {item: len(elements(item)) for item in NARROW}
    assert counts[NumberFormat.INT8] == 255  # -127..127
    assert counts[NumberFormat.INT4] == 15
    assert counts[NumberFormat.AWQ_INT4] == 31  # 0..15 less a zero point of 0..15
    assert counts[NumberFormat.GPTQ_INT4] == 32  # a zero point of up to 16
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


def test_codes_of_fp8_stand_for_what_torch_says() -> None:
    expected = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).to(torch.float32).numpy()
    found = code_values(NumberFormat.FP8)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(expected))


def test_codes_of_fp4_are_sign_and_magnitude() -> None:
    found = code_values(NumberFormat.NVFP4)
    assert found[:8].tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert np.array_equal(found[8:], -found[:8])
    assert np.signbit(found[8])


def test_scales_are_of_their_own_formats_and_cut_nothing_off() -> None:
    wanted = np.array([0.3, 1.0, 5.1], dtype=np.float32)
    assert round_to_scale(wanted, NumberFormat.MXFP4).tolist() == [0.5, 1.0, 8.0]
    for number_format in (NumberFormat.NVFP4, NumberFormat.INT4, NumberFormat.AWQ_INT4):
        assert (round_to_scale(wanted, number_format) >= wanted).all()
    assert set(round_to_scale(wanted, NumberFormat.NVFP4)) <= set(elements(NumberFormat.FP8))


def test_bytes_count_the_scales_that_lie_beside_values() -> None:
    assert stored_bytes(10, 256, STORAGE[NumberFormat.BF16]) == 10 * 512
    assert stored_bytes(10, 256, STORAGE[NumberFormat.INT8]) == 10 * 256
    assert stored_bytes(10, 256, STORAGE[NumberFormat.INT4]) == 10 * (128 + 2 * 2)
    assert stored_bytes(10, 256, STORAGE[NumberFormat.AWQ_INT4]) == 10 * (128 + 2 * 2 + 1)  # two zero points in a byte
    assert stored_bytes(10, 256, STORAGE[NumberFormat.GPTQ_INT4]) == 10 * (128 + 2 * 2 + 1)
    assert stored_bytes(10, 256, STORAGE[NumberFormat.MXFP4]) == 10 * (128 + 8)
    assert stored_bytes(10, 256, STORAGE[NumberFormat.NVFP4]) == 10 * (128 + 16)
    assert stored_bytes(10, 256, STORAGE[NumberFormat.FP8_BLOCK]) == 10 * (256 + 2 * 4)


def test_a_column_holds_more_accesses_of_narrower_values() -> None:
    assert [accesses_per_column(STORAGE[item]) for item in NumberFormat] == [1, 1, 2, 2, 2, 4, 4, 4, 4, 4]
    assert set(CACHE_STORAGE) < set(NumberFormat)
