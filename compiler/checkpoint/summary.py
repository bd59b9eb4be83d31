"""What a checkpoint stores, by format: matrices and bytes, scales and zero points apart; from headers alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from pathlib import Path

from compiler.checkpoint.layouts import ROLES, Layout, Role, StoredLayer, suffix_of
from compiler.checkpoint.listing import StoredTensor
from compiler.checkpoint.part_bytes import PartBytes
from compiler.checkpoint.reading import Checkpoint, open_checkpoint
from compiler.checkpoint.shapes import require_shapes
from configs.errors import UserError
from configs.number_format import STORAGE, NumberFormat
from configs.quantization import Quantization

RUN_TIME_SCALES = "scales at run time"
CODE_TYPES = ("F8_E4M3", "F8_E5M2", "I8", "U8", "F4")

FORMATS = {
    Layout.INT8: NumberFormat.INT8,
    Layout.AWQ: NumberFormat.AWQ_INT4,
    Layout.GPTQ: NumberFormat.GPTQ_INT4,
    Layout.MXFP4_BLOCKS: NumberFormat.MXFP4,
    Layout.MXFP4_PACKED: NumberFormat.MXFP4,
    Layout.NVFP4: NumberFormat.NVFP4,
    Layout.NVFP4_PACKED: NumberFormat.NVFP4,
}


@dataclass(frozen=True, slots=True)
class FormatRow:
    """What is stored in one format: `stored` is a number format's name, or an element type's for plain tensors.

    `tensors` counts quantised matrices (each expert's) or plain tensors (embeddings, norms, biases, what was left out).
    """

    stored: str
    tensors: int
    parts: PartBytes


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """The rows of a checkpoint in the order they are first met, its settings, and what a reader should know."""

    rows: tuple[FormatRow, ...]
    quantization: Quantization | None
    notes: tuple[str, ...]

    @property
    def parts(self) -> PartBytes:
        """Bytes of all rows."""
        return sum((row.parts for row in self.rows), PartBytes())


def stored_summary(folder: Path) -> StoredSummary:
    """Return what a checkpoint folder stores, without reading any weight; raises UserError for a damaged one."""
    checkpoint = open_checkpoint(folder)
    rows: dict[str, FormatRow] = {}
    quantised: set[str] = set()
    for layer in checkpoint.layers.values():
        if layer.layout is not Layout.PLAIN:
            require_shapes(layer, checkpoint.quantization)
            _add(
                rows, str(_format_of(layer, checkpoint.quantization)), _matrices(layer), _parts(layer.tensors.values())
            )
            quantised.update(tensor.name for tensor in layer.tensors.values())
    _require_declared(checkpoint, rows)
    _require_known(checkpoint, quantised)
    for tensor in checkpoint.tensors.values():
        if tensor.name not in quantised:
            run_time = ROLES.get(suffix_of(tensor.name)) is Role.RUN_TIME
            name = RUN_TIME_SCALES if run_time else tensor.element_type.lower()
            part = PartBytes(other=tensor.stored_bytes) if run_time else PartBytes(tensor.stored_bytes)
            _add(rows, name, 1, part)
    return StoredSummary(tuple(rows.values()), checkpoint.quantization, _notes(checkpoint.quantization))


def _add(rows: dict[str, FormatRow], name: str, tensors: int, parts: PartBytes) -> None:
    before = rows.get(name, FormatRow(name, 0, PartBytes()))
    rows[name] = FormatRow(name, before.tensors + tensors, before.parts + parts)


def _parts(tensors: Iterable[StoredTensor]) -> PartBytes:
    sizes = dict.fromkeys(Role, 0)
    for tensor in tensors:
        sizes[ROLES[suffix_of(tensor.name)]] += tensor.stored_bytes
    other = sizes[Role.ORDER] + sizes[Role.RUN_TIME]
    return PartBytes(sizes[Role.VALUES], sizes[Role.SCALES], sizes[Role.ZERO_POINTS], other)


def _format_of(layer: StoredLayer, quantization: Quantization | None) -> NumberFormat:
    if layer.layout is Layout.PACKED_INT4:
        return NumberFormat.AWQ_INT4 if ".weight_zero_point" in layer.tensors else NumberFormat.INT4
    if layer.layout is Layout.FP8:
        blocks = quantization is not None and quantization.weights is NumberFormat.FP8_BLOCK
        return NumberFormat.FP8_BLOCK if blocks else NumberFormat.FP8
    return FORMATS[layer.layout]


def _matrices(layer: StoredLayer) -> int:
    """Return how many matrices a layer's tensors hold: those of all experts in GPT-OSS."""
    return prod(layer.tensors["_blocks"].shape[:-3]) if layer.layout is Layout.MXFP4_BLOCKS else 1


def _require_declared(checkpoint: Checkpoint, rows: dict[str, FormatRow]) -> None:
    settings = checkpoint.quantization
    if settings is not None and settings.weights not in rows:
        raise UserError(
            where=str(checkpoint.folder),
            expected=f"layers in {settings.weights}, as its settings say",
            found=f"layers in {', '.join(rows)}" if rows else "none that are quantised",
            way_out="check that config.json is that of these files",
        )


def _require_known(checkpoint: Checkpoint, quantised: set[str]) -> None:
    """Refuse matrices of codes without scales that are known: their bytes alone say nothing."""
    for tensor in checkpoint.tensors.values():
        if tensor.name not in quantised and tensor.element_type in CODE_TYPES and len(tensor.shape) > 1:
            raise UserError(
                where=f"tensor {tensor.name}",
                expected=f"{tensor.element_type} only in a layer with scales, named as one of {', '.join(ROLES)}",
                found="a name that is not known",
                way_out="give the unquantised checkpoint and choose a format with --weights",
            )


def _notes(quantization: Quantization | None) -> tuple[str, ...]:
    if quantization is None or quantization.lowered is not None:
        return ()
    stored, kept = quantization.group, STORAGE[quantization.weights].group
    return (
        f"groups are of {stored or 'all'} inputs, devices store {quantization.weights} in groups of {kept or 'all'}",
    )
