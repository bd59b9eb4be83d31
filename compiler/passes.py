"""Rewrites of a raised graph into its canonical form: one literal tuple of passes, applied in order.

Every pass takes a valid graph and returns a valid graph that computes the same outputs. An observer is told what each
of them did.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from compiler.graph import Graph, Op, OpKind, make_attributes
from compiler.verify import verify

Pass = Callable[[Graph], Graph]


@dataclass(frozen=True, slots=True)
class PassRun:
    """One pass over one graph: its name, the graph before and after it, and the seconds it took, verifying included."""

    name: str
    before: Graph
    after: Graph
    seconds: float


PassObserver = Callable[[PassRun], None]


def merge_shared_input_linears(graph: Graph) -> Graph:
    """Let linears that read the same input become one with several parts; the results keep their names.

    q = linear(x, wq) {parts=(n1)}; k = linear(x, wk) {parts=(n2)}  -->  q, k = linear(x, wq, wk) {parts=(n1,n2)}
    """
    groups: dict[tuple[object, ...], list[Op]] = {}
    for op in graph.ops:
        if op.kind is OpKind.LINEAR:
            groups.setdefault(_merge_key(op), []).append(op)
    ops = []
    for op in graph.ops:
        group = groups[_merge_key(op)] if op.kind is OpKind.LINEAR else [op]
        # The others only need x and weights, so that they may all run where the first one does.
        if op is group[0]:
            ops.append(_merge(group) if len(group) > 1 else op)
    return replace(graph, ops=tuple(ops))


def drop_dead_ops(graph: Graph) -> Graph:
    """Remove operators none of whose results is read or is an output, and weights that no operator reads then.

    a = add(x, y); b = add(x, z); output b  -->  b = add(x, z); output b
    """
    needed, kept = set(graph.outputs), []
    for op in reversed(graph.ops):
        if any(result.name in needed for result in op.results):
            kept.append(op)
            needed.update(op.inputs)
    weights = tuple(weight for weight in graph.weights if weight.name in needed)
    constants = tuple(constant for constant in graph.constants if constant.name in needed)
    return replace(graph, weights=weights, constants=constants, ops=tuple(reversed(kept)))


PASSES: tuple[Pass, ...] = (drop_dead_ops, merge_shared_input_linears)


def run_passes(graph: Graph, passes: tuple[Pass, ...] = PASSES, observer: PassObserver | None = None) -> Graph:
    """Return the graph after all passes, verified before the first and after each; raises VerifyError.

    An observer is told of every pass, in order, and changes nothing.
    """
    verify(graph)
    for rewrite in passes:
        started, before = perf_counter(), graph
        graph = rewrite(before)
        verify(graph)
        if observer is not None:
            observer(PassRun(rewrite.__name__, before, graph, perf_counter() - started))
    return graph


def _merge_key(op: Op) -> tuple[object, ...]:
    return op.inputs[0], op.flag("bias"), op.flag("transposed"), op.results[0].type.dtype


def _merge(group: list[Op]) -> Op:
    """Return one linear with all parts of the group: first the weights of all, then their biases."""
    first = group[0]
    part_counts = [len(op.integers("parts")) for op in group]
    weights = [name for op, count in zip(group, part_counts, strict=True) for name in op.inputs[1 : 1 + count]]
    biases = [name for op, count in zip(group, part_counts, strict=True) for name in op.inputs[1 + count :]]
    parts = tuple(part for op in group for part in op.integers("parts"))
    return Op(
        kind=OpKind.LINEAR,
        inputs=(first.inputs[0], *weights, *biases),
        results=tuple(result for op in group for result in op.results),
        attributes=make_attributes(OpKind.LINEAR, first.integer("in_features"), parts, *_flags(first)),
    )


def _flags(linear: Op) -> tuple[bool, bool]:
    return linear.flag("bias"), linear.flag("transposed")
