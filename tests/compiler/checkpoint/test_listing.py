"""Does a checkpoint folder's listing tell what is there, and in one sentence what is wrong?"""

import sys
from pathlib import Path

import pytest
import torch

from compiler.checkpoint.listing import list_tensors
from compiler.checkpoint.tensors import read_tensor
from configs.errors import UserError
from tests.tiny_checkpoints import write_checkpoint

pytest.importorskip("safetensors")
TENSORS = {
    "norm.weight": torch.tensor([1.0, 2.0, -0.5]).to(torch.bfloat16),
    "proj.weight": torch.tensor([[1.0, -448.0]]).to(torch.float8_e4m3fn),
    "proj.weight_scale": torch.tensor(0.25),
}


def test_headers_tell_types_shapes_and_bytes(tmp_path: Path) -> None:
    found = list_tensors(write_checkpoint(tmp_path, TENSORS))
    assert {name: (tensor.element_type, tensor.shape, tensor.stored_bytes) for name, tensor in found.items()} == {
        "norm.weight": ("BF16", (3,), 6),
        "proj.weight": ("F8_E4M3", (1, 2), 2),
        "proj.weight_scale": ("F32", (), 4),
    }


def test_several_files_with_an_index_are_one_checkpoint(tmp_path: Path) -> None:
    found = list_tensors(write_checkpoint(tmp_path, TENSORS, shards=2))
    assert set(found) == set(TENSORS)
    assert {tensor.file.name for tensor in found.values()} == {
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    }


def test_values_come_as_numbers_and_fp8_as_codes(tmp_path: Path) -> None:
    found = list_tensors(write_checkpoint(tmp_path, TENSORS))
    assert read_tensor(found["norm.weight"]).tolist() == [1.0, 2.0, -0.5]
    assert read_tensor(found["proj.weight"]).tolist() == [[0x38, 0xFE]]
    assert read_tensor(found["proj.weight_scale"]).shape == ()


def test_without_the_library_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_checkpoint(tmp_path, TENSORS)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(UserError, match=r"expected the safetensors library.*pip install"):
        list_tensors(folder)


def test_pickles_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(UserError, match=r"found pytorch_model.bin, a pickle.*safe_serialization"):
        list_tensors(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found neither"):
        list_tensors(tmp_path)


def test_a_file_that_was_cut_off_is_named(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, TENSORS) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UserError, match=r"model.safetensors: expected a readable safetensors file"):
        list_tensors(tmp_path)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    (write_checkpoint(tmp_path, TENSORS, shards=2) / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(UserError, match="model-00002-of-00002"):
        list_tensors(tmp_path)


def test_an_index_that_names_another_tensor_is_refused(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, TENSORS, shards=2) / "model.safetensors.index.json"
    path.write_text(path.read_text().replace("norm.weight", "norm.bias"))
    with pytest.raises(UserError, match=r"tensor 'norm.bias' in model-00001"):
        list_tensors(tmp_path)


def test_an_index_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../other.safetensors"}}')
    with pytest.raises(UserError, match="same folder"):
        list_tensors(tmp_path)
