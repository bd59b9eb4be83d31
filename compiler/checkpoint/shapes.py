"""Do the tensors of a quantised layer fit together? Told from the headers, before any data are read."""

from math import prod

from compiler.checkpoint.layouts import ROLES, Layout, Role, StoredLayer
from compiler.checkpoint.matrix import whole_block
from compiler.checkpoint.packing import CODES_PER_WORD
from configs.errors import UserError
from configs.number_format import STORAGE, NumberFormat
from configs.quantization import Quantization
from configs.quantization.record import WHOLE

Shape = tuple[int, ...]
DIMENSIONS = {Layout.MXFP4_BLOCKS: (3, 4)}  # of a layer's values; those of all experts may be one tensor
MX_GROUP, NV_GROUP = STORAGE[NumberFormat.MXFP4].group, STORAGE[NumberFormat.NVFP4].group


def require_shapes(layer: StoredLayer, quantization: Quantization | None) -> None:
    """Raise UserError naming the first tensor of a layer whose shape does not fit that of its values."""
    values = next(tensor for suffix, tensor in layer.tensors.items() if ROLES[suffix] is Role.VALUES)
    if len(values.shape) not in DIMENSIONS.get(layer.layout, (2,)):
        raise UserError(
            where=f"tensor {values.name}",
            expected="a matrix",
            found=f"shape {list(values.shape)}",
            way_out="ask for the weight of a linear layer",
        )
    for suffix, expected in _expected(layer, quantization).items():
        found = layer.tensors[suffix].shape
        if found not in expected:
            raise UserError(
                where=f"tensor {layer.tensors[suffix].name}",
                expected=f"shape {' or '.join(str(list(shape)) for shape in expected)}",
                found=str(list(found)),
                way_out="check that config.json is that of these files",
            )


def _expected(layer: StoredLayer, quantization: Quantization | None) -> dict[str, tuple[Shape, ...]]:
    """Return, by suffix, the shapes that fit the layer's values."""
    shapes = {suffix: tensor.shape for suffix, tensor in layer.tensors.items()}
    match layer.layout:
        case Layout.AWQ:
            inputs, words = shapes[".qweight"]
            return _grouped(inputs, words * CODES_PER_WORD, quantization)
        case Layout.GPTQ:
            words, outputs = shapes[".qweight"]
            order = {".g_idx": ((words * CODES_PER_WORD,),)} if ".g_idx" in shapes else {}
            return _grouped(words * CODES_PER_WORD, outputs, quantization) | order
        case Layout.INT8 | Layout.FP8:
            return _scales_of(shapes, quantization)
        case Layout.MXFP4_BLOCKS:
            *before, groups, half = shapes["_blocks"]
            return {"_scales": ((*before, groups),), "_blocks": ((*before, groups, MX_GROUP // 2),) if half else ()}
        case Layout.MXFP4_PACKED:
            outputs, half = shapes[".weight_packed"]
            return {".weight_scale": ((outputs, -(-half * 2 // MX_GROUP)),)}
        case Layout.NVFP4 | Layout.NVFP4_PACKED:
            outputs, half = shapes[".weight" if layer.layout is Layout.NVFP4 else ".weight_packed"]
            tensor = ".weight_scale_2" if layer.layout is Layout.NVFP4 else ".weight_global_scale"
            return {".weight_scale": ((outputs, -(-half * 2 // NV_GROUP)),), tensor: ((), (1,))}
        case Layout.PACKED_INT4:
            outputs, words = shapes[".weight_packed"]
            groups = -(-words * CODES_PER_WORD // group_size(quantization, words * CODES_PER_WORD))
            found: dict[str, tuple[Shape, ...]] = {".weight_scale": ((outputs, groups),), ".weight_shape": ((2,),)}
            if ".weight_zero_point" in shapes:
                found[".weight_zero_point"] = ((-(-outputs // CODES_PER_WORD), groups),)
            return found
        case Layout.PLAIN:
            return {}


def group_size(quantization: Quantization | None, inputs: int) -> int:
    """Return how many inputs share a scale: those of the settings, or all of them."""
    return quantization.group if quantization and quantization.group else inputs


def _grouped(inputs: int, outputs: int, quantization: Quantization | None) -> dict[str, tuple[Shape, ...]]:
    groups = -(-inputs // group_size(quantization, inputs))
    return {".scales": ((groups, outputs),), ".qzeros": ((groups, outputs // CODES_PER_WORD),)}


def _scales_of(shapes: dict[str, Shape], quantization: Quantization | None) -> dict[str, tuple[Shape, ...]]:
    """Return the shapes of one scale, of one per output, and of one per block of the settings."""
    outputs, inputs = shapes[".weight"]
    suffix = ".weight_scale_inv" if ".weight_scale_inv" in shapes else ".weight_scale"
    allowed: list[Shape] = [(), (1,), (1, 1), (outputs,), (outputs, 1)]
    block = quantization.block if quantization else (WHOLE, WHOLE)
    if prod(block):
        rows, columns = whole_block((outputs, inputs), block)
        counts = -(-outputs // rows), -(-inputs // columns)
        allowed = [counts, (counts[0], 1, counts[1], 1)]  # the second is ModelOpt's
    return {suffix: tuple(allowed)}
