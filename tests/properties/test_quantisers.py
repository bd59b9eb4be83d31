"""Is every stored value the nearest that its format and scale allow, whatever the shape and size of the matrix?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from compiler.checkpoint.cache import code_cache, coded_tokens
from compiler.checkpoint.matrix import DecodedMatrix
from compiler.checkpoint.packing import AWQ_ORDER, IN_ORDER, pack_bytes, pack_words, unpack_bytes, unpack_words
from compiler.checkpoint.quantisers import quantise
from configs.errors import UserError
from configs.number_format import CACHE_STORAGE, STORAGE, NumberFormat
from simulator.number_codes import elements

NARROW = [item for item in NumberFormat if STORAGE[item].bits < 16]
WITH_ZERO_POINTS = (NumberFormat.AWQ_INT4, NumberFormat.GPTQ_INT4)
Values = NDArray[np.float32]


@st.composite
def matrices(draw: st.DrawFn, least: int = -149, most: int = 125) -> Values:
    """Draw a matrix of any shape and size of values: subnormal, huge, and with zeros, whole blocks of them too."""
    rows, columns = draw(st.integers(1, 140)), draw(st.integers(1, 300))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    low = draw(st.integers(least, most))
    high = draw(st.integers(low, min(low + draw(st.sampled_from([0, 3, 40])), most)))
    exponents = random.integers(low, high + 1, (rows, -(-columns // 16))).repeat(16, axis=1)[:, :columns]
    values = np.ldexp(random.uniform(-2, 2, (rows, columns)), exponents).astype(np.float32)
    values[random.random(values.shape) < draw(st.sampled_from([0, 0.3, 1]))] = 0
    return values


def steps_off(values: Values, found: DecodedMatrix, number_format: NumberFormat) -> NDArray[np.bool_]:
    """Return where another element of the format would be nearer, by more than the rounding of a fp32 quotient."""
    scales = found.scale_of_each().astype(np.float64) * found.tensor_scale
    wanted = values / scales
    grid = elements(number_format).astype(np.float64)
    above = np.clip(np.searchsorted(grid, wanted), 1, len(grid) - 1)
    nearest = np.minimum(np.abs(grid[above] - wanted), np.abs(grid[above - 1] - wanted))
    return np.abs(found.elements - wanted) > nearest + np.abs(wanted) * 2.0**-22


@pytest.mark.parametrize("number_format", [item for item in NARROW if item not in WITH_ZERO_POINTS])
@settings(max_examples=30, deadline=None)
@given(values=matrices())
def test_no_other_element_is_nearer(number_format: NumberFormat, values: Values) -> None:
    found = quantise(values, number_format)
    assert not steps_off(values, found, number_format).any()
    assert set(np.unique(found.elements)) <= set(elements(number_format).tolist())
    assert np.isfinite(found.values()).all()


@pytest.mark.parametrize("number_format", WITH_ZERO_POINTS)
@settings(max_examples=30, deadline=None)
@given(values=matrices(-9, 12))
def test_values_with_zero_points_are_within_half_a_step(number_format: NumberFormat, values: Values) -> None:
    found = quantise(values, number_format)
    # A scale rounded to fp16 is off by 2^-11 and spans 15 steps.
    assert (np.abs(found.values() - values) <= 0.51 * found.scale_of_each()).all()


@pytest.mark.parametrize("number_format", WITH_ZERO_POINTS)
@settings(max_examples=20, deadline=None)
@given(values=matrices())
def test_codes_of_a_group_are_sixteen_in_a_row(number_format: NumberFormat, values: Values) -> None:
    found = quantise(values, number_format)
    for start in range(0, values.shape[1], 128):
        group = found.elements[:, start : start + 128]
        assert (group.max(axis=1) - group.min(axis=1) <= 15).all()
    assert np.isfinite(found.scales).all()
    assert (found.scales > 0).all()
    assert (found.values()[values == 0] == 0).all()


@pytest.mark.parametrize("number_format", NumberFormat)
@settings(max_examples=20, deadline=None)
@given(values=matrices(-40, 15))
def test_a_device_holds_the_same_values(number_format: NumberFormat, values: Values) -> None:
    found = quantise(values, number_format)
    device = found.on_device()
    group = found.block[1] if device.scales.size else 0
    assert np.array_equal(device.dequantised(group), found.values())


@pytest.mark.parametrize("number_format", NARROW)
@settings(max_examples=20, deadline=None)
@given(values=matrices(-3, 3))
def test_values_that_are_stored_exactly_are_stored_so_again(number_format: NumberFormat, values: Values) -> None:
    once = quantise(values, number_format)
    again = quantise(once.values_float32(), number_format)
    assert (np.abs(again.values() - once.values()) <= again.scale_of_each() * again.tensor_scale).all()


@pytest.mark.parametrize("number_format", NumberFormat)
def test_zeros_stay_zeros(number_format: NumberFormat) -> None:
    assert not quantise(np.zeros((3, 37), dtype=np.float32), number_format).values().any()


@pytest.mark.parametrize("number_format", NumberFormat)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(number_format: NumberFormat, bad: float) -> None:
    with pytest.raises(UserError, match="expected finite values"):
        quantise(np.array([[1.0, bad]], dtype=np.float32), number_format)


def test_ties_go_to_the_even_code() -> None:
    ties = np.array([[0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0]], dtype=np.float32)
    assert quantise(ties, NumberFormat.MXFP4).elements.tolist() == [[0, 1, 1, 2, 2, 4, 4, 6]]
    whole = np.array([[0.5, 1.5, 2.5, 127.0]], dtype=np.float32)
    assert quantise(whole, NumberFormat.INT8).elements.tolist() == [[0, 2, 2, 127]]


def test_mxfp4_cuts_off_what_its_power_of_two_does_not_reach() -> None:
    found = quantise(np.array([[7.9, 1.0]], dtype=np.float32), NumberFormat.MXFP4)
    assert found.scales.tolist() == [[1.0]]
    assert found.values().tolist() == [[6.0, 1.0]]


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 1000), st.sampled_from([0, 1]), st.booleans())
def test_words_hold_what_was_packed(rows: int, eights: int, seed: int, axis: int, awq: bool) -> None:
    codes = np.random.default_rng(seed).integers(0, 16, (rows * 8, eights * 8)).astype(np.uint8)
    order = AWQ_ORDER if awq else IN_ORDER
    assert np.array_equal(unpack_words(pack_words(codes, axis, order), axis, order), codes)
    assert np.array_equal(unpack_bytes(pack_bytes(codes)), codes)


@pytest.mark.parametrize("number_format", CACHE_STORAGE)
@settings(max_examples=20, deadline=None)
@given(heads=st.integers(1, 3), tokens=st.integers(1, 300), width=st.integers(1, 140), seed=st.integers(0, 1000))
def test_a_cache_is_as_near_as_its_format_allows(
    number_format: NumberFormat, heads: int, tokens: int, width: int, seed: int
) -> None:
    values = np.random.default_rng(seed).standard_normal((heads, tokens, width)).astype(np.float32)
    found = code_cache(values, number_format).values()
    step = {"bf16": 2.0**-8, "fp16": 2.0**-11, "int8": 1 / 250, "fp8": 2.0**-4, "int4": 1 / 25}[number_format]
    reach = np.abs(values).max()
    assert np.abs(found - values).max() <= 2 * step * reach
    old = coded_tokens(number_format, tokens)
    assert np.abs(found - values)[:, old:].max(initial=0) <= 2.0**-8 * reach


def test_a_cache_of_equal_values_is_exact() -> None:
    values = np.full((1, 200, 64), 0.75, dtype=np.float32)
    for number_format in (NumberFormat.INT4, NumberFormat.INT8, NumberFormat.FP8):
        assert np.array_equal(code_cache(values, number_format).values(), values)


def test_an_fp8_cache_saturates_at_448_times_its_scale() -> None:
    values = np.array([[[1000.0, -1000.0, 1.0]]], dtype=np.float32)
    assert code_cache(values, NumberFormat.FP8).values().tolist() == [[[448, -448, 1]]]
    assert code_cache(values, NumberFormat.FP8, 4.0).values().tolist() == [[[1024, -1024, 1]]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -3e38])
def test_a_cache_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(UserError, match="expected finite values"):
        code_cache(np.full((1, 1, 1), bad, dtype=np.float32), NumberFormat.INT4)


def test_a_format_that_caches_do_not_have_is_refused() -> None:
    with pytest.raises(UserError, match=r"KV cache: expected .* found mxfp4"):
        code_cache(np.zeros((1, 1, 1), dtype=np.float32), NumberFormat.MXFP4)
