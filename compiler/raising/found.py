"""What a rule finds: one operator, the nodes it reads and the nodes whose results it defines."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from compiler.graph import Attribute, OpKind, TensorType
from compiler.raising.program import Program, dtype_of, elements_of, root_of, shape_of


@dataclass(frozen=True, slots=True)
class Found:
    """One operator on nodes; `name` is what its first result would like to be called."""

    kind: OpKind
    operands: tuple[Node, ...]
    results: tuple[Node, ...]
    attributes: tuple[Attribute, ...]
    name: str


Rule = Callable[[Program, Node], tuple[Found, ...]]
NOTHING: tuple[Found, ...] = ()


def flat_type(program: Program, node: Node) -> TensorType:
    """Return the type of a value as operators hold it: floats [B, width] where B divides them, others as they are."""
    dtype, count = dtype_of(node), elements_of(node)
    if dtype.is_float and count % program.batch == 0:
        return TensorType(dtype, (program.batch, count // program.batch))
    return TensorType(dtype, shape_of(node) or (1,))


def is_activation(program: Program, node: Any) -> bool:
    """Tell whether a node is computed by the step, or is the token ids: no parameter, constant, cache or state."""
    if not isinstance(node, Node) or node.meta.get("val") is None:
        return False
    root = root_of(node)
    return root not in program.weights and root not in program.constants and root not in program.states


def weight_of(program: Program, node: Any) -> Node | None:
    """Return the parameter that a node is, casts and views that keep its shape looked through; None if it is none."""
    if not isinstance(node, Node):
        return None
    root = root_of(node)
    return root if root in program.weights and shape_of(root) == shape_of(node) else None


def is_position(program: Program, node: Any) -> bool:
    """Tell whether a node is the position input."""
    return isinstance(node, Node) and root_of(node) is program.position


def owner(program: Program, weight: Node) -> str:
    """Return the module that a parameter belongs to."""
    return program.weights[weight].name.removesuffix(".weight")
