"""Is a layer of a checkpoint read by what its settings and its tensors say?"""

from pathlib import Path

import numpy as np
import pytest
import torch

from compiler.checkpoint.integers import decode_awq
from compiler.checkpoint.reading import open_checkpoint, read_layer
from configs.errors import UserError
from configs.number_format import NumberFormat
from simulator.number_codes import code_values
from tests.tiny_checkpoints import (
    AWQ,
    FP8,
    GPTQ,
    MXFP4,
    NVFP4,
    awq_layer,
    bytes_of,
    gptq_layer,
    words,
    write_checkpoint,
)

pytest.importorskip("safetensors")


def test_a_plain_layer_is_its_values(tmp_path: Path) -> None:
    weight = torch.randn(4, 6).to(torch.bfloat16)
    checkpoint = open_checkpoint(write_checkpoint(tmp_path, {"q.weight": weight, "norm.weight": weight[0].clone()}))
    assert np.array_equal(read_layer(checkpoint, "q").values(), weight.double().numpy())


def test_an_awq_layer_is_read_from_its_three_tensors(tmp_path: Path) -> None:
    tensors = awq_layer("q", inputs=200)  # the second group is ragged
    checkpoint = open_checkpoint(write_checkpoint(tmp_path, tensors, AWQ | {"group_size": 128}))
    found = read_layer(checkpoint, "q")
    each = found.scale_of_each()
    assert found.elements.shape == (16, 200)
    assert np.array_equal(each[:, :128], np.repeat(tensors["q.scales"].float().numpy()[:1].T, 128, axis=1))
    assert np.array_equal(each[:, 128:], np.repeat(tensors["q.scales"].float().numpy()[1:].T, 72, axis=1))
    assert -15 <= found.elements.min() < found.elements.max() <= 15


@pytest.mark.parametrize(
    ("label", "stored", "symmetric", "zero_point"),
    [
        ("gptq", 7, True, 8),
        ("gptq_v2", 8, True, 8),
        ("gptq", 8, True, 8),  # mislabelled: a symmetric file has 8 throughout
        ("gptq_v2", 7, True, 8),  # and the other way round
        ("gptq", 8, False, 9),  # of asymmetric files the label is all there is
        ("gptq_v2", 8, False, 8),
        ("gptq", 15, False, 16),
    ],
)
def test_zero_points_of_gptq_follow_the_label_unless_the_file_shows_better(
    tmp_path: Path, label: str, stored: int, symmetric: bool, zero_point: int
) -> None:
    settings = GPTQ | {"checkpoint_format": label, "sym": symmetric}
    checkpoint = open_checkpoint(write_checkpoint(tmp_path, gptq_layer("q", stored), settings))
    assert read_layer(checkpoint, "q").elements.min() == -zero_point


def test_act_order_takes_each_input_from_its_own_group(tmp_path: Path) -> None:
    tensors = gptq_layer("q", 7)
    in_order = read_layer(open_checkpoint(write_checkpoint(tmp_path, tensors, GPTQ)), "q")
    tensors["q.g_idx"] = tensors["q.g_idx"].flip(0)
    shuffled = read_layer(open_checkpoint(write_checkpoint(tmp_path, tensors, GPTQ)), "q")
    assert np.array_equal(shuffled.elements, in_order.elements)
    assert np.array_equal(shuffled.scale_of_each(), in_order.scale_of_each()[:, ::-1])


def test_on_a_device_inputs_stand_in_the_order_of_their_groups(tmp_path: Path) -> None:
    tensors = gptq_layer("q", 7)
    tensors["q.g_idx"] = torch.arange(256).int() % 2
    matrix = read_layer(open_checkpoint(write_checkpoint(tmp_path, tensors, GPTQ)), "q")
    order = np.concatenate([np.arange(0, 256, 2), np.arange(1, 256, 2)])
    assert np.array_equal(matrix.on_device().dequantised(128), matrix.values()[:, order])


@pytest.mark.parametrize(
    "scale", [torch.tensor(0.5), torch.tensor([0.5]), torch.full((8, 1), 0.5), torch.full((8,), 0.5)]
)
def test_fp8_scales_of_a_tensor_and_of_outputs_are_told_by_their_shape(tmp_path: Path, scale: torch.Tensor) -> None:
    codes = bytes_of(8, 24)
    tensors = {"q.weight": codes.view(torch.float8_e4m3fn), "q.weight_scale": scale}
    settings = {"quant_method": "fp8", "activation_scheme": "static"}
    matrix = read_layer(open_checkpoint(write_checkpoint(tmp_path, tensors, settings)), "q")
    assert np.array_equal(matrix.values(), code_values(NumberFormat.FP8)[codes.numpy()] * np.float64(0.5))
    assert np.array_equal(matrix.on_device().dequantised(0), matrix.values())


