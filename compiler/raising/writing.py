"""From the calls of a region to the text of a body."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from compiler.bodies import Body, ElementType, Reference, Statement, Value
from compiler.body_execution import TORCH_TYPES
from compiler.graph import TensorType
from compiler.raising.program import not_understood, shape_of

# Marks that only tell that a state is meant: what they compute is a call of torch's.
WRITTEN_AS = {"pim.remember.default": "aten.index_copy.default"}
PLACEMENT = ("device", "layout", "pin_memory", "memory_format")


def write_body(
    nodes: Sequence[Node],
    operands: Sequence[Node],
    results: Sequence[Node],
    type_of: Callable[[Node], TensorType],
) -> Body:
    """Return the body of calls that read `operands` and define `results`, whose types are those of the graph's values.

    Where a value has another shape than its node, a reshape stands at the beginning or the end.
    """
    writer = _Writer(operands, type_of)
    for node in nodes:
        writer.call(node)
    returned = tuple(writer.returned(node) for node in results)  # may add statements
    return Body(tuple(writer.statements), returned)


class _Writer:
    def __init__(self, operands: Sequence[Node], type_of: Callable[[Node], TensorType]) -> None:
        self.statements: list[Statement] = []
        self.type_of = type_of
        self.references: dict[Node, Reference] = {}
        for number, node in enumerate(operands):
            held, reference = type_of(node).shape, Reference(number, operand=True)
            self.references[node] = reference if held == shape_of(node) else self._reshaped(reference, shape_of(node))

    def call(self, node: Node) -> None:
        if node.target is operator.getitem:
            source = self.references[node.args[0]]  # type: ignore[index]
            self.references[node] = Reference(source.number, source.operand, int(node.args[1]))  # type: ignore[arg-type]
            return
        target = WRITTEN_AS.get(str(node.target), str(node.target))
        if not target.startswith("aten."):
            raise not_understood(node, "a tensor call of torch's ATen library", target)
        arguments = tuple(self._value(one, node) for one in node.args)
        keywords = tuple(
            (key, self._value(one, node))
            for key, one in node.kwargs.items()
            if key not in PLACEMENT and one is not None
        )
        self.references[node] = self._add(Statement(target, arguments, keywords))

    def returned(self, node: Node) -> Reference:
        held = self.type_of(node).shape
        reference = self.references[node]
        return reference if held == shape_of(node) else self._reshaped(reference, held)

    def _reshaped(self, reference: Reference, shape: tuple[int, ...]) -> Reference:
        return self._add(Statement("aten.reshape.default", (reference, shape)))

    def _add(self, statement: Statement) -> Reference:
        self.statements.append(statement)
        return Reference(len(self.statements) - 1, operand=False)

    def _value(self, argument: Any, node: Node) -> Value:
        match argument:
            case Node():
                return self.references[argument]
            case list() | tuple():
                return tuple(self._value(one, node) for one in argument)
            case torch.dtype():
                return _element_type(argument, node)
            case torch.device() | torch.memory_format() | torch.layout():
                return None
            case bool() | int() | float() | str() | None:
                return argument
            case torch.SymInt():
                return int(argument)
            case _:
                raise not_understood(node, "numbers, texts, types and tensors as arguments", repr(argument))


def _element_type(found: torch.dtype, node: Node) -> ElementType:
    if found not in TORCH_TYPES:
        raise not_understood(node, f"one of {', '.join(TORCH_TYPES.values())}", str(found))
    return ElementType(str(TORCH_TYPES[found]))
