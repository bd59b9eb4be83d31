"""Are quantisation settings of checkpoints read to what they mean, and everything else refused by name?"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from configs.errors import UserError
from configs.json_fields import JsonFields
from configs.number_format import STORAGE, NumberFormat
from configs.quantization import Method, Quantization, load_quantization, quantization_of

AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": True, "damp_percent": 0.1}
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
BLOCKS = {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [64, 128]}
MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"], "producer": {"name": "modelopt"}}


def read(settings: dict[str, Any]) -> Quantization:
    found = quantization_of(JsonFields("config.json", {"quantization_config": settings}))
    assert found is not None
    return found


def compressed(weights: dict[str, Any], **more: Any) -> dict[str, Any]:
    group = {
        "weights": {"dynamic": False, "symmetric": True} | weights,
        "targets": ["Linear"],
        "input_activations": None,
    }
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ["lm_head"]} | more


def test_an_unquantised_model_has_none() -> None:
    assert quantization_of(JsonFields("config.json", {"model_type": "llama"})) is None
    assert quantization_of(JsonFields("config.json", {"quantization_config": None})) is None


def test_awq() -> None:
    assert read(AWQ | {"modules_to_not_convert": ["gate"]}) == Quantization(
        Method.AWQ, NumberFormat.AWQ_INT4, (1, 128), zero_points=True, symmetric=False, not_converted=("gate",)
    )


@pytest.mark.parametrize(
    ("label", "offset"),
    [({}, 1), ({"checkpoint_format": "gptq"}, 1), ({"checkpoint_format": "gptq_v2"}, 0), ({"format": "gptq_v2"}, 0)],
)
def test_gptq_has_two_versions(label: dict[str, str], offset: int) -> None:
    found = read(GPTQ | label)
    assert (found.weights, found.zero_offset, found.symmetric) == (NumberFormat.GPTQ_INT4, offset, True)


def test_a_group_size_of_minus_one_is_the_whole_reduction() -> None:
    found = read(GPTQ | {"group_size": -1})
    assert found.group == 0
    assert found.lowered is None


def test_fp8_is_in_blocks_or_per_tensor() -> None:
    assert read(FP8).block == (128, 128)
    assert read(FP8).lowered is NumberFormat.FP8_BLOCK
    assert read(FP8 | {"scale_fmt": "ue8m0"}).power_of_two_scales
    found = read({"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]})
    assert (found.weights, found.block, found.not_converted) == (NumberFormat.FP8, (0, 0), ("lm_head",))


def test_mxfp4() -> None:
    found = read({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]})
    assert (found.weights, found.block, found.lowered) == (NumberFormat.MXFP4, (1, 32), NumberFormat.MXFP4)


@pytest.mark.parametrize(
    ("algorithm", "weights"),
    [
        ("NVFP4", NumberFormat.NVFP4),
        ("nvfp4", NumberFormat.NVFP4),
        ("FP8", NumberFormat.FP8),
        ("FP8_PB_WO", NumberFormat.FP8_BLOCK),
    ],
)
def test_modelopt_names_its_algorithm(algorithm: str, weights: NumberFormat) -> None:
    found = read(MODELOPT | {"quant_algo": algorithm})
    assert (found.method, found.weights, found.not_converted) == (Method.MODELOPT, weights, ("lm_head",))


def test_modelopt_names_the_cache_in_two_ways() -> None:
    assert read(MODELOPT).cache is None
    assert read(MODELOPT | {"kv_cache_quant_algo": "FP8"}).cache is NumberFormat.FP8
    scheme = {"dynamic": False, "num_bits": 8, "type": "float"}
    assert read(MODELOPT | {"kv_cache_scheme": scheme}).cache is NumberFormat.FP8


def test_the_older_file_of_modelopt_is_found_beside_config_json(tmp_path: Path) -> None:
    inner = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": ["lm_head"]}
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"producer": {}, "quantization": inner}))
    expected = read(MODELOPT | {"kv_cache_quant_algo": "FP8"})
    assert load_quantization(tmp_path) == expected
    assert read({"quant_method": "modelopt", "quantization": inner}) == expected


@pytest.mark.parametrize(
    ("weights", "stored", "block"),
    [
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, NumberFormat.INT8, (1, 0)),
        ({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}, NumberFormat.INT4, (1, 128)),
        ({"num_bits": 4, "group_size": 64, "symmetric": False}, NumberFormat.AWQ_INT4, (1, 64)),
        ({"num_bits": 8, "type": "float", "strategy": "tensor"}, NumberFormat.FP8, (0, 0)),
        ({"num_bits": 8, "type": "float", "strategy": "channel"}, NumberFormat.FP8, (1, 0)),
        (BLOCKS, NumberFormat.FP8_BLOCK, (64, 128)),
        ({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}, NumberFormat.NVFP4, (1, 16)),
        ({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}, NumberFormat.MXFP4, (1, 32)),
    ],
)  # fmt: skip
def test_schemes_of_compressed_tensors(weights: dict[str, Any], stored: NumberFormat, block: tuple[int, int]) -> None:
    found = read(compressed(weights, kv_cache_scheme={"num_bits": 8, "type": "float", "strategy": "tensor"}))
    assert (found.weights, found.block, found.cache) == (stored, block, NumberFormat.FP8)
    assert found.zero_points is (stored is NumberFormat.AWQ_INT4)


def test_bytes_follow_the_group_of_the_file() -> None:
    found = read(AWQ | {"group_size": 32})
    assert found.lowered is None
    assert found.storage == replace(STORAGE[NumberFormat.AWQ_INT4], group=32)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, r'found "bitsandbytes"; .*unquantised checkpoint'),
        ({"quant_method": "hqq"}, r'key .quant_method.: expected one of awq.*found "hqq"'),
        ({"bits": 4}, r"key .quant_method.: .* found none"),
        (AWQ | {"bits": 8}, r"key .bits.: expected 4, found 8"),
        (AWQ | {"bits": True}, r"key .bits.: expected 4, found true"),
        (AWQ | {"version": "gemv"}, r'key .version.: expected "gemm", found "gemv"'),
        (AWQ | {"zero_point": False}, r"key .zero_point.: expected true, found false"),
        (AWQ | {"group_size": 0}, r"key .group_size.: expected an integer"),
        (AWQ | {"rotation": "hadamard"}, r"key .rotation.: expected only settings that are known"),
        (AWQ | {"modules_to_not_convert": "gate"}, r"key .modules_to_not_convert.: expected a list of names"),
        (GPTQ | {"bits": 3}, r"key .bits.: expected 4, found 3"),
        (GPTQ | {"checkpoint_format": "marlin"}, r'key .checkpoint_format.: expected "gptq" or "gptq_v2"'),
        (GPTQ | {"dynamic": {"+:.*": {"bits": 8}}}, r"key .dynamic."),
        (FP8 | {"weight_block_size": [128]}, r"key .weight_block_size.: expected two positive integers"),
        (FP8 | {"expert_dtype": "fp4"}, r'key .expert_dtype.: expected "fp8", found "fp4"'),
        (FP8 | {"fmt": "e5m2"}, r'key .fmt.: expected "e4m3", found "e5m2"'),
        (MODELOPT | {"quant_algo": "MIXED_PRECISION"}, r'key .quant_algo.: expected one of FP8.*"MIXED'),
        (MODELOPT | {"kv_cache_quant_algo": "NVFP4"}, r"key .kv_cache_quant_algo.: .*--kv"),
        (compressed({"num_bits": 2, "type": "int"}), r"key .num_bits.: expected int8 per channel, int4"),
        (compressed({"num_bits": 8, "symmetric": False}), r"key .num_bits."),
        (compressed({"num_bits": 8}, sparsity_config={"format": "sparse-24-bitmask"}), r"key .sparsity_config."),
        (compressed({"num_bits": 8}, kv_cache_scheme={"num_bits": 4}), r"kv_cache_scheme, key .num_bits."),
        ({"quant_method": "compressed-tensors"}, r"key .config_groups.: expected an object, found no such key"),
        ({"quant_method": "compressed-tensors", "config_groups": {}}, r"expected one scheme for all modules"),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(settings)


def test_two_schemes_in_one_checkpoint_are_refused() -> None:
    one, other = compressed({"num_bits": 8}), compressed({"num_bits": 4, "group_size": 128})
    groups = {"a": one["config_groups"]["group_0"], "b": other["config_groups"]["group_0"]}
    with pytest.raises(UserError, match="expected one scheme for all modules"):
        read(one | {"config_groups": groups})
