"""An exported decode step as raising sees it: which placeholders are parameters, constants, caches or states.

The program is functional: `torch.export` followed by `run_decompositions({})`, so that no call changes its operands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from compiler.body_execution import TORCH_TYPES
from compiler.graph import DType, TensorType, Value
from compiler.raising.patterns import is_cast, target_of
from configs.errors import UserError

# Views that leave the elements in their order; a transposition does where it moves axes of length one only.
RESHAPES = ("aten.view", "aten.reshape", "aten._unsafe_view", "aten.unsqueeze", "aten.squeeze", "aten.flatten")


@dataclass(frozen=True, slots=True)
class Program:
    """The nodes that are evaluated, the graph's inputs, and what the step returns.

    `ids` and `position` are the first two inputs; `states` are the caches and states before the step, each with the
    node that computes it after the step; `returned` are the other outputs. `visible` remembers what masks let through,
    which takes long to find and which layers share.
    """

    nodes: tuple[Node, ...]
    weights: Mapping[Node, Value]
    constants: Mapping[Node, Value]
    inputs: Mapping[Node, Value]
    states: Mapping[Node, Node]
    returned: tuple[Node, ...]
    batch: int
    visible: dict[Node, Any] = field(default_factory=dict, compare=False)

    @property
    def position(self) -> Node | None:
        """The input that holds the position of the token, if the step takes one."""
        return list(self.inputs)[1] if len(self.inputs) > 1 else None


def program_of(exported: ExportedProgram, prefix: str = "") -> Program:
    """Return the view of a functional exported program.

    Its inputs must be the token ids [B], the position [1], then caches and states. States that the step returns, or
    that it changed in place, are paired with their inputs in order. Raises UserError on types that a graph has not.
    """
    for node in exported.graph.nodes:
        stack = node.meta.get("nn_module_stack", {})
        node.meta["nn_module_stack"] = {key: (path.removeprefix(prefix), kind) for key, (path, kind) in stack.items()}
    weights: dict[Node, Value] = {}
    constants: dict[Node, Value] = {}
    inputs: dict[Node, Value] = {}
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder"]
    for node, spec in zip(placeholders, exported.graph_signature.input_specs, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            if isinstance(node.meta.get("val"), torch.Tensor):
                inputs[node] = Value(str(node.target), type_of(node))
        elif not node.users:
            continue  # tied parameters arrive as several placeholders of which one is used
        elif spec.kind is InputKind.PARAMETER:
            weights[node] = Value(str(spec.target).removeprefix(prefix), type_of(node))
        else:
            constants[node] = Value(str(spec.target).removeprefix(prefix), type_of(node))
    returned, states = _outputs(exported, list(inputs)[2:])
    calls = [node for node in exported.graph.nodes if node.op == "call_function"]
    batch = next(iter(inputs.values())).type.shape[0]
    return Program(tuple(calls), weights, constants, inputs, states, returned, batch)


def _outputs(exported: ExportedProgram, states: list[Node]) -> tuple[tuple[Node, ...], dict[Node, Node]]:
    output = next(node for node in exported.graph.nodes if node.op == "output")
    by_name = {node.name: node for node in exported.graph.nodes}
    after: dict[Node, Node] = {}
    returned = []
    for node, spec in zip(output.args[0], exported.graph_signature.output_specs, strict=True):
        if spec.kind is OutputKind.BUFFER_MUTATION:
            raise not_understood(node, "caches and states as arguments of the step", f"a buffer, {spec.target}")
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            target = by_name.get(str(spec.target))
            if target in states:
                after[target] = node
        elif isinstance(node, Node):
            returned.append(node)
    # A step changes all of its states in place, or returns all of them behind the ids.
    alike = [(type_of(one), type_of(state)) for one, state in zip(returned[-len(states) :], states, strict=False)]
    if states and len(returned) > len(states) and all(found == given for found, given in alike):
        first = len(returned) - len(states)
        return tuple(returned[:first]), dict(zip(states, returned[first:], strict=True))
    return tuple(returned), {state: after[state] for state in states if state in after}


def shape_of(node: Node) -> tuple[int, ...]:
    """Return the static shape of what a node computes."""
    return tuple(int(size) for size in node.meta["val"].shape)


def elements_of(node: Node) -> int:
    """Return how many elements a node computes."""
    return int(node.meta["val"].numel())


def type_of(node: Node) -> TensorType:
    """Return the type of what a node computes; raises UserError when a graph has no such element type."""
    return TensorType(dtype_of(node), shape_of(node))


def dtype_of(node: Node) -> DType:
    """Return the element type of what a node computes; raises UserError when a graph has no such type."""
    found = node.meta["val"].dtype
    if found not in TORCH_TYPES:
        raise not_understood(node, f"one of {', '.join(TORCH_TYPES.values())}", str(found))
    return TORCH_TYPES[found]


def is_tensor(node: Node) -> bool:
    """Tell whether a node computes one tensor, not a tuple of them or a number."""
    return isinstance(node.meta.get("val"), torch.Tensor)


def root_of(node: Node) -> Node:
    """Return the node that holds the same elements in the same order, behind all views and casts between floats."""
    while node.op == "call_function":
        source = node.args[0] if node.args else None
        if not isinstance(source, Node) or not is_tensor(source) or not _keeps_elements(node, source):
            return node
        node = source
    return node


def _keeps_elements(node: Node, source: Node) -> bool:
    if is_cast(node):
        return bool(source.meta["val"].is_floating_point() == node.meta["val"].is_floating_point())
    if target_of(node) in RESHAPES:
        return True
    if target_of(node) == "aten.expand":
        return elements_of(node) == elements_of(source)
    if target_of(node) in ("aten.transpose", "aten.permute", "aten.t"):
        return only_moves_unit_axes(node, source)
    if target_of(node) in ("aten.select", "aten.slice"):
        return elements_of(node) == elements_of(source)
    return False


def only_moves_unit_axes(node: Node, source: Node) -> bool:
    """Tell whether a transposition leaves the axes longer than one in their order."""
    axes: list[Any] = list(range(len(shape_of(source))))
    if target_of(node) == "aten.permute":
        order: Any = node.args[1]
        axes = [axis % len(axes) for axis in order]
    elif target_of(node) == "aten.t":
        axes.reverse()
    else:
        first, second = (int(axis) for axis in node.args[1:3])  # type: ignore[arg-type]
        axes[first], axes[second] = axes[second], axes[first]
    long_axes = [axis for axis in axes if shape_of(source)[axis] > 1]
    return long_axes == sorted(long_axes)


def module_path(node: Node) -> str:
    """Return the path of the module that a node was traced in, such as `model.layers.0.self_attn`."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    return str(stack[-1][0]) if stack else ""


def source_line(node: Node) -> str:
    """Return the file, line and text that a node was traced from, outside of torch where there is such a place."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    places = [index for index, line in enumerate(lines) if line.startswith('File "')]
    own = [index for index in places if "/torch/" not in lines[index]] or places
    return " ".join(lines[own[-1] : own[-1] + 2]) if own else "an unknown source line"


def not_understood(node: Node, expected: str, found: str) -> UserError:
    """Return the error that names a node and the source line it was traced from."""
    return UserError(
        where=f"node {node.name} from {source_line(node)}",
        expected=expected,
        found=found,
        way_out="write the module with known operators or add a rule to compiler/raising/rules.py",
    )
