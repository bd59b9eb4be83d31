"""Memory-bound work that no operator describes: what a faithful graph must not hide, counted and located.

A computation or a recurrence may work on activations and vectors: they are small, as are parameters and buffers of
which no more elements are read than an activation beside them has, than all results together or than the widest input
of a linear. A computation on weights and buffers alone is done once, when they are loaded, and its result counts as a
weight. What reads more of a matrix, or a cache or a state, moves bytes that schedules and traffic know nothing of; so
does a recurrence whose form is not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.graph import ELEMENT_BYTES, Graph, Op, OpKind, TensorType, Value
from compiler.signatures import WITH_BODY

OTHER = "other"
# The kernel of a convolution has a column more than the state, which holds the tokens before: twice as many at most.
KERNEL_TO_STATE = 2
WRITTEN = (OpKind.KV_APPEND, OpKind.INDEX_APPEND, OpKind.RECURRENCE)


@dataclass(frozen=True, slots=True)
class Unmatched:
    """One computation that moves weights or states: its operator, the bytes it reads, and where it was traced from."""

    op: str
    moved_bytes: int
    calls: str
    source: str


def unmatched_of(graph: Graph, sources: Mapping[str, str]) -> tuple[Unmatched, ...]:
    """Return the operators of a graph that are memory-bound without being understood, in program order."""
    types, batch = graph.types(), graph.inputs[0].type.shape[0]
    small = max((op.integer("in_features") for op in graph.ops if op.kind is OpKind.LINEAR), default=0)
    held = (*graph.weights, *graph.constants)
    weights = {value.name for value in held}
    matrices = {value.name for value in held if _is_matrix(value.type) and value.type.elements > small}
    states = {value.name for value in graph.inputs[2:]}
    states |= {result.name for op in graph.ops if op.kind in WRITTEN for result in _states_after(op)}
    found = []
    for op in graph.ops:
        if op.kind is OpKind.COMPUTE and op.inputs and weights.issuperset(op.inputs):
            weights |= {result.name for result in op.results}
            matrices |= {result.name for result in op.results if not matrices.isdisjoint(op.inputs)}
            continue
        moved = _moved(op, types, matrices, states, batch)
        if moved:
            calls = " ".join(dict.fromkeys(one.split(".")[1] for one in op.text("body").split() if "aten." in one))
            found.append(Unmatched(op.name, moved, calls, sources.get(op.name, "")))
    return tuple(found)


def _moved(op: Op, types: Mapping[str, TensorType], matrices: set[str], states: set[str], batch: int) -> int:
    if op.kind not in WITH_BODY:
        return 0
    understood = op.integer("states") if op.kind is OpKind.RECURRENCE and op.text("role") != OTHER else 0
    moved = sum(types[name].bytes for name in op.inputs[understood:] if name in states)
    beside = [types[name].elements for name in op.inputs if name not in matrices]
    widest = max(*beside, sum(types[result.name].elements for result in op.results), 0) // batch
    if op.kind is OpKind.RECURRENCE:
        widest *= KERNEL_TO_STATE
    if all(name not in matrices or types[name].elements <= widest for name in op.inputs):
        return moved
    from compiler.body_cost import body_cost  # torch finds the types, and few bodies read a matrix

    read = body_cost(op.text("body"), tuple(types[name] for name in op.inputs)).read_bytes
    return moved + sum(
        size
        for name, size in zip(op.inputs, read, strict=True)
        if name in matrices and size > widest * ELEMENT_BYTES[types[name].dtype]
    )


def _states_after(op: Op) -> tuple[Value, ...]:
    return op.results[: op.integer("states")] if op.kind is OpKind.RECURRENCE else op.results


def _is_matrix(found: TensorType) -> bool:
    return sum(size > 1 for size in found.shape) > 1