@pytest.mark.parametrize("exponents", [False, True])
def test_fp8_blocks_may_be_ragged_and_their_scales_powers_of_two(tmp_path: Path, exponents: bool) -> None:
    scales = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    tensors = {"q.weight": bytes_of(130, 300).view(torch.float8_e4m3fn)}
    tensors["q.weight_scale_inv"] = scales.to(torch.float8_e8m0fnu) if exponents else scales
    settings = FP8 | ({"scale_fmt": "ue8m0"} if exponents else {})
    matrix = read_layer(open_checkpoint(write_checkpoint(tmp_path, tensors, settings)), "q")
    each = matrix.scale_of_each()
    assert [each[0, 0], each[0, 299], each[129, 127], each[129, 299]] == [1, 4, 8, 32]
    assert np.array_equal(matrix.on_device().dequantised(128), matrix.values())


def test_one_expert_of_mxfp4_blocks_is_read_at_a_time(tmp_path: Path) -> None:
    name = "model.layers.0.mlp.experts.down_proj"
    tensors = {f"{name}_blocks": bytes_of(3, 4, 2, 16, most=256), f"{name}_scales": bytes_of(3, 4, 2) + 60}
    checkpoint = open_checkpoint(write_checkpoint(tmp_path, tensors, MXFP4))
    matrices = [read_layer(checkpoint, name, expert) for expert in range(3)]
    assert {matrix.elements.shape for matrix in matrices} == {(4, 64)}
    assert not np.array_equal(matrices[0].values(), matrices[1].values())


def test_nvfp4_of_modelopt_multiplies_both_scales(tmp_path: Path) -> None:
    tensors = {
        "q.weight": bytes_of(4, 16),
        "q.weight_scale": bytes_of(4, 2).view(torch.float8_e4m3fn),
        "q.weight_scale_2": torch.tensor(0.125),
        "q.input_scale": torch.tensor(3.0),
    }
    matrix = read_layer(open_checkpoint(write_checkpoint(tmp_path, tensors, NVFP4)), "q")
    scales = code_values(NumberFormat.FP8)[tensors["q.weight_scale"].view(torch.uint8).numpy()]
    assert np.array_equal(matrix.values(), matrix.elements * np.repeat(scales, 16, axis=1) * np.float64(0.125))
    assert np.array_equal(matrix.on_device().dequantised(16), matrix.values())


def test_tensors_that_do_not_fit_together_are_named(tmp_path: Path) -> None:
    tensors = awq_layer("q")
    tensors["q.scales"] = tensors["q.scales"][:1].clone()
    checkpoint = open_checkpoint(write_checkpoint(tmp_path, tensors, AWQ))
    with pytest.raises(UserError, match=r"tensor q.scales: expected shape \[2, 16\], found \[1, 16\]"):
        read_layer(checkpoint, "q")


def test_packed_int4_is_read_up_to_its_own_width(tmp_path: Path) -> None:
    tensors = {
        "q.weight_packed": words(8, 25),
        "q.weight_scale": torch.rand(8, 2).to(torch.bfloat16),
        "q.weight_shape": torch.tensor([8, 198]),
    }
    group = {"weights": {"num_bits": 4, "type": "int", "group_size": 128, "symmetric": True}, "targets": ["Linear"]}
    settings = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "format": "pack-quantized"}
    matrix = read_layer(open_checkpoint(write_checkpoint(tmp_path, tensors, settings)), "q")
    assert matrix.elements.shape == (8, 198)
    assert -8 <= matrix.elements.min() < matrix.elements.max() <= 7
    assert matrix.block == (1, 128)


def test_what_is_no_matrix_is_refused(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_checkpoint(tmp_path, {"norm.weight": torch.ones(3)}))
    with pytest.raises(UserError, match=r"tensor norm.weight: expected a matrix, found shape \[3\]"):
        read_layer(checkpoint, "norm")


def test_settings_of_another_checkpoint_are_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, awq_layer("q"), FP8)
    with pytest.raises(UserError, match=r"tensors of q: expected a layout of fp8, found .*.qweight I32"):
        open_checkpoint(folder)


def test_a_name_that_is_not_there_gets_one_that_is(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_checkpoint(tmp_path, awq_layer("layers.0.q"), AWQ))
    with pytest.raises(UserError, match=r"found 'q'; use one such as layers.0.q"):
        read_layer(checkpoint, "q")


def test_the_order_of_awq_is_that_of_the_words() -> None:
    codes = sum(nibble << (4 * nibble) for nibble in range(8))  # nibble i is i
    packed = np.array([[codes]], dtype=np.uint32).view(np.int32)
    found = decode_awq(packed, np.zeros((1, 1), dtype=np.int32), np.ones((1, 8), dtype=np.float32), 1)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    assert [found.elements[output, 0] for output in order] == list(range(8))
