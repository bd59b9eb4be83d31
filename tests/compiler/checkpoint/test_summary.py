"""Does the summary of a checkpoint count every byte once, and say what it is for?"""

from pathlib import Path

import pytest
import torch

from compiler.checkpoint.listing import list_tensors
from compiler.checkpoint.part_bytes import PartBytes, cache_bytes, weight_bytes
from compiler.checkpoint.summary import FormatRow, stored_summary
from configs.errors import UserError
from configs.number_format import CACHE_STORAGE, STORAGE, NumberFormat, stored_bytes
from tests.tiny_checkpoints import AWQ, GPTQ, MXFP4, NVFP4, awq_layer, bytes_of, gptq_layer, write_checkpoint

pytest.importorskip("safetensors")
PLAIN = {"model.embed_tokens.weight": torch.zeros(10, 4).to(torch.bfloat16), "model.norm.weight": torch.zeros(4)}


def test_scales_and_zero_points_are_counted_apart(tmp_path: Path) -> None:
    found = stored_summary(write_checkpoint(tmp_path, PLAIN | awq_layer("q") | awq_layer("k"), AWQ))
    assert found.rows == (
        FormatRow("awq-int4", 2, PartBytes(2 * 256 * 16 // 2, 2 * 2 * 16 * 2, 2 * 2 * 16 // 2)),
        FormatRow("bf16", 1, PartBytes(80)),
        FormatRow("f32", 1, PartBytes(16)),
    )


def test_the_order_of_inputs_is_counted_too(tmp_path: Path) -> None:
    found = stored_summary(write_checkpoint(tmp_path, gptq_layer("q", 7), GPTQ))
    assert found.rows == (FormatRow("gptq-int4", 1, PartBytes(2048, 64, 16, 256 * 4)),)


def test_every_byte_is_counted_once(tmp_path: Path) -> None:
    tensors = PLAIN | {
        "q.weight": bytes_of(4, 16),
        "q.weight_scale": bytes_of(4, 2).view(torch.float8_e4m3fn),
        "q.weight_scale_2": torch.tensor(0.125),
        "q.input_scale": torch.tensor(3.0),
        "attention.k_scale": torch.tensor(3.0),
    }
    folder = write_checkpoint(tmp_path, tensors, NVFP4, shards=3)
    found = stored_summary(folder)
    assert found.parts.total == sum(tensor.stored_bytes for tensor in list_tensors(folder).values())
    assert FormatRow("nvfp4", 1, PartBytes(64, 8 + 4, 0, 4)) in found.rows
    assert FormatRow("scales at run time", 1, PartBytes(other=4)) in found.rows
    assert found.quantization is not None
    assert found.quantization.cache is NumberFormat.FP8


def test_the_matrices_of_all_experts_are_counted(tmp_path: Path) -> None:
    tensors = {"e.up_blocks": bytes_of(3, 4, 2, 16), "e.up_scales": bytes_of(3, 4, 2), "e.up_bias": torch.zeros(3, 4)}
    found = stored_summary(write_checkpoint(tmp_path, tensors, MXFP4))
    assert found.rows == (FormatRow("mxfp4", 3, PartBytes(384, 24)), FormatRow("f32", 1, PartBytes(48)))


def test_groups_that_devices_do_not_have_are_noted(tmp_path: Path) -> None:
    settings = AWQ | {"group_size": 64}
    found = stored_summary(write_checkpoint(tmp_path, awq_layer("q", group=64), settings))
    assert found.notes == ("groups are of 64 inputs, devices store awq-int4 in groups of 128",)


def test_settings_that_no_tensor_follows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected layers in awq-int4, as its settings say"):
        stored_summary(write_checkpoint(tmp_path, PLAIN, AWQ))


def test_codes_under_a_name_that_is_not_known_are_refused(tmp_path: Path) -> None:
    tensors = {"q.weight": torch.zeros(8, 8).to(torch.float8_e4m3fn), "q.weight_scale": torch.tensor(1.0)}
    tensors["experts.up"] = torch.zeros(2, 8, 8).to(torch.float8_e4m3fn)
    folder = write_checkpoint(tmp_path, tensors, {"quant_method": "fp8"})
    with pytest.raises(UserError, match=r"tensor experts.up: expected F8_E4M3 only in a layer with scales"):
        stored_summary(folder)


@pytest.mark.parametrize(
    "number_format", [item for item in NumberFormat if STORAGE[item].group and item != "fp8-block"]
)
def test_bytes_of_groups_are_those_that_devices_have_in_rows(number_format: NumberFormat) -> None:
    found = weight_bytes(64, 256, number_format)
    tensor = 4 if STORAGE[number_format].host_scale else 0
    assert found.total - tensor == stored_bytes(64, 256, STORAGE[number_format])


def test_bytes_of_ragged_blocks_round_up() -> None:
    assert weight_bytes(130, 300, NumberFormat.FP8_BLOCK) == PartBytes(130 * 300, 2 * 3 * 4)
    assert weight_bytes(3, 130, NumberFormat.AWQ_INT4) == PartBytes(195, 3 * 2 * 2, 3)
    assert weight_bytes(3, 33, NumberFormat.MXFP4) == PartBytes(50, 6)
    assert weight_bytes(3, 5, NumberFormat.INT8) == PartBytes(15, 12)
    assert weight_bytes(3, 5, NumberFormat.FP8) == PartBytes(15, 4)


def test_an_int4_cache_has_scales_shifts_and_128_tokens_in_bf16() -> None:
    found = cache_bytes(8, 1128, 128, NumberFormat.INT4)
    assert found == PartBytes(8 * 1000 * 64 + 8 * 128 * 256, 8 * 1000 * 2 * 2, 8 * 1000 * 2 * 2)
    assert cache_bytes(8, 100, 128, NumberFormat.INT4) == PartBytes(8 * 100 * 256)


def test_other_caches_have_a_scale_per_token_or_one() -> None:
    assert cache_bytes(8, 100, 128, NumberFormat.INT8) == PartBytes(8 * 100 * 128, 8 * 100 * 4)
    assert cache_bytes(8, 100, 128, NumberFormat.FP8) == PartBytes(8 * 100 * 128, 4)
    assert cache_bytes(8, 100, 128, NumberFormat.BF16) == PartBytes(8 * 100 * 256)
    assert all(cache_bytes(1, 1, 1, item).total for item in CACHE_STORAGE)
