"""The graph: one decode step as flat, typed, static-single-assignment records. It defines every operator kind.

The text form (`compiler.graph_text`), one statement a line:

    graph     := "graph" NAME  input*  weight*  constant*  op*  output*
    input     := "input" value            token ids, the position, and the KV caches and states before the step
    weight    := "weight" value           the model's parameters
    constant  := "constant" value         its buffers, such as rotary frequencies
    op        := value ("," value)* "=" kind "(" ["%"NAME ("," "%"NAME)*] ")" "{" attribute ("," attribute)* "}"
    output    := "output" "%"NAME         the next token ids or the logits, then caches and states after the step
    value     := "%"NAME ":" type
    type      := element "[" (INTEGER ("," INTEGER)*)? "]"
    element   := "bf16" | "f16" | "f32" | "f64" | "c64" | "c128" | "i64" | "i32" | "bool"
    attribute := NAME "=" (INTEGER | FLOAT | "true" | "false" | STRING | "(" INTEGER ("," INTEGER)* ")")
    STRING    := '"' any character but '"' and a line's end '"'
    NAME      := (letter | digit | "_" | "." | "-")+

A context of T means that the caches hold T tokens including the current one, which is written at position T - 1. B is
the batch; activations are [B, width], caches [B, kv_heads, context, head_dim]; operands in the order given here:

    embedding(ids, table)                              table[ids]
    linear(x, weight..., bias...)                      x @ weight.T + bias for each part; weight is [part, in_features],
                                                       or [in_features, part] if `transposed`
    head_linear(x, weight)                             for each head h some rows, from `first` on, of its `rows` rows
                                                       of the weight, W_h: W_h @ x_h, or x_h @ W_h if `transposed`;
                                                       the weight is [heads * rows, columns], or if `stacked`
                                                       [heads, rows, columns]
    routed_linear(x, ids, weight, bias?)               for each of top_k choices the product of x, or of its part of x
                                                       unless `shared`, with weight[id]: [B, top_k * out_features];
                                                       if `flat` the weight is [experts * rows, columns]
    norm(x, weight)                                    root-mean-square norm of each of the `heads` groups of `width`
    rotary(x, position)                                rotates the pairs (j, j + head_dim / 2) of each head
    kv_append(k, v, k_cache, v_cache, position)        the two caches with k and v written at `position`
    index_append(k, index_cache, position)             the index cache [B, 1, context, width] with k at `position`
    select(q, weights?, index_cache, position)         the ids of the `selected` blocks of `block` tokens up to the
                                                       position with the largest scores, the `local` newest ones always,
                                                       -1 where there are fewer: for every head of q a choice of its own
                                                       by the largest scale q c^T in a block or, if `weighted`, one
                                                       choice for all by the sum over heads of weight relu(scale q c^T)
    attention(q, k_cache, v_cache, position, sinks?, bias?, ids?)
                                                       softmax(scale q k^T) v over the positions j <= position and, if
                                                       window > 0, j > position - window or, if chunk > 0, those of the
                                                       same chunk; scores s become softcap * tanh(s / softcap) if
                                                       softcap > 0, a bias [heads or 1, context] is added to them, and
                                                       each head's sink takes part in its softmax without a value, both
                                                       with a leading B if they are computed `by_sequence`; if
                                                       `selected` > 0, only tokens are read whose block of `block` is
                                                       among ids [B, selectors, selected], each selector for its share
                                                       of the heads; with `logsum` also the logarithm of the sum of
                                                       the scores' exponentials [B, heads], so that softmaxes over
                                                       several caches can be joined
    latent_attention(q, r, latents, keys, position, sinks?, ids?)
                                                       softmax(scale (q c^T + r k^T)) c: every head of q [latent] and of
                                                       r [rotary] attends to one shared latent c and rotary key k
    gated_activation(gate, up)                         activation(gate) * up
    add(a, b)                                          a + b
    route(logits)                                      ids [B, top_k] and weights [B, top_k] of the largest
                                                       softmax(logits); divided by their sum if `normalise`
    experts(x, ids, weights, gate, up, down)           sum over k of weights_k * down_k(activation(gate_k x) * up_k x)
    recurrence(state..., x...)                         the states after the step and what is read from them: `body`
    compute(x...)                                      what `body` says: work on activations that has no name of its own
    sample(logits)                                     the index of the largest logit

The body of a recurrence or a computation is a program of tensor calls (`compiler.bodies`); `role` says in a word what
it is for. `value_dim` is the width of a value where it is not head_dim. Attributes at the values of `DEFAULTS` are not
printed.
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
    I32 = "i32"
    BOOL = "bool"
    C64 = "c64"
    C128 = "c128"

    @property
    def is_float(self) -> bool:
        """Whether values have a fraction."""
        return self in (DType.BF16, DType.F16, DType.F32, DType.F64)


ELEMENT_BYTES = {
    DType.BF16: 2,
    DType.F16: 2,
    DType.F32: 4,
    DType.F64: 8,
    DType.I64: 8,
    DType.I32: 4,
    DType.BOOL: 1,
    DType.C64: 8,
    DType.C128: 16,
}


class OpKind(StrEnum):
    """The whole vocabulary of operators; the module docstring gives their meaning."""

    EMBEDDING = "embedding"
    LINEAR = "linear"
    HEAD_LINEAR = "head_linear"
    ROUTED_LINEAR = "routed_linear"
    NORM = "norm"
    ROTARY = "rotary"
    KV_APPEND = "kv_append"
    INDEX_APPEND = "index_append"
    SELECT = "select"
    ATTENTION = "attention"
    LATENT_ATTENTION = "latent_attention"
    GATED_ACTIVATION = "gated_activation"
    ADD = "add"
    ROUTE = "route"
    EXPERTS = "experts"
    RECURRENCE = "recurrence"
    COMPUTE = "compute"
    SAMPLE = "sample"


# The attributes of each kind in their canonical order. Rotary scaling is "none" or "llama3"; window 0 means no window.
ATTRIBUTES: dict[OpKind, tuple[tuple[str, type], ...]] = {
    OpKind.EMBEDDING: (("vocabulary", int), ("width", int)),
    OpKind.LINEAR: (("in_features", int), ("parts", tuple), ("bias", bool), ("transposed", bool)),
    OpKind.HEAD_LINEAR: (
        ("heads", int),
        ("in_features", int),
        ("out_features", int),
        ("rows", int),
        ("first", int),
        ("transposed", bool),
        ("stacked", bool),
    ),
    OpKind.ROUTED_LINEAR: (
        ("experts", int),
        ("top_k", int),
        ("in_features", int),
        ("out_features", int),
        ("shared", bool),
        ("bias", bool),
        ("transposed", bool),
        ("flat", bool),
    ),
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
    OpKind.KV_APPEND: (("kv_heads", int), ("head_dim", int), ("context", int), ("value_dim", int)),
    OpKind.INDEX_APPEND: (("width", int), ("context", int)),
    OpKind.SELECT: (
        ("heads", int),
        ("width", int),
        ("context", int),
        ("selected", int),
        ("block", int),
        ("local", int),
        ("scale", float),
        ("weighted", bool),
    ),
    OpKind.ATTENTION: (
        ("heads", int),
        ("kv_heads", int),
        ("head_dim", int),
        ("context", int),
        ("window", int),
        ("scale", float),
        ("value_dim", int),
        ("chunk", int),
        ("softcap", float),
        ("sinks", bool),
        ("bias", bool),
        ("selected", int),
        ("block", int),
        ("selectors", int),
        ("by_sequence", bool),
        ("logsum", bool),
    ),
    OpKind.LATENT_ATTENTION: (
        ("heads", int),
        ("latent", int),
        ("rotary", int),
        ("context", int),
        ("window", int),
        ("scale", float),
        ("sinks", bool),
        ("selected", int),
        ("block", int),
        ("selectors", int),
    ),
    OpKind.GATED_ACTIVATION: (("width", int), ("activation", str)),
    OpKind.ADD: (("width", int),),
    OpKind.ROUTE: (("experts", int), ("top_k", int), ("normalise", bool)),
    OpKind.EXPERTS: (("experts", int), ("top_k", int), ("hidden", int), ("intermediate", int), ("activation", str)),
    OpKind.RECURRENCE: (("role", str), ("states", int), ("body", str)),
    OpKind.COMPUTE: (("role", str), ("body", str)),
    OpKind.SAMPLE: (("vocabulary", int),),
}

Attribute = int | float | bool | str | tuple[int, ...]

UNSELECTED: dict[str, Attribute] = {"selected": 0, "block": 1, "selectors": 1}
# Attributes that are not printed, and need not be given, at these values.
DEFAULTS: dict[OpKind, dict[str, Attribute]] = {
    OpKind.LINEAR: {"transposed": False},
    OpKind.HEAD_LINEAR: {"stacked": False},
    OpKind.ROUTED_LINEAR: {"flat": False},
    OpKind.KV_APPEND: {"value_dim": 0},
    OpKind.ATTENTION: {"value_dim": 0, "chunk": 0, "softcap": 0.0, "sinks": False, "bias": False}
    | UNSELECTED
    | {"by_sequence": False, "logsum": False},
    OpKind.LATENT_ATTENTION: {"sinks": False} | UNSELECTED,
}


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
    constants: tuple[Value, ...] = ()

    def types(self) -> dict[str, TensorType]:
        """Return the type of every value by name."""
        results = (result for op in self.ops for result in op.results)
        return {value.name: value.type for value in (*self.inputs, *self.weights, *self.constants, *results)}


def make_attributes(kind: OpKind, *values: Attribute) -> tuple[tuple[str, Attribute], ...]:
    """Return `values` under the names that `kind` gives them, in canonical order; the last may be left at `DEFAULTS`.

    Raises ValueError on a wrong count.
    """
    names = [name for name, _ in ATTRIBUTES[kind]]
    left = [DEFAULTS[kind][name] for name in names[len(values) :] if name in DEFAULTS.get(kind, {})]
    return tuple(zip(names, (*values, *left), strict=True))


def with_defaults(kind: OpKind, given: tuple[tuple[str, Attribute], ...]) -> tuple[tuple[str, Attribute], ...]:
    """Return attributes with those that were left out added at their defaults, each in its place."""
    completed = list(given)
    for place, (name, _) in enumerate(ATTRIBUTES[kind]):
        if name in DEFAULTS.get(kind, {}) and name not in dict(given):
            completed.insert(place, (name, DEFAULTS[kind][name]))
    return tuple(completed)


def _of_type(value: Attribute, expected: type[T]) -> T:
    if not isinstance(value, expected):
        raise TypeError(f"expected an attribute of type {expected.__name__}, found {value!r}")
    return value
