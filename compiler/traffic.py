"""What one decode step holds and moves, counted from the graph: parameters, bytes of weights and caches, operations.

"Per token" means one token of one sequence in a step of batch one. A step of batch B reads each shared matrix once, so
that only embedding rows, cache traffic and operations grow with B; how many distinct experts B tokens choose depends on
the routing and is not decided here. Caches are those of attention and the states of recurrences.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compiler.graph import ELEMENT_BYTES, Graph, Op, OpKind, TensorType
from compiler.signatures import WITH_BODY, value_dim

Types = Mapping[str, TensorType]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Capacities of the whole graph, all sequences of its batch included; traffic and operations per token."""

    parameters: int
    weight_capacity_bytes: int
    weight_bytes_per_token: int
    kv_capacity_bytes: int
    kv_read_bytes_per_token: int
    kv_written_bytes_per_token: int
    flops_per_token: int


def traffic_of(graph: Graph) -> Traffic:
    """Return the traffic record of a verified graph; a parameter that several operators share is held once."""
    types, batch = graph.types(), graph.inputs[0].type.shape[0]
    weights = {weight.name for weight in graph.weights}
    states = sum(_state_bytes(op, types) for op in graph.ops)
    return Traffic(
        parameters=sum(weight.type.elements for weight in graph.weights),
        weight_capacity_bytes=sum(weight.type.bytes for weight in graph.weights),
        weight_bytes_per_token=sum(
            weight_bytes(op, place, types, batch)
            for op in graph.ops
            for place, name in enumerate(op.inputs)
            if name in weights
        ),
        kv_capacity_bytes=states
        + sum(result.type.bytes for op in graph.ops if op.kind in APPENDS for result in op.results),
        kv_read_bytes_per_token=states // batch + sum(_cache_read_bytes(op, types) for op in graph.ops),
        kv_written_bytes_per_token=states // batch + sum(_cache_written_bytes(op) for op in graph.ops),
        flops_per_token=sum(FLOPS[op.kind](op, types, batch) for op in graph.ops if op.kind in FLOPS),
    )


def attended_tokens(op: Op) -> int:
    """Return how many cached tokens an attention reads at its full context: those of its window, chunk or selection."""
    context, attributes = op.integer("context"), dict(op.attributes)
    if attributes.get("chunk"):
        return (context - 1) % op.integer("chunk") + 1
    seen = min(context, op.integer("window") or context)
    return min(seen, op.integer("selected") * op.integer("block") or seen)


def weight_bytes(op: Op, place: int, types: Types, batch: int) -> int:
    """Return the bytes that one token reads of the weight at a place among the operands.

    A row of a table, the chosen experts of a stack, the rows of a matrix that an operator on heads uses; otherwise all
    of it, or what a body reads.
    """
    weight = types[op.inputs[place]]
    match op.kind:
        case OpKind.EMBEDDING:
            return weight.bytes // op.integer("vocabulary") * (op.results[0].type.shape[0] // batch)
        case OpKind.EXPERTS | OpKind.ROUTED_LINEAR:
            return weight.bytes // op.integer("experts") * op.integer("top_k")
        case OpKind.HEAD_LINEAR:
            return _head_elements(op) * ELEMENT_BYTES[weight.dtype]
        case OpKind.COMPUTE | OpKind.RECURRENCE:
            from compiler.body_cost import body_cost  # torch finds the types, and only graphs with bodies need it

            return body_cost(op.text("body"), _operands(op, types)).read_bytes[place]
        case _:
            return weight.bytes


def _operands(op: Op, types: Types) -> tuple[TensorType, ...]:
    return tuple(types[name] for name in op.inputs)


def _head_elements(op: Op) -> int:
    return op.integer("heads") * op.integer("in_features") * op.integer("out_features")


def _state_bytes(op: Op, types: Types) -> int:
    if op.kind is not OpKind.RECURRENCE:
        return 0
    return sum(types[name].bytes for name in op.inputs[: op.integer("states")])


def _cache_read_bytes(op: Op, types: Types) -> int:
    """Return the bytes of caches that one token reads: those of the attended tokens, or of all where it selects."""
    match op.kind:
        case OpKind.ATTENTION:
            tokens, caches = attended_tokens(op), op.inputs[1:3]
        case OpKind.LATENT_ATTENTION:
            tokens, caches = attended_tokens(op), op.inputs[2:4]
        case OpKind.SELECT:
            tokens, caches = op.integer("context"), op.inputs[-2:-1]
        case _:
            return 0
    return sum(tokens * _token_bytes(types[name]) for name in caches)


def _cache_written_bytes(op: Op) -> int:
    return sum(_token_bytes(result.type) for result in op.results) if op.kind in APPENDS else 0


def _token_bytes(cache: TensorType) -> int:
    """Return the bytes of one token of one sequence in a cache [B, heads, context, width]."""
    _, heads, _, width = cache.shape
    return heads * width * ELEMENT_BYTES[cache.dtype]


def _linear_flops(op: Op, _: Types, batch: int) -> int:
    return 2 * op.integer("in_features") * sum(op.integers("parts")) * (op.results[0].type.shape[0] // batch)


def _routed_flops(op: Op, _: Types, __: int) -> int:
    return 2 * op.integer("top_k") * op.integer("in_features") * op.integer("out_features")


def _attention_flops(op: Op, _: Types, __: int) -> int:
    return 2 * op.integer("heads") * (op.integer("head_dim") + value_dim(op)) * attended_tokens(op)


def _latent_flops(op: Op, _: Types, __: int) -> int:
    return 2 * op.integer("heads") * (2 * op.integer("latent") + op.integer("rotary")) * attended_tokens(op)


def _body_flops(op: Op, types: Types, batch: int) -> int:
    """Return the matrix products of a body; of a recurrence also what it does to every element of its states."""
    from compiler.body_cost import body_cost  # torch finds the types, and only graphs with bodies need it

    cost = body_cost(op.text("body"), _operands(op, types))
    return (cost.matrix_operations + (cost.operations if op.kind is OpKind.RECURRENCE else 0)) // batch


APPENDS = (OpKind.KV_APPEND, OpKind.INDEX_APPEND)
# Two operations per multiply-accumulate of matrix products; other element-wise work is left out, as is usual.
FLOPS: dict[OpKind, Callable[[Op, Types, int], int]] = {
    OpKind.LINEAR: _linear_flops,
    OpKind.HEAD_LINEAR: lambda op, _, __: 2 * _head_elements(op),
    OpKind.ROUTED_LINEAR: _routed_flops,
    OpKind.ATTENTION: _attention_flops,
    OpKind.LATENT_ATTENTION: _latent_flops,
    OpKind.SELECT: lambda op, _, __: 2 * op.integer("heads") * op.integer("width") * op.integer("context"),
    OpKind.EXPERTS: lambda op, _, __: 6 * op.integer("top_k") * op.integer("hidden") * op.integer("intermediate"),
    **dict.fromkeys(WITH_BODY, _body_flops),
}
