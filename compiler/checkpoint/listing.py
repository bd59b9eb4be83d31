"""What a checkpoint folder holds: names, types, shapes and bytes, from the headers of its safetensors files alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import ModuleType

from configs.errors import UserError
from configs.json_fields import read_json_object

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")

# Bits of an element by the name of its type in a header (safetensors, `Dtype`).
TYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64, "F4": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file, by its header: `element_type` as safetensors names it, such as BF16."""

    name: str
    element_type: str
    shape: tuple[int, ...]
    file: Path

    @property
    def stored_bytes(self) -> int:
        """Bytes of its data in the file."""
        return -(-prod(self.shape) * TYPE_BITS[self.element_type] // 8)


def list_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Return every tensor of a checkpoint folder by name, in the order of the files; no data are read.

    Raises UserError for a folder without safetensors, for a damaged file, and for an index that does not agree with it.
    """
    index = folder / INDEX_FILE
    if not index.is_file():
        return _of_files(_all_files(folder))
    places = _weight_map(index)
    found = _of_files(tuple(folder / name for name in dict.fromkeys(places.values())))
    for name, place in places.items():
        if name not in found or found[name].file.name != place:
            raise _damaged(index, f"tensor {name!r} in {place}", "a file without it")
    return found


def safetensors_module() -> ModuleType:
    """Return the safetensors library; raises UserError where it is not installed."""
    try:
        import safetensors
    except ImportError as error:
        raise UserError(
            where="checkpoint",
            expected="the safetensors library",
            found="a Python without it",
            way_out="install it: pip install safetensors",
        ) from error
    return safetensors


def _all_files(folder: Path) -> tuple[Path, ...]:
    single = folder / SINGLE_FILE
    files = (single,) if single.is_file() else tuple(sorted(folder.glob("*.safetensors")))
    if files:
        return files
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    raise UserError(
        where=str(folder),
        expected=f"{SINGLE_FILE} or {INDEX_FILE}",
        found=f"{pickles[0]}, a pickle, which can run code and is never opened" if pickles else "neither",
        way_out="convert the model with save_pretrained(..., safe_serialization=True)"
        if pickles
        else "give the folder of a model that was saved as safetensors",
    )


def _weight_map(index: Path) -> Mapping[str, str]:
    fields = read_json_object(index)
    places = fields.nested("weight_map")
    values = places.values if places else {}
    if not values or not all(isinstance(place, str) and Path(place).name == place for place in values.values()):
        raise fields.bad("weight_map", "names of tensors with names of files in the same folder")
    return values


def _of_files(files: tuple[Path, ...]) -> dict[str, StoredTensor]:
    found: dict[str, StoredTensor] = {}
    for path in files:
        for tensor in _header(path):
            if tensor.name in found:
                raise _damaged(
                    path, "every tensor once", f"{tensor.name!r}, which {found[tensor.name].file.name} holds too"
                )
            found[tensor.name] = tensor
    return found


def _header(path: Path) -> list[StoredTensor]:
    library = safetensors_module()
    try:
        with library.safe_open(path, framework="numpy") as file:
            slices = [(name, file.get_slice(name)) for name in file.keys()]  # noqa: SIM118, not a mapping
            found = [StoredTensor(name, part.get_dtype(), tuple(part.get_shape()), path) for name, part in slices]
    except (OSError, library.SafetensorError) as error:
        raise _damaged(path, "a readable safetensors file", str(error)) from error
    for tensor in found:
        if tensor.element_type not in TYPE_BITS:
            raise _damaged(path, f"elements of {', '.join(TYPE_BITS)}", f"{tensor.name!r} of {tensor.element_type}")
    return found


def _damaged(path: Path, expected: str, found: str) -> UserError:
    return UserError(where=str(path), expected=expected, found=found, way_out="download the checkpoint again")
