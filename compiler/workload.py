"""The workload of a step: which tasks have a schedule, which are the host's, and what each computes.

Made once per model and scenario from the graph's tasks; `compiler.lowering` turns it with schedules into a step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.attention import AttentionShape
from compiler.graph import DType, OpKind
from compiler.linear import LinearShape
from compiler.signatures import WITH_BODY
from compiler.tasks import CHOICES, Task, TaskGraph
from configs.number_format import NumberFormat

VALUE_BYTES = 2  # bf16
GATE_UP_SUFFIX, DOWN_SUFFIX, EXPERT_SUFFIX = "_gate_up", "_down", "_expert"


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
class RoutedShape:
    """One matrix of `experts` experts each, of which `top_k` run per token."""

    name: str
    experts: int
    top_k: int
    linear: LinearShape


@dataclass(frozen=True, slots=True)
class HostShape:
    """Work that always runs on the host: bytes moved and floating-point operations per occurrence.

    Products of matrices are counted apart, and what stays in the host's memory between steps: weights and states.
    """

    name: str
    moved_bytes: int
    operations: int
    matrix_operations: int = 0
    weight_bytes: int = 0
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FreeShape:
    """What no step pays for: another view of values, and what is computed when weights are loaded."""

    name: str


@dataclass(frozen=True, slots=True)
class AppendShape:
    """Appends the newest K; laid out, and scheduled, by the attention it belongs to."""

    name: str
    attention: AttentionShape


Shape = LinearShape | AttentionShape | EmbeddingShape | ExpertsShape | RoutedShape | HostShape | FreeShape | AppendShape
Schedulable = LinearShape | AttentionShape


@dataclass(frozen=True, slots=True)
class Workload:
    """Shapes of the tasks, in the order of the task graph, with multiplicities, stored copies and program order.

    `routings` counts the choices of experts along the program; what has the same one works for the same experts.
    """

    model: str
    batch: int
    context: int
    shapes: tuple[Shape, ...]
    multiplicities: tuple[int, ...]
    copies: tuple[int, ...]
    sequence: tuple[int, ...]
    dependencies: tuple[tuple[int, ...], ...]
    routings: tuple[int | None, ...]
    queries: int = 1

    @property
    def tokens(self) -> int:
        """Tokens that one step decodes: the newest `queries` of every sequence."""
        return self.batch * self.queries

    @property
    def lookups(self) -> int:
        """How often a step looks rows up in a table of embeddings."""
        pairs = zip(self.shapes, self.multiplicities, strict=True)
        return sum(count for shape, count in pairs if isinstance(shape, EmbeddingShape))

    def routings_of(self, index: int) -> tuple[int, ...]:
        """Return the choices of experts that the operators of a task work for."""
        pairs = zip(self.sequence, self.routings, strict=True)
        return tuple(routing for task, routing in pairs if task == index and routing is not None)

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
                case RoutedShape(linear=linear):
                    found.append(linear)
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
    """Describe every task of a graph; what no unit can run is the host's.

    The graph is that of batch x queries tokens: the newest `queries` of each sequence are decoded together. Operators
    of a graph with computations wait for the one before: which of its many could run side by side is not modelled.
    """
    attentions = {
        index: _attention(task, formats, queries)
        for index, task in enumerate(graph.tasks)
        if task.kind in (OpKind.ATTENTION, OpKind.LATENT_ATTENTION)
    }
    sensitive = _before(graph)
    shapes = tuple(
        attentions[index]
        if index in attentions
        else _shape(task, attentions, BF16_THROUGHOUT if index in sensitive else formats)
        for index, task in enumerate(graph.tasks)
    )
    in_turn = any(task.kind in WITH_BODY for task in graph.tasks)
    return Workload(
        model=model,
        batch=batch,
        context=context,
        shapes=shapes,
        multiplicities=tuple(task.multiplicity for task in graph.tasks),
        copies=tuple(task.copies for task in graph.tasks),
        sequence=graph.sequence,
        dependencies=_in_turn(graph.dependencies) if in_turn else graph.dependencies,
        routings=graph.routings,
        queries=queries,
    )


def _in_turn(dependencies: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Let every operator also wait for the one before it."""
    return tuple(tuple(sorted({*waits, index - 1})) if index else waits for index, waits in enumerate(dependencies))


# What the choices of tokens and of experts are made by, through computations.
DECIDING = (OpKind.SAMPLE, OpKind.ROUTE)


def _before(graph: TaskGraph) -> set[int]:
    """Return the tasks whose results decide on tokens or experts, directly or through computations."""
    kinds = [graph.tasks[index].kind for index in graph.sequence]
    deciding = [kind in DECIDING for kind in kinds]
    for place in range(len(kinds) - 1, -1, -1):
        choices = kinds[place] in CHOICES
        for before in graph.dependencies[place]:
            through = deciding[place] and kinds[place] in (*DECIDING, OpKind.COMPUTE)
            routes = choices and kinds[before] is OpKind.COMPUTE and _makes_indices(graph.tasks[graph.sequence[before]])
            deciding[before] = deciding[before] or through or routes
    return {index for index, decides in zip(graph.sequence, deciding, strict=True) if decides}


def _makes_indices(task: Task) -> bool:
    return any(result.dtype is DType.I64 for result in task.results)


