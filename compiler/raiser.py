"""The graph under construction while an exported program is walked, and the error for what is not understood."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from compiler.graph import Attribute, DType, Graph, Op, OpKind, TensorType, Value, make_attributes
from compiler.patterns import Match, target_of
from configs.errors import UserError

TORCH_TYPES = {
    torch.bfloat16: DType.BF16,
    torch.float16: DType.F16,
    torch.float32: DType.F32,
    torch.float64: DType.F64,
    torch.int64: DType.I64,
}
# Calls without a value: checks that the exporter adds.
NOISE = ("aten._assert_tensor_metadata",)


class Raiser:
    """The graph under construction, and what each node of the program has become."""

    def __init__(self, program: ExportedProgram) -> None:
        """Sort the placeholders into weights, caches and activations; raises UserError on stored constants in use."""
        self.nodes: list[Node] = list(program.graph.nodes)
        self.weights: dict[Node, Value] = {}
        self.inputs: dict[Node, Value] = {}
        self.activations: dict[Node, Value] = {}
        self.cache_writes: dict[Node, Node] = {}
        self.covered: set[Node] = set()
        self.ops: list[Op] = []
        self.caches_after: list[str] = []
        self._names: set[str] = set()
        placeholders = [node for node in self.nodes if node.op == "placeholder"]
        for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
            self._place(node, spec.kind, spec.target)
        self.batch = next(iter(self.inputs.values())).type.shape[0]

    def _place(self, node: Node, kind: InputKind, target: str | None) -> None:
        if kind is InputKind.USER_INPUT:
            self.inputs[node] = self._value(str(node.target), node)
            if self.inputs[node].type.dtype is DType.I64:
                self.activations[node] = self.inputs[node]
        elif kind is InputKind.PARAMETER and node.users:
            # Tied parameters arrive as several placeholders of which one is used; the others are not read by the step.
            self.weights[node] = self._value(str(target), node)
        elif node.users:
            raise not_understood(node, "a parameter or an input of the step", f"a stored {kind.name.lower()}")

    def _value(self, name: str, node: Node) -> Value:
        return Value(self.fresh_name(name), TensorType(dtype_of(node), tuple(int(size) for size in shape_of(node))))

    def fresh_name(self, wish: str) -> str:
        """Return `wish`, numbered if it is taken."""
        name, number = wish, 2
        while name in self._names:
            name, number = f"{wish}_{number}", number + 1
        self._names.add(name)
        return name

    def flat(self, name: str, node: Node) -> Value:
        """Return a new value that holds what `node` computes, as [B, width], or as [B] if it is an index."""
        width = node.meta["val"].numel() // self.batch
        shape = (self.batch,) if dtype_of(node) is DType.I64 else (self.batch, width)
        return Value(self.fresh_name(name), TensorType(dtype_of(node), shape))

    def emit(
        self, kind: OpKind, inputs: Sequence[Value], results: Sequence[Value], attributes: Sequence[Attribute]
    ) -> None:
        """Append one operator."""
        names = tuple(value.name for value in inputs)
        self.ops.append(Op(kind, names, tuple(results), make_attributes(kind, *attributes)))

    def emit_result(
        self,
        node: Node,
        kind: OpKind,
        name: str,
        operands: Sequence[Value],
        attributes: Sequence[Attribute],
        found: Match | None = None,
    ) -> bool:
        """Emit the operator whose one result is what `node` computes and mark what its pattern covered; return True."""
        result = self.flat(name.lstrip("."), node)
        self.emit(kind, operands, [result], attributes)
        self.activations[node] = result
        self.covered.update(found.covered if found else ())
        return True

    def _is_understood(self, node: Node) -> bool:
        if node.op not in ("call_function", "get_attr") or target_of(node) in NOISE:
            return True
        return node in self.activations or node in self.covered

    def finish(self, name: str) -> Graph:
        """Return the graph, after checking that every node was understood."""
        for node in self.nodes:
            if not self._is_understood(node):
                raise not_understood(node, "an operator or a pattern that can be raised", node.format_node() or "")
        for node in self.nodes[-1].all_input_nodes:
            if node not in self.activations:
                raise not_understood(node, "an output that is the result of an operator", "the inside of a pattern")
        outputs = [self.activations[node].name for node in self.nodes[-1].all_input_nodes]
        return Graph(
            name=name,
            inputs=tuple(self.inputs.values()),
            weights=tuple(self.weights.values()),
            ops=tuple(self.ops),
            outputs=(*outputs, *self.caches_after),
        )


def all_known(values: Mapping[Node, Value], nodes: Sequence[Any]) -> list[Value]:
    """Return the values of all nodes, or nothing if one of them is not known."""
    known = [values[node] for node in nodes if isinstance(node, Node) and node in values]
    return known if len(known) == len(nodes) else []


def shape_of(node: Node) -> tuple[int, ...]:
    """Return the static shape of what a node computes."""
    return tuple(node.meta["val"].shape)


def dtype_of(node: Node) -> DType:
    """Return the element type of what a node computes; raises UserError when a graph has no such type."""
    found = node.meta["val"].dtype
    if found not in TORCH_TYPES:
        raise not_understood(node, f"one of {', '.join(TORCH_TYPES.values())}", str(found))
    return TORCH_TYPES[found]


def module_path(node: Node) -> str:
    """Return the path of the module that a node was traced in, such as `model.layers.0.self_attn`."""
    stack = list(node.meta.get("nn_module_stack", {}).values())
    return str(stack[-1][0]) if stack else ""


def not_understood(node: Node, expected: str, found: str) -> UserError:
    """Return the error that names a node and the source line it was traced from."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    places = [index for index, line in enumerate(lines) if line.startswith('File "')]
    own = [index for index in places if "/torch/" not in lines[index]] or places
    source = " ".join(lines[own[-1] : own[-1] + 2]) if own else "an unknown source line"
    return UserError(
        where=f"node {node.name} from {source}",
        expected=expected,
        found=found,
        way_out="write the module with known operators or add a rule to compiler/raising_rules.py",
    )
