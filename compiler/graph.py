"""The graph: one decode step as flat, typed, static-single-assignment records. It defines every operator kind.

The text form (`compiler.graph_text`), one statement a line:

    graph     := "graph" NAME  input*  weight*  op*  output*
    input     := "input" value            token ids, the position, and the KV caches before the step
    weight    := "weight" value           the model's parameters
    op        := value ("," value)* "=" kind "(" "%"NAME ("," "%"NAME)* ")" "{" attribute ("," attribute)* "}"
    output    := "output" "%"NAME         the next token ids, then the KV caches after the step
    value     := "%"NAME ":" type
    type      := ("bf16" | "f16" | "f32" | "f64" | "i64") "[" (INTEGER ("," INTEGER)*)? "]"
    attribute := NAME "=" (INTEGER | FLOAT | "true" | "false" | STRING | "(" INTEGER ("," INTEGER)* ")")
    STRING    := '"' (letter | digit | "_")* '"'
    NAME      := (letter | digit | "_" | "." | "-")+

A context of T means that the caches hold T tokens including the current one, which is written at position T - 1. B is
the batch; activations are [B, width], caches [B, kv_heads, context, head_dim]; operands in the order given here:

    embedding(ids, table)                              table[ids]
    linear(x, weight..., bias...)                      x @ weight.T + bias for each part; weight is [part, in_features]
    norm(x, weight)                                    root-mean-square norm of each of the `heads` groups of `width`
    rotary(x, position)                                rotates the pairs (j, j + head_dim / 2) of each head
    kv_append(k, v, k_cache, v_cache, position)        the two caches with k and v written at `position`
    attention(q, k_cache, v_cache, position)           softmax(scale q k^T) v over the positions j <= position and, if
                                                       window > 0, j > position - window
    gated_activation(gate, up)                         activation(gate) * up
    add(a, b)                                          a + b
    route(logits)                                      ids [B, top_k] and weights [B, top_k] of the largest
                                                       softmax(logits); divided by their sum if `normalise`
    experts(x, ids, weights, gate, up, down)           sum over k of weights_k * down_k(activation(gate_k x) * up_k x)
    sample(logits)                                     the index of the largest logit
"""

from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import TypeVar

T = TypeVar("T")


class DType(StrEnum):
    """Element types of values."""

    BF16 = "bf16"
    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    I64 = "i64"


ELEMENT_BYTES = {DType.BF16: 2, DType.F16: 2, DType.F32: 4, DType.F64: 8, DType.I64: 8}


class OpKind(StrEnum):
    """The whole vocabulary of operators; the module docstring gives their meaning."""

    EMBEDDING = "embedding"
    LINEAR = "linear"
    NORM = "norm"
    ROTARY = "rotary"
    KV_APPEND = "kv_append"
    ATTENTION = "attention"
    GATED_ACTIVATION = "gated_activation"
    ADD = "add"
    ROUTE = "route"
    EXPERTS = "experts"
    SAMPLE = "sample"


# The attributes of each kind in their canonical order. Rotary scaling is "none" or "llama3"; window 0 means no window.
ATTRIBUTES: dict[OpKind, tuple[tuple[str, type], ...]] = {
    OpKind.EMBEDDING: (("vocabulary", int), ("width", int)),
    OpKind.LINEAR: (("in_features", int), ("parts", tuple), ("bias", bool)),
    OpKind.NORM: (("norm", str), ("width", int), ("heads", int), ("epsilon", float)),
    OpKind.ROTARY: (
        ("heads", int),
        ("head_dim", int),
        ("theta", float),
        ("scaling", str),
        ("factor", float),
        ("low_frequency_factor", float),
        ("high_frequency_factor", float),
        ("original_context", int),
    ),
    OpKind.KV_APPEND: (("kv_heads", int), ("head_dim", int), ("context", int)),
    OpKind.ATTENTION: (
        ("heads", int),
        ("kv_heads", int),
        ("head_dim", int),
        ("context", int),
        ("window", int),
        ("scale", float),
    ),
    OpKind.GATED_ACTIVATION: (("width", int), ("activation", str)),
    OpKind.ADD: (("width", int),),
    OpKind.ROUTE: (("experts", int), ("top_k", int), ("normalise", bool)),
    OpKind.EXPERTS: (("experts", int), ("top_k", int), ("hidden", int), ("intermediate", int), ("activation", str)),
    OpKind.SAMPLE: (("vocabulary", int),),
}

Attribute = int | float | bool | str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and static shape of a value."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes, unpadded."""
        return self.elements * ELEMENT_BYTES[self.dtype]

    def __str__(self) -> str:
        """Return the text form, such as `bf16[1,4096]`."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Value:
    """A named value and its type."""

    name: str
    type: TensorType


@dataclass(frozen=True, slots=True)
class Op:
    """One operator: what it computes, the names it reads and the values it defines."""

    kind: OpKind
    inputs: tuple[str, ...]
    results: tuple[Value, ...]
    attributes: tuple[tuple[str, Attribute], ...]

    @property
    def name(self) -> str:
        """The name of the first result, which identifies the operator."""
        return self.results[0].name

    def attribute(self, name: str) -> Attribute:
        """Return an attribute; raises KeyError when this kind has none of that name."""
        return dict(self.attributes)[name]

    def integer(self, name: str) -> int:
        """Return an integer attribute; raises TypeError on another type."""
        return _of_type(self.attribute(name), int)

    def number(self, name: str) -> float:
        """Return a float attribute; raises TypeError on another type."""
        return _of_type(self.attribute(name), float)

    def text(self, name: str) -> str:
        """Return a string attribute; raises TypeError on another type."""
        return _of_type(self.attribute(name), str)

    def flag(self, name: str) -> bool:
        """Return a boolean attribute; raises TypeError on another type."""
        return _of_type(self.attribute(name), bool)

    def integers(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a tuple of integers; raises TypeError on another type."""
        return _of_type(self.attribute(name), tuple)


@dataclass(frozen=True, slots=True)
class Graph:
    """One decode step: inputs, parameters, operators in program order, and the names of the outputs."""

    name: str
    inputs: tuple[Value, ...]
    weights: tuple[Value, ...]
    ops: tuple[Op, ...]
    outputs: tuple[str, ...]

    def types(self) -> dict[str, TensorType]:
        """Return the type of every value by name."""
        results = (result for op in self.ops for result in op.results)
        return {value.name: value.type for value in (*self.inputs, *self.weights, *results)}


def make_attributes(kind: OpKind, *values: Attribute) -> tuple[tuple[str, Attribute], ...]:
    """Return `values` under the names that `kind` gives them, in canonical order; ValueError on a wrong count."""
    return tuple((name, value) for (name, _), value in zip(ATTRIBUTES[kind], values, strict=True))


def _of_type(value: Attribute, expected: type[T]) -> T:
    if not isinstance(value, expected):
        raise TypeError(f"expected an attribute of type {expected.__name__}, found {value!r}")
    return value
