"""The verifier: names, definition before use, attributes, and the types of every operator against its signature."""

from compiler.graph import ATTRIBUTES, Graph, Op, TensorType, Value
from compiler.signatures import CHOICES, LEGALITY, SIGNATURES, WITH_BODY, Slot


class VerifyError(Exception):
    """Raised when a graph breaks a rule of the IR: it says which operator or value, what was expected, what found."""

    def __init__(self, *, where: str, expected: str, found: str) -> None:
        """Keep the three parts of the message."""
        super().__init__(f"{where}: expected {expected}, found {found}")
        self.where = where
        self.expected = expected
        self.found = found


def verify(graph: Graph) -> None:
    """Check a whole graph; raises VerifyError at the first rule that is broken."""
    types: dict[str, TensorType] = {}
    for value in (*graph.inputs, *graph.weights, *graph.constants):
        _define(value, types, f"graph {graph.name}")
    for op in graph.ops:
        _verify_op(op, types)
    for name in graph.outputs:
        if name not in types:
            raise VerifyError(where=f"output %{name}", expected="a defined value", found="no such name")


def _verify_op(op: Op, types: dict[str, TensorType]) -> None:
    where = f"{op.kind} %{op.name}" if op.results else str(op.kind)
    for name in op.inputs:
        if name not in types:
            raise VerifyError(where=where, expected=f"%{name} to be defined before its use", found="no such name yet")
    _verify_attributes(op, where)
    if op.kind in WITH_BODY:
        _verify_body(op, types, where)
        return
    shape = op.results[0].type.shape if op.results else ()
    if not shape:
        raise VerifyError(where=where, expected="a first result with a leading batch dimension", found=f"shape {shape}")
    operands, results = SIGNATURES[op.kind](op, shape[0])
    _verify_types(where, "operand", operands, [Value(name, types[name]) for name in op.inputs])
    _verify_types(where, "result", results, list(op.results))
    for value in op.results:
        _define(value, types, where)


def _verify_body(op: Op, types: dict[str, TensorType], where: str) -> None:
    # Torch finds the types, and only graphs with bodies need it.
    from compiler.body_execution import result_types

    expected = result_types(op.text("body"), tuple(types[name] for name in op.inputs))
    found = tuple(result.type for result in op.results)
    if expected != found:
        raise VerifyError(where=where, expected=f"results {_listed(expected)}", found=_listed(found))
    for value in op.results:
        _define(value, types, where)


def _listed(types: tuple[TensorType, ...]) -> str:
    return ", ".join(map(str, types))


def _define(value: Value, types: dict[str, TensorType], where: str) -> None:
    if value.name in types:
        raise VerifyError(where=where, expected=f"%{value.name} to be defined once", found="a second definition")
    if any(size <= 0 for size in value.type.shape):
        raise VerifyError(where=where, expected=f"%{value.name} to have positive sizes", found=str(value.type))
    types[value.name] = value.type


def _verify_attributes(op: Op, where: str) -> None:
    expected = ", ".join(f"{name}: {kind.__name__}" for name, kind in ATTRIBUTES[op.kind])
    found = ", ".join(f"{name}: {type(value).__name__}" for name, value in op.attributes)
    if expected != found:
        raise VerifyError(where=where, expected=f"the attributes ({expected})", found=f"({found})")
    for name, value in op.attributes:
        if name in CHOICES and value not in CHOICES[name]:
            raise VerifyError(where=where, expected=f"{name} to be one of {CHOICES[name]}", found=repr(value))
    for expected, holds in LEGALITY.get(op.kind, ()):
        if not holds(op):
            raise VerifyError(where=where, expected=expected, found=str(dict(op.attributes)))


def _verify_types(where: str, role: str, expected: tuple[Slot, ...], found: list[Value]) -> None:
    if len(expected) != len(found):
        raise VerifyError(where=where, expected=f"{len(expected)} {role}s", found=str(len(found)))
    for index, (slot, value) in enumerate(zip(expected, found, strict=True)):
        if not slot.accepts(value.type):
            raise VerifyError(where=f"{where}, {role} {index} %{value.name}", expected=str(slot), found=str(value.type))
