"""The workload of a step: which tasks have a schedule, which are the host's, and what each computes.

Made once per model and scenario from the graph's tasks; `compiler.lowering` turns it with schedules into a step.
"""

from dataclasses import dataclass

from compiler.attention import AttentionShape
from compiler.graph import OpKind
from compiler.linear import LinearShape
from compiler.tasks import Task, TaskGraph
from configs.errors import UserError

VALUE_BYTES = 2  # bf16
GATE_UP_SUFFIX, DOWN_SUFFIX = "_gate_up", "_down"


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


def workload_of(graph: TaskGraph, model: str, batch: int, context: int) -> Workload:
    """Describe every task of a graph; raises UserError for an operator that no part of the back end runs."""
    attentions = [_attention(task) for task in graph.tasks if task.kind is OpKind.ATTENTION]
    shapes = tuple(_shape(task, attentions) for task in graph.tasks)
    return Workload(
        model=model,
        batch=batch,
        context=context,
        shapes=shapes,
        multiplicities=tuple(task.multiplicity for task in graph.tasks),
        sequence=graph.sequence,
        dependencies=graph.dependencies,
    )


def _shape(task: Task, attentions: list[AttentionShape]) -> Shape:
    match task.kind:
        case OpKind.LINEAR:
            return LinearShape(task.name, _integers(task, "parts"), _integer(task, "in_features"), task.batch)
        case OpKind.ATTENTION:
            return _attention(task)
        case OpKind.KV_APPEND:
            if len(attentions) != 1:
                raise _unsupported(task, f"{len(attentions)} kinds of attention")
            return AppendShape(task.name, attentions[0])
        case OpKind.EMBEDDING:
            return EmbeddingShape(task.name, _integer(task, "vocabulary"), _integer(task, "width"), task.batch)
        case OpKind.EXPERTS:
            return _experts(task)
        case _:
            return _host(task)


def _attention(task: Task) -> AttentionShape:
    context, window = _integer(task, "context"), _integer(task, "window")
    return AttentionShape(
        task.name,
        batch=task.batch,
        heads=_integer(task, "heads"),
        kv_heads=_integer(task, "kv_heads"),
        head_dim=_integer(task, "head_dim"),
        tokens=min(context, window) if window else context,
    )


def _experts(task: Task) -> ExpertsShape:
    hidden, intermediate = _integer(task, "hidden"), _integer(task, "intermediate")
    return ExpertsShape(
        task.name,
        experts=_integer(task, "experts"),
        top_k=_integer(task, "top_k"),
        gate_up=LinearShape(f"{task.name}{GATE_UP_SUFFIX}", (intermediate, intermediate), hidden, 1),
        down=LinearShape(f"{task.name}{DOWN_SUFFIX}", (hidden,), intermediate, 1),
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
