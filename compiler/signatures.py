"""The types each operator demands, as tables from its kind: the verifier compares them with what a graph holds.

A *signature* gives the operand and result slots that follow from an operator's attributes and the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

from compiler.graph import DType, Op, OpKind, TensorType

INTEGER = "i64"
FLOAT = "float"
# Kinds whose result types follow from their body and their operands.
WITH_BODY = (OpKind.RECURRENCE, OpKind.COMPUTE)


@dataclass(frozen=True, slots=True)
class Slot:
    """What one operand or result must be: any floating type or an index, with this shape."""

    element: str
    shape: tuple[int, ...]

    def accepts(self, found: TensorType) -> bool:
        """Tell whether a value of this type fits."""
        fits = found.dtype is DType.I64 if self.element == INTEGER else found.dtype.is_float
        return found.shape == self.shape and fits

    def __str__(self) -> str:
        """Return text such as `float[1,4096]`."""
        return f"{self.element}[{','.join(map(str, self.shape))}]"


Signature = tuple[tuple[Slot, ...], tuple[Slot, ...]]


CHOICES: dict[str, tuple[str, ...]] = {"norm": ("rms",), "scaling": ("none", "llama3"), "activation": ("silu",)}
LEGALITY: dict[OpKind, tuple[tuple[str, Callable[[Op], bool]], ...]] = {
    OpKind.LINEAR: (("at least one part", lambda op: len(op.integers("parts")) > 0),),
    OpKind.ROTARY: (("an even head_dim", lambda op: op.integer("head_dim") % 2 == 0),),
    OpKind.ATTENTION: (
        ("kv_heads to divide heads", lambda op: op.integer("heads") % max(op.integer("kv_heads"), 1) == 0),
        ("a window of 0 or more", lambda op: op.integer("window") >= 0),
        ("a window or chunks, not both", lambda op: not (op.integer("window") and op.integer("chunk"))),
        ("selectors to divide heads", lambda op: op.integer("heads") % max(op.integer("selectors"), 1) == 0),
        ("blocks within the context", lambda op: _fits_context(op)),
    ),
    OpKind.SELECT: (("blocks within the context", lambda op: op.integer("selected") > 0 and _fits_context(op)),),
    OpKind.LATENT_ATTENTION: (
        ("a window of 0 or more", lambda op: op.integer("window") >= 0),
        ("selectors to divide heads", lambda op: op.integer("heads") % max(op.integer("selectors"), 1) == 0),
        ("blocks within the context", lambda op: _fits_context(op)),
    ),
    OpKind.HEAD_LINEAR: (
        (
            "its rows within those of a head",
            lambda op: (
                op.integer("first") + op.integer(_row_side(op)) <= op.integer("rows") and op.integer("first") >= 0
            ),
        ),
    ),
    OpKind.RECURRENCE: (("at least one state", lambda op: op.integer("states") > 0),),
    OpKind.ROUTED_LINEAR: (("top_k of at most experts", lambda op: op.integer("top_k") <= op.integer("experts")),),
    OpKind.ROUTE: (("top_k of at most experts", lambda op: op.integer("top_k") <= op.integer("experts")),),
}


def _floats(*shape: int) -> Slot:
    return Slot(FLOAT, shape)


def _indices(*shape: int) -> Slot:
    return Slot(INTEGER, shape)


def value_dim(op: Op) -> int:
    """Return the width of a value of an attention or a cache write: head_dim unless it says otherwise."""
    return op.integer("value_dim") or op.integer("head_dim")


def selectors(op: Op) -> int:
    """Return how many choices of blocks a selection makes: one for all heads if they are weighted and summed."""
    return 1 if op.flag("weighted") else op.integer("heads")


def _fits_context(op: Op) -> bool:
    """Tell whether a sequence has as many blocks as are selected."""
    block = op.integer("block")
    return block > 0 and 0 <= op.integer("selected") <= -(-op.integer("context") // block)


def _row_side(op: Op) -> str:
    return "in_features" if op.flag("transposed") else "out_features"


def _embedding(op: Op, batch: int) -> Signature:
    vocabulary, width = op.integer("vocabulary"), op.integer("width")
    return (_indices(batch), _floats(vocabulary, width)), (_floats(batch, width),)


def _linear(op: Op, batch: int) -> Signature:
    in_features, parts = op.integer("in_features"), op.integers("parts")
    shapes = [(in_features, part) if op.flag("transposed") else (part, in_features) for part in parts]
    weights = tuple(_floats(*shape) for shape in shapes)
    biases = tuple(_floats(part) for part in parts) if op.flag("bias") else ()
    return (_floats(batch, in_features), *weights, *biases), tuple(_floats(batch, part) for part in parts)


def _head_linear(op: Op, batch: int) -> Signature:
    heads, inputs, outputs = (op.integer(name) for name in ("heads", "in_features", "out_features"))
    columns = outputs if op.flag("transposed") else inputs
    rows = op.integer("rows")
    weight = _floats(heads, rows, columns) if op.flag("stacked") else _floats(heads * rows, columns)
    return (_floats(batch, heads * inputs), weight), (_floats(batch, heads * outputs),)


def _routed_linear(op: Op, batch: int) -> Signature:
    experts, top_k, inputs, outputs = (op.integer(one) for one in ("experts", "top_k", "in_features", "out_features"))
    matrix = (inputs, outputs) if op.flag("transposed") else (outputs, inputs)
    biases = (_floats(experts, outputs),) if op.flag("bias") else ()
    whole = _floats(batch, inputs if op.flag("shared") else top_k * inputs)
    stack = (experts * matrix[0], matrix[1]) if op.flag("flat") else (experts, *matrix)
    return (whole, _indices(batch, top_k), _floats(*stack), *biases), (_floats(batch, top_k * outputs),)


def _norm(op: Op, batch: int) -> Signature:
    width = op.integer("width")
    whole = _floats(batch, op.integer("heads") * width)
    return (whole, _floats(width)), (whole,)


def _rotary(op: Op, batch: int) -> Signature:
    whole = _floats(batch, op.integer("heads") * op.integer("head_dim"))
    return (whole, _indices(1)), (whole,)


def _kv_append(op: Op, batch: int) -> Signature:
    kv_heads, context = op.integer("kv_heads"), op.integer("context")
    widths = (op.integer("head_dim"), value_dim(op))
    tokens = [_floats(batch, kv_heads * width) for width in widths]
    caches = tuple(_floats(batch, kv_heads, context, width) for width in widths)
    return (*tokens, *caches, _indices(1)), caches


def _index_append(op: Op, batch: int) -> Signature:
    cache = _floats(batch, 1, op.integer("context"), op.integer("width"))
    return (_floats(batch, op.integer("width")), cache, _indices(1)), (cache,)


def _select(op: Op, batch: int) -> Signature:
    heads, width = op.integer("heads"), op.integer("width")
    weights = (_floats(batch, heads),) if op.flag("weighted") else ()
    cache = _floats(batch, 1, op.integer("context"), width)
    ids = _indices(batch, selectors(op), op.integer("selected"))
    return (_floats(batch, heads * width), *weights, cache, _indices(1)), (ids,)


def _ids(op: Op, batch: int) -> tuple[Slot, ...]:
    selected = op.integer("selected")
    return (_indices(batch, op.integer("selectors"), selected),) if selected else ()


def _attention(op: Op, batch: int) -> Signature:
    heads, kv_heads, context = (op.integer(name) for name in ("heads", "kv_heads", "context"))
    query = _floats(batch, heads * op.integer("head_dim"))
    caches = [_floats(batch, kv_heads, context, width) for width in (op.integer("head_dim"), value_dim(op))]
    sequences = (batch,) if op.flag("by_sequence") else ()
    sinks = (_floats(*sequences, heads),) if op.flag("sinks") else ()
    bias = (_floats(*sequences, heads, context),) if op.flag("bias") else ()
    operands = (query, *caches, _indices(1), *sinks, *bias, *_ids(op, batch))
    logsum = (_floats(batch, heads),) if op.flag("logsum") else ()
    return operands, (_floats(batch, heads * value_dim(op)), *logsum)


def _latent_attention(op: Op, batch: int) -> Signature:
    heads, context = op.integer("heads"), op.integer("context")
    widths = (op.integer("latent"), op.integer("rotary"))
    queries = [_floats(batch, heads * width) for width in widths]
    caches = [_floats(batch, 1, context, width) for width in widths]
    sinks = (_floats(heads),) if op.flag("sinks") else ()
    return (*queries, *caches, _indices(1), *sinks, *_ids(op, batch)), (_floats(batch, heads * widths[0]),)


def _gated_activation(op: Op, batch: int) -> Signature:
    whole = _floats(batch, op.integer("width"))
    return (whole, whole), (whole,)


def _route(op: Op, batch: int) -> Signature:
    top_k = op.integer("top_k")
    return (_floats(batch, op.integer("experts")),), (_indices(batch, top_k), _floats(batch, top_k))


def _experts(op: Op, batch: int) -> Signature:
    experts, hidden, intermediate = op.integer("experts"), op.integer("hidden"), op.integer("intermediate")
    whole, routes = _floats(batch, hidden), (batch, op.integer("top_k"))
    widen, narrow = _floats(experts, intermediate, hidden), _floats(experts, hidden, intermediate)
    return (whole, _indices(*routes), _floats(*routes), widen, widen, narrow), (whole,)


def _sample(op: Op, batch: int) -> Signature:
    return (_floats(batch, op.integer("vocabulary")),), (_indices(batch),)


SIGNATURES: dict[OpKind, Callable[[Op, int], Signature]] = {
    OpKind.EMBEDDING: _embedding,
    OpKind.LINEAR: _linear,
    OpKind.HEAD_LINEAR: _head_linear,
    OpKind.ROUTED_LINEAR: _routed_linear,
    OpKind.NORM: _norm,
    OpKind.ROTARY: _rotary,
    OpKind.KV_APPEND: _kv_append,
    OpKind.INDEX_APPEND: _index_append,
    OpKind.SELECT: _select,
    OpKind.ATTENTION: _attention,
    OpKind.LATENT_ATTENTION: _latent_attention,
    OpKind.GATED_ACTIVATION: _gated_activation,
    OpKind.ADD: _gated_activation,
    OpKind.ROUTE: _route,
    OpKind.EXPERTS: _experts,
    OpKind.SAMPLE: _sample,
}
