"""Tasks: the unique operators of a graph with how often each occurs, and the order in which the step runs them.

Operators are one task when their kind, attributes and the types of all operands and results are equal, and which
operands are known when weights are loaded; the layers of a model collapse that way. Writes to caches are one task only
where the attentions that read them are one. Search and simulation work on tasks, and a step is put together again by
`sequence`.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from compiler.graph import ELEMENT_BYTES, Attribute, Graph, Op, OpKind, TensorType


@dataclass(frozen=True, slots=True)
class Task:
    """One unique operator; `inputs` and `results` are the types of its operands, weights included, in IR order.

    `fixed` are the places of operands that follow from parameters alone, `fixed_bytes` what it takes to hold each: less
    than its size where it repeats values. `copies` counts the different sets of weights, or of caches and states, that
    its operators read: fewer than operators where layers share them. `reader` is the task of the attention that reads
    the caches of a write.
    """

    name: str
    kind: OpKind
    attributes: tuple[tuple[str, Attribute], ...]
    inputs: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    fixed: tuple[int, ...]
    fixed_bytes: tuple[int, ...]
    multiplicity: int
    copies: int
    reader: int | None = None

    @property
    def batch(self) -> int:
        """Sequences that decode together."""
        return self.results[0].shape[0]

    @property
    def is_fixed(self) -> bool:
        """Whether it can be computed when weights are loaded."""
        return self.kind is OpKind.COMPUTE and len(self.fixed) == len(self.inputs)


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """The tasks in order of first use, and per operator in program order its task and the operators it waits for.

    `sequence[i]` is the index in `tasks` of operator i; `dependencies[i]` are the indices, all below i and sorted, of
    the operators whose results operator i reads. `routings[i]` counts the choices of experts in their order: operators
    with the same one work for the same experts; None where operator i has none to choose.
    """

    tasks: tuple[Task, ...]
    sequence: tuple[int, ...]
    dependencies: tuple[tuple[int, ...], ...]
    routings: tuple[int | None, ...]

    def task(self, name: str) -> Task:
        """Return the task of that name; raises KeyError."""
        return {task.name: task for task in self.tasks}[name]


Types = tuple[TensorType, ...]
Key = tuple[OpKind, tuple[tuple[str, Attribute], ...], Types, Types, tuple[int, ...], tuple[int, ...]]
Unique = tuple[Key, Key | None]  # an operator's, and that of the attention that reads what it writes

ATTENTIONS = (OpKind.ATTENTION, OpKind.LATENT_ATTENTION)
# Where the caches are among the operands of a kind.
CACHES = {
    OpKind.KV_APPEND: slice(2, 4),
    OpKind.ATTENTION: slice(1, 3),
    OpKind.LATENT_ATTENTION: slice(2, 4),
}
CHOICES = {OpKind.ROUTED_LINEAR: 1, OpKind.EXPERTS: 1}  # which operand says which experts work

# What a task is called when its operators do not agree on a name.
KIND_NAMES = {OpKind.NORM: "rms_norm", OpKind.ADD: "residual_add", OpKind.LINEAR: "linear"}


def tasks_of(graph: Graph) -> TaskGraph:
    """Return the tasks of a graph and its program order."""
    types = graph.types()
    fixed = _fixed_values(graph, types)
    keys = {op.name: _key(op, types, fixed) for op in graph.ops}
    readers = _readers(graph)
    unique: list[Unique] = [(keys[op.name], keys.get(readers.get(op.name, ""))) for op in graph.ops]
    occurrences: dict[Unique, list[Op]] = {}
    for both, op in zip(unique, graph.ops, strict=True):
        occurrences.setdefault(both, []).append(op)
    names = _distinct([_common_label(ops) for ops in occurrences.values()])
    index_of = {both: index for index, both in enumerate(occurrences)}
    tasks = tuple(
        Task(
            name,
            *key,
            multiplicity=len(ops),
            copies=len({_stored(op, fixed) for op in ops}),
            reader=None if reader is None else index_of[reader, None],
        )
        for name, ((key, reader), ops) in zip(names, occurrences.items(), strict=True)
    )
    return TaskGraph(tasks, tuple(index_of[both] for both in unique), _dependencies(graph), _routings(graph))


def _fixed_values(graph: Graph, types: Mapping[str, TensorType]) -> dict[str, int]:
    """Return weights, constants, and what computations make of these alone, with the bytes that it takes to hold each.

    A result that is larger than what it is made of is held as that, in the result's type: most repeat their values.
    """
    fixed = {value.name: value.type.bytes for value in (*graph.weights, *graph.constants)}
    for op in graph.ops:
        if op.kind is OpKind.COMPUTE and fixed.keys() >= set(op.inputs):
            made_of = sum(types[name].elements for name in op.inputs)
            for result in op.results:
                elements = min(result.type.elements, made_of or result.type.elements)
                fixed[result.name] = elements * ELEMENT_BYTES[result.type.dtype]
    return fixed


def _key(op: Op, types: Mapping[str, TensorType], fixed: Mapping[str, int]) -> Key:
    inputs = tuple(types[name] for name in op.inputs)
    places = tuple(place for place, name in enumerate(op.inputs) if name in fixed)
    held = tuple(fixed[op.inputs[place]] for place in places)
    return op.kind, op.attributes, inputs, tuple(result.type for result in op.results), places, held


def _readers(graph: Graph) -> dict[str, str]:
    """Return the first attention that reads the caches that an operator writes, by names."""
    readers: dict[str, str] = {}
    for op in graph.ops:
        if op.kind in ATTENTIONS:
            for name in op.inputs[CACHES[op.kind]]:
                readers.setdefault(name, op.name)
    return {op.name: readers[op.name] for op in graph.ops if op.kind is OpKind.KV_APPEND and op.name in readers}


def _stored(op: Op, fixed: Container[str]) -> tuple[str, ...]:
    """Return the names of what an operator needs a place for between steps."""
    if op.kind in CACHES:
        return op.inputs[CACHES[op.kind]]
    states = op.inputs[: op.integer("states")] if op.kind is OpKind.RECURRENCE else ()
    return states or tuple(name for name in op.inputs if name in fixed)


def _routings(graph: Graph) -> tuple[int | None, ...]:
    chosen = [op.inputs[CHOICES[op.kind]] if op.kind in CHOICES else None for op in graph.ops]
    number = {name: place for place, name in enumerate(dict.fromkeys(name for name in chosen if name is not None))}
    return tuple(None if name is None else number[name] for name in chosen)


def _dependencies(graph: Graph) -> tuple[tuple[int, ...], ...]:
    producers = {result.name: index for index, op in enumerate(graph.ops) for result in op.results}
    return tuple(tuple(sorted({producers[name] for name in op.inputs if name in producers})) for op in graph.ops)


def _common_label(ops: Iterable[Op]) -> str:
    labels = {_label(op) for op in ops}
    kind = next(iter(ops)).kind
    return labels.pop() if len(labels) == 1 else KIND_NAMES.get(kind, str(kind))


def _label(op: Op) -> str:
    """Return a name from the last part of the results' names: q_proj, k_proj, v_proj  -->  qkv_proj."""
    if op.kind not in (OpKind.LINEAR, OpKind.NORM, OpKind.ROTARY):
        return KIND_NAMES.get(op.kind, str(op.kind))
    parts = [result.name.rsplit(".", 1)[-1] for result in op.results]
    suffix = "_proj" if len(parts) > 1 and all(part.endswith("_proj") for part in parts) else ""
    stems = [part.removesuffix(suffix) for part in parts]
    return ("" if all(len(stem) == 1 for stem in stems) else "_").join(stems) + suffix


def _distinct(labels: list[str]) -> list[str]:
    """Number the labels that occur more than once: attention, attention  -->  attention, attention_2."""
    seen: Counter[str] = Counter()
    names = []
    for label in labels:
        seen[label] += 1
        names.append(label if seen[label] == 1 else f"{label}_{seen[label]}")
    return names
