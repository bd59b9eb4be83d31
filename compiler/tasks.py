"""Tasks: the unique operators of a graph with how often each occurs, and the order in which the step runs them.

Operators are one task when their kind, attributes and the types of all operands and results are equal; the layers of a
model collapse that way. Search and simulation work on tasks, and a step is put together again by `sequence`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from compiler.graph import Attribute, Graph, Op, OpKind, TensorType


@dataclass(frozen=True, slots=True)
class Task:
    """One unique operator; `inputs` and `results` are the types of its operands, weights included, in IR order."""

    name: str
    kind: OpKind
    attributes: tuple[tuple[str, Attribute], ...]
    inputs: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    multiplicity: int

    @property
    def batch(self) -> int:
        """Sequences that decode together."""
        return self.results[0].shape[0]


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """The tasks in order of first use, and per operator in program order its task and the operators it waits for.

    `sequence[i]` is the index in `tasks` of operator i; `dependencies[i]` are the indices, all below i and sorted, of
    the operators whose results operator i reads.
    """

    tasks: tuple[Task, ...]
    sequence: tuple[int, ...]
    dependencies: tuple[tuple[int, ...], ...]

    def task(self, name: str) -> Task:
        """Return the task of that name; raises KeyError."""
        return {task.name: task for task in self.tasks}[name]


Key = tuple[OpKind, tuple[tuple[str, Attribute], ...], tuple[TensorType, ...], tuple[TensorType, ...]]

# What a task is called when its operators do not agree on a name.
KIND_NAMES = {OpKind.NORM: "rms_norm", OpKind.ADD: "residual_add", OpKind.LINEAR: "linear"}


def tasks_of(graph: Graph) -> TaskGraph:
    """Return the tasks of a graph and its program order."""
    types = graph.types()
    keys = [_key(op, types) for op in graph.ops]
    occurrences: dict[Key, list[Op]] = {}
    for key, op in zip(keys, graph.ops, strict=True):
        occurrences.setdefault(key, []).append(op)
    names = _distinct([_common_label(ops) for ops in occurrences.values()])
    tasks = tuple(
        Task(name, *key, multiplicity=len(ops)) for name, (key, ops) in zip(names, occurrences.items(), strict=True)
    )
    index_of = {key: index for index, key in enumerate(occurrences)}
    return TaskGraph(tasks, tuple(index_of[key] for key in keys), _dependencies(graph))


def _key(op: Op, types: dict[str, TensorType]) -> Key:
    inputs = tuple(types[name] for name in op.inputs)
    return op.kind, op.attributes, inputs, tuple(result.type for result in op.results)


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
