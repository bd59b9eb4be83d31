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
        kv_capacity_bytes=sum(
            result.type.bytes for op in graph.ops if op.kind is OpKind.KV_APPEND for result in op.results
        ),
        kv_read_bytes_per_token=sum(_cache_read_bytes(op, types) for op in graph.ops),
        kv_written_bytes_per_token=sum(_cache_written_bytes(op) for op in graph.ops),
        flops_per_token=sum(FLOPS[op.kind](op) for op in graph.ops if op.kind in FLOPS),
    )


def attended_tokens(op: Op) -> int:
    """Return how many cached tokens an attention reads at its full context: the window cuts it off."""
    return min(op.integer("context"), op.integer("window") or op.integer("context"))


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
    if op.kind is not OpKind.ATTENTION:
        return 0
    elements = attended_tokens(op) * op.integer("kv_heads") * op.integer("head_dim")
    return sum(elements * ELEMENT_BYTES[types[name].dtype] for name in op.inputs[1:3])


def _cache_written_bytes(op: Op) -> int:
    if op.kind is not OpKind.KV_APPEND:
        return 0
    elements = op.integer("kv_heads") * op.integer("head_dim")
    return sum(elements * ELEMENT_BYTES[result.type.dtype] for result in op.results)


# Matrix products only, two operations per multiply-accumulate; element-wise work is left out, as is usual.
FLOPS: dict[OpKind, Callable[[Op], int]] = {
    OpKind.LINEAR: lambda op: 2 * op.integer("in_features") * sum(op.integers("parts")),
    OpKind.ATTENTION: lambda op: 4 * op.integer("heads") * op.integer("head_dim") * attended_tokens(op),
    OpKind.EXPERTS: lambda op: 6 * op.integer("top_k") * op.integer("hidden") * op.integer("intermediate"),
}
