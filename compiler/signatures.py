"""The types each operator demands, as tables from its kind: the verifier compares them with what a graph holds.

A *signature* gives the operand and result slots that follow from an operator's attributes and the batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

from compiler.graph import DType, Op, OpKind, TensorType

INTEGER = "i64"
FLOAT = "float"


@dataclass(frozen=True, slots=True)
class Slot:
    """What one operand or result must be: any floating type or an index, with this shape."""

    element: str
    shape: tuple[int, ...]

    def accepts(self, found: TensorType) -> bool:
        """Tell whether a value of this type fits."""
        return found.shape == self.shape and (found.dtype is DType.I64) == (self.element == INTEGER)

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
    ),
    OpKind.ROUTE: (("top_k of at most experts", lambda op: op.integer("top_k") <= op.integer("experts")),),
}


def _floats(*shape: int) -> Slot:
    return Slot(FLOAT, shape)


def _indices(*shape: int) -> Slot:
    return Slot(INTEGER, shape)


def _embedding(op: Op, batch: int) -> Signature:
    vocabulary, width = op.integer("vocabulary"), op.integer("width")
    return (_indices(batch), _floats(vocabulary, width)), (_floats(batch, width),)


def _linear(op: Op, batch: int) -> Signature:
    in_features, parts = op.integer("in_features"), op.integers("parts")
    weights = tuple(_floats(part, in_features) for part in parts)
    biases = tuple(_floats(part) for part in parts) if op.flag("bias") else ()
    return (_floats(batch, in_features), *weights, *biases), tuple(_floats(batch, part) for part in parts)


def _norm(op: Op, batch: int) -> Signature:
    width = op.integer("width")
    whole = _floats(batch, op.integer("heads") * width)
    return (whole, _floats(width)), (whole,)


def _rotary(op: Op, batch: int) -> Signature:
    whole = _floats(batch, op.integer("heads") * op.integer("head_dim"))
    return (whole, _indices(1)), (whole,)


def _kv_append(op: Op, batch: int) -> Signature:
    token = _floats(batch, op.integer("kv_heads") * op.integer("head_dim"))
    cache = _floats(batch, op.integer("kv_heads"), op.integer("context"), op.integer("head_dim"))
    return (token, token, cache, cache, _indices(1)), (cache, cache)


def _attention(op: Op, batch: int) -> Signature:
    query = _floats(batch, op.integer("heads") * op.integer("head_dim"))
    cache = _floats(batch, op.integer("kv_heads"), op.integer("context"), op.integer("head_dim"))
    return (query, cache, cache, _indices(1)), (query,)


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
    OpKind.NORM: _norm,
    OpKind.ROTARY: _rotary,
    OpKind.KV_APPEND: _kv_append,
    OpKind.ATTENTION: _attention,
    OpKind.GATED_ACTIVATION: _gated_activation,
    OpKind.ADD: _gated_activation,
    OpKind.ROUTE: _route,
    OpKind.EXPERTS: _experts,
    OpKind.SAMPLE: _sample,
}
