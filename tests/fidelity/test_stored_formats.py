"""Are stored formats read, and made, bit for bit as the libraries that define them do?

Files in `data/formats` are what those libraries gave once (`record_formats` made them); torch, ml_dtypes and
transformers are asked directly.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from compiler.checkpoint.cache import code_cache
from compiler.checkpoint.floats import decode_fp8, decode_mxfp4, decode_nvfp4, e8m0_values
from compiler.checkpoint.integers import decode_awq, decode_gptq, decode_int8, decode_packed
from compiler.checkpoint.matrix import DecodedMatrix
from compiler.checkpoint.packing import pack_bytes
from compiler.checkpoint.quantisers import quantise
from configs.number_format import NumberFormat
from simulator.number_codes import code_values, round_to_elements
from tests.recorded_arrays import read_arrays

DATA = Path(__file__).parent / "data" / "formats"
RANDOM = np.random.default_rng(3)
EVERY_BYTE = np.arange(256, dtype=np.uint8)


def test_int8_is_what_torch_multiplies_with() -> None:
    weight = RANDOM.integers(-128, 128, (24, 48)).astype(np.int8)
    scale = RANDOM.standard_normal(24).astype(np.float32)
    expected = torch._weight_int8pack_mm(torch.eye(48), torch.tensor(weight), torch.tensor(scale)).T
    assert np.array_equal(decode_int8(weight, scale).values_float32(), expected.numpy())


def test_int8_of_ours_gives_what_torch_multiplies_with() -> None:
    found = quantise(RANDOM.standard_normal((24, 48)).astype(np.float32), NumberFormat.INT8)
    codes, scale = torch.tensor(found.elements.astype(np.int8)), torch.tensor(found.scales[:, 0])
    assert np.array_equal(found.values_float32(), torch._weight_int8pack_mm(torch.eye(48), codes, scale).T.numpy())


def test_awq_is_what_autoawq_packs_and_reads() -> None:
    kept = read_arrays(DATA / "autoawq.json")
    found = decode_awq(kept["qweight"], kept["qzeros"], kept["scales"], 32)
    assert np.array_equal(found.values_float32(), kept["values"].T)


def test_gptq_with_act_order_and_a_zero_point_of_sixteen_is_what_auto_gptq_packs_and_reads() -> None:
    kept = read_arrays(DATA / "auto_gptq.json")
    found = decode_gptq(kept["qweight"], kept["qzeros"], kept["scales"], kept["g_idx"], 1, 32)
    assert found.elements.min() == -16
    assert np.array_equal(found.values_float32(), kept["values"].T)


def test_the_second_version_of_gptq_differs_by_the_zero_points_that_are_stored() -> None:
    kept = read_arrays(DATA / "auto_gptq.json")
    first = decode_gptq(kept["qweight"], kept["qzeros"], kept["scales"], kept["g_idx"], 1, 32)
    second = decode_gptq(kept["qweight"], kept["qzeros"], kept["scales"], kept["g_idx"], 0, 32)
    assert np.array_equal(second.values() - first.values(), first.scale_of_each())


def test_packed_int4_with_zero_points_is_what_compressed_tensors_reads() -> None:
    kept = read_arrays(DATA / "compressed_tensors.json")
    shape = kept["int4_values"].shape
    found = decode_packed(kept["int4_packed"], kept["int4_scales"], kept["int4_zeros"], (shape[0], shape[1]), 32)
    assert np.array_equal(found.values_float32(), kept["int4_values"])


def test_nvfp4_is_what_compressed_tensors_reads() -> None:
    kept = read_arrays(DATA / "compressed_tensors.json")
    found = decode_nvfp4(kept["nvfp4_packed"], kept["nvfp4_scales"], 1 / kept["nvfp4_divisor"].item())
    assert np.array_equal(found.values_float32(), kept["nvfp4_values"])


def test_mxfp4_is_what_torchao_makes() -> None:
    kept = read_arrays(DATA / "torchao.json")
    found = quantise(kept["values"], NumberFormat.MXFP4)
    assert_same_matrix(found, decode_mxfp4(kept["mxfp4_codes"], kept["mxfp4_scales"]))


def test_nvfp4_is_what_torchao_makes() -> None:
    kept = read_arrays(DATA / "torchao.json")
    found = quantise(kept["values"], NumberFormat.NVFP4)
    tensor_scale = kept["nvfp4_tensor_scale"].item()
    assert_same_matrix(found, decode_nvfp4(kept["nvfp4_codes"], kept["nvfp4_scales"], tensor_scale))


def assert_same_matrix(found: DecodedMatrix, expected: DecodedMatrix) -> None:
    """Ask for the same elements and scales; a zero has no sign."""
    assert np.array_equal(found.scales, expected.scales)
    assert np.array_equal(found.elements, expected.elements)
    assert found.tensor_scale == expected.tensor_scale


def test_int4_caches_are_what_quanto_makes_and_reads() -> None:
    kept = read_arrays(DATA / "quanto.json")
    heads, tokens, width = kept["values"].shape
    recent = np.zeros((heads, 128, width), dtype=np.float32)
    found = code_cache(np.concatenate([kept["values"], recent], axis=1), NumberFormat.INT4)
    assert np.array_equal(found.values()[:, :tokens], kept["read_back"])


def test_mxfp4_blocks_are_what_transformers_reads() -> None:
    mxfp4 = pytest.importorskip("transformers.integrations.mxfp4")
    blocks = RANDOM.integers(0, 256, (2, 6, 3, 16)).astype(np.uint8)  # experts, outputs, groups, bytes
    scales = RANDOM.integers(110, 140, (2, 6, 3)).astype(np.uint8)
    expected = mxfp4.convert_moe_packed_tensors(torch.tensor(blocks), torch.tensor(scales), dtype=torch.float32)
    for expert in range(2):
        found = decode_mxfp4(blocks[expert].reshape(6, -1), scales[expert]).values_float32()
        assert np.array_equal(found.T, expected[expert].numpy())


@pytest.mark.parametrize("scale_type", ["float32", "e8m0"])
def test_fp8_blocks_are_what_transformers_reads(scale_type: str) -> None:
    finegrained = pytest.importorskip("transformers.integrations.finegrained_fp8")
    codes = RANDOM.integers(0, 0x7F, (256, 384)).astype(np.uint8)
    scales = torch.tensor(RANDOM.random((2, 3)).astype(np.float32))
    if scale_type == "e8m0":
        scales = scales.to(torch.float8_e8m0fnu)
    weight = torch.tensor(codes).view(torch.float8_e4m3fn)
    expected = finegrained.Fp8Dequantize(None)._dequantize_one(weight, scales, torch.float32)
    found = decode_fp8(codes, scales.to(torch.float32).numpy(), (128, 128))
    assert np.array_equal(found.values_float32(), expected.numpy())


def test_e8m0_codes_are_what_torch_and_ml_dtypes_read() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    found = e8m0_values(EVERY_BYTE)
    expected = torch.tensor(EVERY_BYTE).view(torch.float8_e8m0fnu).to(torch.float32).numpy()
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(found, EVERY_BYTE.view(ml_dtypes.float8_e8m0fnu).astype(np.float32), equal_nan=True)


def test_e4m3_and_e2m1_codes_are_what_ml_dtypes_reads() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    eight = EVERY_BYTE.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    four = EVERY_BYTE[:16].view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert np.array_equal(code_values(NumberFormat.FP8), eight, equal_nan=True)
    assert np.array_equal(code_values(NumberFormat.MXFP4), four)


def test_rounding_to_e2m1_is_that_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.concatenate([np.arange(-32, 33, dtype=np.float32) / 8, RANDOM.standard_normal(999).astype(np.float32)])
    expected = values.astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert np.array_equal(round_to_elements(values, NumberFormat.NVFP4), expected)


def test_fp8_of_ours_is_what_torch_casts_to() -> None:
    values = RANDOM.standard_normal((40, 70)).astype(np.float32) * 1e5
    found = quantise(values, NumberFormat.FP8)
    scaled = torch.tensor(values) / (torch.tensor(values).abs().max() / 448)
    assert np.array_equal(found.elements, scaled.to(torch.float8_e4m3fn).to(torch.float32).numpy())


def test_fp8_beyond_its_range_saturates_as_torch_has_it_and_ml_dtypes_does_not() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([449.0, 464.0, 465.0, -1e9], dtype=np.float32)
    found = round_to_elements(values, NumberFormat.FP8)
    assert found.tolist() == [448, 448, 448, -448]
    assert torch.tensor(values[:2]).to(torch.float8_e4m3fn).to(torch.float32).tolist() == [448, 448]
    assert np.isnan(values.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)).tolist() == [False, False, True, True]


def test_nan_codes_of_a_checkpoint_stay_nan() -> None:
    eight = decode_fp8(np.array([[0x7F, 0xFF, 0x38]], dtype=np.uint8), np.ones((1, 1), dtype=np.float32), (0, 0))
    four = decode_mxfp4(np.zeros((1, 16), dtype=np.uint8), np.array([[255]], dtype=np.uint8))
    assert np.isnan(eight.values()).tolist() == [[True, True, False]]
    assert np.isnan(four.values()).all()


def test_the_low_half_of_a_byte_is_the_even_element() -> None:
    packed = pack_bytes(np.array([[1, 15, 2, 0]], dtype=np.uint8))
    assert packed.tolist() == [[0xF1, 0x02]]
    found = decode_mxfp4(np.repeat(packed, 8, axis=1), np.array([[127]], dtype=np.uint8))
    assert found.elements[0, ::8].tolist() == [0.5, 0.5, 1.0, 1.0]