def _shape(task: Task, attentions: Mapping[int, AttentionShape], formats: StoredFormats) -> Shape:
    match task.kind:
        case OpKind.LINEAR:
            parts, inputs = _integers(task, "parts"), _integer(task, "in_features")
            bias = bool(dict(task.attributes)["bias"])
            return LinearShape(task.name, parts, inputs, task.batch, weights=formats.weights, bias=bias)
        case OpKind.HEAD_LINEAR:
            parts, inputs, heads = (_integer(task, "out_features"),), _integer(task, "in_features"), "heads"
            return LinearShape(
                task.name, parts, inputs, task.batch, weights=formats.weights, heads=_integer(task, heads)
            )
        case OpKind.KV_APPEND:
            return _append(task) if task.reader is None else AppendShape(task.name, attentions[task.reader])
        case OpKind.EMBEDDING:
            return EmbeddingShape(task.name, _integer(task, "vocabulary"), _integer(task, "width"), task.batch)
        case OpKind.EXPERTS:
            return _experts(task, formats)
        case OpKind.ROUTED_LINEAR:
            return _routed(task, formats)
        case OpKind.COMPUTE | OpKind.RECURRENCE:
            return _body(task)
        case _:
            return _host(task)


def _attention(task: Task, formats: StoredFormats, queries: int) -> AttentionShape:
    context, window = _integer(task, "context"), _integer(task, "window")
    latent = task.kind is OpKind.LATENT_ATTENTION
    chunk = 0 if latent else _integer(task, "chunk")
    kv_heads, head_dim, value_dim = _cache_sizes(task)
    longest = (window or chunk) + queries - 1
    shape = AttentionShape(
        task.name,
        batch=task.batch // queries,
        heads=_integer(task, "heads"),
        kv_heads=kv_heads,
        head_dim=head_dim,
        tokens=attended(context, window, chunk, queries),
        capacity=min(context, longest) if chunk else 0,
        cache=formats.cache,
        queries=queries,
        value_dim=value_dim,
        latent=latent,
        limit=longest if window or chunk else 0,
    )
    if latent:
        return shape
    attributes = dict(task.attributes)
    return replace(
        shape,
        softcap=bool(attributes["softcap"]),
        sinks=bool(attributes["sinks"]),
        bias_heads=task.inputs[-1].shape[0] if attributes["bias"] else 0,
    )


def _cache_sizes(task: Task) -> tuple[int, int, int]:
    """Return KV heads, and the widths of keys and of values, 0 for equal ones.

    Latent attention is that of one head whose keys are the latent and the rotary part, and whose values the latent.
    """
    if task.kind is OpKind.LATENT_ATTENTION:
        return 1, _integer(task, "latent") + _integer(task, "rotary"), _integer(task, "latent")
    return _integer(task, "kv_heads"), _integer(task, "head_dim"), _integer(task, "value_dim")


def attended(context: int, window: int, chunk: int, queries: int) -> int:
    """Return the tokens that the newest queries see together, from the first that the first of them does."""
    first = context - queries  # the first query's own place
    if window:
        return min(context, window + queries - 1)
    return context - (first - first % chunk) if chunk else context


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


def _routed(task: Task, formats: StoredFormats) -> RoutedShape:
    parts, inputs = (_integer(task, "out_features"),), _integer(task, "in_features")
    bias = bool(dict(task.attributes)["bias"])
    return RoutedShape(
        task.name,
        experts=_integer(task, "experts"),
        top_k=_integer(task, "top_k"),
        linear=LinearShape(f"{task.name}{EXPERT_SUFFIX}", parts, inputs, 1, weights=formats.weights, bias=bias),
    )


def _append(task: Task) -> HostShape:
    """Return the write to a cache that no attention reads, but a computation: the host has it."""
    moved = 2 * sum(operand.bytes for operand in task.inputs[:2])
    return HostShape(task.name, moved, 0, state_bytes=sum(result.bytes for result in task.results))


def _body(task: Task) -> HostShape | FreeShape:
    """Return a computation or a recurrence, on the host."""
    from compiler.body_cost import body_cost  # torch finds the types, and only graphs with bodies need it

    cost = body_cost(str(dict(task.attributes)["body"]), task.inputs)
    states = _integer(task, "states") if task.kind is OpKind.RECURRENCE else 0
    if task.is_fixed or (cost.is_view and not states):
        return FreeShape(task.name)
    held = dict(zip(task.fixed, task.fixed_bytes, strict=True))
    read = sum(min(size, held.get(place, size)) for place, size in enumerate(cost.read_bytes))
    return HostShape(
        task.name,
        read + cost.written_bytes,
        cost.operations,
        cost.matrix_operations,
        weight_bytes=sum(task.fixed_bytes),
        state_bytes=sum(operand.bytes for operand in task.inputs[:states]),
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
    moved = sum(operand.bytes for operand in (*task.inputs, *task.results))
    values = max(operand.elements for operand in (*task.inputs, *task.results))
    return HostShape(task.name, moved, OPERATIONS_PER_VALUE[task.kind] * values)


def _integer(task: Task, name: str) -> int:
    value = dict(task.attributes)[name]
    assert isinstance(value, int)
    return value


def _integers(task: Task, name: str) -> tuple[int, ...]:
    value = dict(task.attributes)[name]
    assert isinstance(value, tuple)
    return tuple(int(item) for item in value)
