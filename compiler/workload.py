"""The workload of a step: which tasks have a schedule, which are the host's, and what each computes.

Made once per model and scenario from the graph's tasks; `compiler.lowering` turns it with schedules into a step.
"""

from dataclasses import dataclass

from compiler.attention import AttentionShape
from compiler.graph import OpKind
from compiler.linear import LinearShape
from compiler.tasks import Task, TaskGraph
from configs.errors import UserError
from configs.number_format import NumberFormat

VALUE_BYTES = 2  # bf16
GATE_UP_SUFFIX, DOWN_SUFFIX = "_gate_up", "_down"


@dataclass(frozen=True, slots=True)
class StoredFormats:
    """What weights of the layers and KV caches are stored as; embedding, head and routers stay bf16."""

    weights: NumberFormat = NumberFormat.BF16
    cache: NumberFormat = NumberFormat.BF16


BF16_THROUGHOUT = StoredFormats()


@dataclass(frozen=True, slots=True)
class EmbeddingShape:
    """A table of `vocabulary` rows of `width` values, of which one step reads one per sequence."""

    name: str
    vocabulary: int
    width: int
    batch: int


@dataclass(frozen=True, slots=True)
class ExpertsShape:
    """A mixture of experts: `top_k` of `experts` run per token; every expert has a gate/up and a down matrix."""

    name: str
    experts: int
    top_k: int
    gate_up: LinearShape
    down: LinearShape


@dataclass(frozen=True, slots=True)
class HostShape:
    """Work that always runs on the host: bytes moved and floating-point operations per occurrence."""

    name: str
    moved_bytes: int
    operations: int


@dataclass(frozen=True, slots=True)
class AppendShape:
    """Appends the newest K; laid out, and scheduled, by the attention it belongs to."""

    name: str
    attention: AttentionShape


Shape = LinearShape | AttentionShape | EmbeddingShape | ExpertsShape | HostShape | AppendShape
Schedulable = LinearShape | AttentionShape


@dataclass(frozen=True, slots=True)
class Workload:
    """Shapes of the tasks, in the order of the task graph, with multiplicities and program order."""

    model: str
    batch: int
    context: int
    shapes: tuple[Shape, ...]
    multiplicities: tuple[int, ...]
    sequence: tuple[int, ...]
    dependencies: tuple[tuple[int, ...], ...]
    queries: int = 1

    @property
    def tokens(self) -> int:
        """Tokens that one step decodes: the newest `queries` of every sequence."""
        return self.batch * self.queries

    @property
    def schedulables(self) -> tuple[Schedulable, ...]:
        """The operators that have a schedule: linears (experts' included) and attentions."""
        found: list[Schedulable] = []
        for shape in self.shapes:
            match shape:
                case LinearShape() | AttentionShape():
                    found.append(shape)
                case ExpertsShape(gate_up=gate_up, down=down):
                    found.extend((gate_up, down))
                case _:
                    pass
        return tuple(found)


def workload_of(
    graph: TaskGraph,
    model: str,
    batch: int,
    context: int,
    formats: StoredFormats = BF16_THROUGHOUT,
    queries: int = 1,
) -> Workload:
    """Describe every task of a graph; raises UserError for an operator that no part of the back end runs.

    The graph is that of batch x queries tokens: the newest `queries` of each sequence are decoded together.
    """
    attentions = [_attention(task, formats, queries) for task in graph.tasks if task.kind is OpKind.ATTENTION]
    sensitive = _before(graph, {OpKind.SAMPLE, OpKind.ROUTE})
    shapes = tuple(
        _shape(task, attentions, BF16_THROUGHOUT if index in sensitive else formats, queries)
        for index, task in enumerate(graph.tasks)
    )
    return Workload(
        model=model,
        batch=batch,
        context=context,
        shapes=shapes,
        multiplicities=tuple(task.multiplicity for task in graph.tasks),
        sequence=graph.sequence,
        dependencies=graph.dependencies,
        queries=queries,
    )


def _before(graph: TaskGraph, kinds: set[OpKind]) -> set[int]:
    """Return the tasks whose results operators of these kinds take."""
    kind_of = [graph.tasks[index].kind for index in graph.sequence]
    takers = (dependencies for kind, dependencies in zip(kind_of, graph.dependencies, strict=True) if kind in kinds)
    return {graph.sequence[index] for dependencies in takers for index in dependencies}


def _shape(task: Task, attentions: list[AttentionShape], formats: StoredFormats, queries: int) -> Shape:
    match task.kind:
        case OpKind.LINEAR:
            parts, inputs = _integers(task, "parts"), _integer(task, "in_features")
            return LinearShape(task.name, parts, inputs, task.batch, weights=formats.weights)
        case OpKind.ATTENTION:
            return _attention(task, formats, queries)
        case OpKind.KV_APPEND:
            if len(attentions) != 1:
                raise _unsupported(task, f"{len(attentions)} kinds of attention")
            return AppendShape(task.name, attentions[0])
        case OpKind.EMBEDDING:
            return EmbeddingShape(task.name, _integer(task, "vocabulary"), _integer(task, "width"), task.batch)
        case OpKind.EXPERTS:
            return _experts(task, formats)
        case _:
            return _host(task)


def _attention(task: Task, formats: StoredFormats, queries: int) -> AttentionShape:
    context, window = _integer(task, "context"), _integer(task, "window")
    return AttentionShape(
        task.name,
        batch=task.batch // queries,
        heads=_integer(task, "heads"),
        kv_heads=_integer(task, "kv_heads"),
        head_dim=_integer(task, "head_dim"),
        # Each query sees its own window: together they reach back further by the queries before the newest.
        tokens=min(context, window + queries - 1) if window else context,
        cache=formats.cache,
        queries=queries,
    )


def _experts(task: Task, formats: StoredFormats) -> ExpertsShape:
    hidden, intermediate = _integer(task, "hidden"), _integer(task, "intermediate")
    gate_up, down, stored = f"{task.name}{GATE_UP_SUFFIX}", f"{task.name}{DOWN_SUFFIX}", formats.weights
    return ExpertsShape(
        task.name,
        experts=_integer(task, "experts"),
        top_k=_integer(task, "top_k"),
        gate_up=LinearShape(gate_up, (intermediate, intermediate), hidden, 1, weights=stored),
        down=LinearShape(down, (hidden,), intermediate, 1, weights=stored),
    )


# Operations per value of the result that host operators do; each reads its operands and writes its results once.
OPERATIONS_PER_VALUE = {
    OpKind.NORM: 4,
    OpKind.ROTARY: 3,
    OpKind.GATED_ACTIVATION: 8,
    OpKind.ADD: 1,
    OpKind.ROUTE: 10,
    OpKind.SAMPLE: 1,
}


def _host(task: Task) -> HostShape:
    if task.kind not in OPERATIONS_PER_VALUE:
        raise _unsupported(task, str(task.kind))
    moved = sum(operand.bytes for operand in (*task.inputs, *task.results))
    values = max(operand.elements for operand in (*task.inputs, *task.results))
    return HostShape(task.name, moved, OPERATIONS_PER_VALUE[task.kind] * values)


def _unsupported(task: Task, found: str) -> UserError:
    return UserError(
        where=f"task {task.name}",
        expected="an operator the back end runs",
        found=found,
        way_out="use a model of a built-in family",
    )


def _integer(task: Task, name: str) -> int:
    value = dict(task.attributes)[name]
    assert isinstance(value, int)
    return value


def _integers(task: Task, name: str) -> tuple[int, ...]:
    value = dict(task.attributes)[name]
    assert isinstance(value, tuple)
    return tuple(int(item) for item in value)
