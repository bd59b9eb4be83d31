"""What one decode step holds and moves, counted from the graph: parameters, bytes of weights and cache, operations.

"Per token" means one token of one sequence in a step of batch one. A step of batch B reads each shared matrix once, so
that only embedding rows, cache traffic and operations grow with B; how many distinct experts B tokens choose depends on
the routing and is not decided here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from compiler.graph import ELEMENT_BYTES, Graph, Op, OpKind, TensorType


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
    types = graph.types()
    weights = {weight.name for weight in graph.weights}
    return Traffic(
        parameters=sum(weight.type.elements for weight in graph.weights),
        weight_capacity_bytes=sum(weight.type.bytes for weight in graph.weights),
        weight_bytes_per_token=sum(
            _weight_bytes(op, types[name]) for op in graph.ops for name in op.inputs if name in weights
        ),
        kv_capacity_bytes=sum(result.type.bytes for op in graph.ops if op.kind in APPENDS for result in op.results),
        kv_read_bytes_per_token=sum(_cache_read_bytes(op, types) for op in graph.ops),
        kv_written_bytes_per_token=sum(_cache_written_bytes(op) for op in graph.ops),
        flops_per_token=sum(FLOPS[op.kind](op) for op in graph.ops if op.kind in FLOPS),
    )


def attended_tokens(op: Op) -> int:
    """Return how many cached tokens an attention reads at its full context: a window or a selection cuts it off."""
    seen = min(op.integer("context"), op.integer("window") or op.integer("context"))
    return min(seen, op.integer("selected") * op.integer("block") or seen)


def _weight_bytes(op: Op, weight: TensorType) -> int:
    """Return the bytes of one weight operand that one token reads: a row of a table, the chosen experts of a stack."""
    match op.kind:
        case OpKind.EMBEDDING:
            return weight.bytes // op.integer("vocabulary")
        case OpKind.EXPERTS:
            return weight.bytes // op.integer("experts") * op.integer("top_k")
        case _:
            return weight.bytes


def _cache_read_bytes(op: Op, types: dict[str, TensorType]) -> int:
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


APPENDS = (OpKind.KV_APPEND, OpKind.INDEX_APPEND)
# Matrix products only, two operations per multiply-accumulate; element-wise work is left out, as is usual.
FLOPS: dict[OpKind, Callable[[Op], int]] = {
    OpKind.LINEAR: lambda op: 2 * op.integer("in_features") * sum(op.integers("parts")),
    OpKind.ATTENTION: lambda op: 4 * op.integer("heads") * op.integer("head_dim") * attended_tokens(op),
    OpKind.LATENT_ATTENTION: lambda op: (
        2 * op.integer("heads") * (2 * op.integer("latent") + op.integer("rotary")) * attended_tokens(op)
    ),
    OpKind.SELECT: lambda op: 2 * op.integer("heads") * op.integer("width") * op.integer("context"),
    OpKind.EXPERTS: lambda op: 6 * op.integer("top_k") * op.integer("hidden") * op.integer("intermediate"),
}
