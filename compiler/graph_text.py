"""The text form of a graph: `parse_graph(print_graph(graph)) == graph`. The grammar is in `compiler.graph`."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from compiler.graph import DEFAULTS, Attribute, DType, Graph, Op, OpKind, TensorType, Value, with_defaults
from configs.errors import UserError

NAME = r"[A-Za-z0-9_.\-]+"
VALUE = rf"%({NAME}) : ([a-z0-9]+)\[([0-9,]*)\]"
OP = re.compile(rf"(?P<results>{VALUE}(?:, {VALUE})*) = (?P<kind>\w+)\((?P<inputs>[^)]*)\) \{{(?P<attributes>.*)\}}")
ATTRIBUTE = re.compile(r'(?P<name>\w+)=(?P<value>"[^"\n]*"|\([^)]*\)|[^,"()\s]+)(?:, |$)')


def print_graph(graph: Graph) -> str:
    """Return the canonical text of a graph, one statement a line."""
    lines = [f"graph {graph.name}"]
    lines += [f"input {_print_value(value)}" for value in graph.inputs]
    lines += [f"weight {_print_value(value)}" for value in graph.weights]
    lines += [f"constant {_print_value(value)}" for value in graph.constants]
    lines += [_print_op(op) for op in graph.ops]
    lines += [f"output %{name}" for name in graph.outputs]
    return "\n".join(lines) + "\n"


def fingerprint(graph: Graph) -> str:
    """Return the sha256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(print_graph(graph).encode()).hexdigest()


def parse_graph(text: str, source: str = "graph text") -> Graph:
    """Return the graph that `text` denotes; blank lines and lines that start with `#` are skipped.

    Raises UserError with the line number at the first line that breaks the grammar. Types are not checked here: call
    `compiler.verify.verify`.
    """
    draft = _Draft()
    for number, line in enumerate(text.splitlines(), start=1):
        statement = line.strip()
        if statement and not statement.startswith("#"):
            _parse_statement(statement, draft, f"{source}, line {number}")
    if not draft.name:
        raise _error(source, "a statement `graph NAME`", "none")
    sections = (draft.inputs, draft.weights, draft.ops, draft.outputs, draft.constants)
    inputs, weights, ops, outputs, constants = sections
    return Graph(draft.name, tuple(inputs), tuple(weights), tuple(ops), tuple(outputs), tuple(constants))


@dataclass(slots=True)
class _Draft:
    """What has been parsed so far; `section` counts up, because the sections have a fixed order."""

    name: str = ""
    inputs: list[Value] = field(default_factory=list)
    weights: list[Value] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    section: int = 0


SECTIONS = ("graph", "input", "weight", "constant", "op", "output")


def _parse_statement(statement: str, draft: _Draft, where: str) -> None:
    keyword, _, rest = statement.partition(" ")
    kind = "op" if statement.startswith("%") else keyword
    if kind not in SECTIONS:
        raise _error(where, "graph, input, weight, constant, output or an operator", keyword)
    section = SECTIONS.index(kind)
    if section < draft.section or (kind == "graph") == bool(draft.name):
        raise _error(where, f"one graph statement, then the order {', '.join(SECTIONS)}", kind)
    draft.section = section
    match kind:
        case "graph":
            draft.name = _full_match(NAME, rest, where, "a name").group()
        case "input":
            draft.inputs.append(_parse_value(rest, where))
        case "weight":
            draft.weights.append(_parse_value(rest, where))
        case "constant":
            draft.constants.append(_parse_value(rest, where))
        case "output":
            draft.outputs.append(_parse_operand(rest, where))
        case _:
            draft.ops.append(_parse_op(statement, where))


def _parse_op(statement: str, where: str) -> Op:
    found = _full_match(OP, statement, where, "`%result : type = kind(%operand, ...) {name=value, ...}`")
    if found["kind"] not in tuple(OpKind):
        raise _error(where, f"one of {', '.join(OpKind)}", found["kind"])
    results = tuple(_parse_value(one.group(), where) for one in re.finditer(VALUE, found["results"]))
    operands = tuple(_parse_operand(one, where) for one in found["inputs"].split(", ") if found["inputs"])
    kind = OpKind(found["kind"])
    return Op(kind, operands, results, with_defaults(kind, _parse_attributes(found["attributes"], where)))


def _parse_value(text: str, where: str) -> Value:
    name, dtype, shape = _full_match(VALUE, text, where, "`%name : type`").groups()
    if dtype not in tuple(DType):
        raise _error(where, f"an element type of {', '.join(DType)}", dtype)
    return Value(name, TensorType(DType(dtype), _parse_integers(shape, where)))


def _parse_operand(text: str, where: str) -> str:
    return _full_match(f"%{NAME}", text, where, "`%name`").group()[1:]


def _parse_integers(text: str, where: str) -> tuple[int, ...]:
    if text and not re.fullmatch(r"-?\d+(,-?\d+)*", text):
        raise _error(where, "integers separated by commas", text)
    return tuple(int(one) for one in text.split(",")) if text else ()


def _parse_attributes(text: str, where: str) -> tuple[tuple[str, Attribute], ...]:
    attributes: list[tuple[str, Attribute]] = []
    position = 0
    while position < len(text):
        found = ATTRIBUTE.match(text, position)
        if found is None:
            raise _error(where, "`name=value` separated by commas", text[position:])
        attributes.append((found["name"], _parse_attribute(found["value"], where)))
        position = found.end()
    return tuple(attributes)


def _parse_attribute(text: str, where: str) -> Attribute:
    if text in ("true", "false"):
        return text == "true"
    if text[0] == '"':
        return text[1:-1]
    if text[0] == "(":
        return _parse_integers(text[1:-1], where)
    number: Callable[[str], int | float] = int if re.fullmatch(r"-?\d+", text) else float
    try:
        return number(text)
    except ValueError:
        raise _error(where, "an integer, float, boolean, string or tuple of integers", text) from None


def _print_value(value: Value) -> str:
    return f"%{value.name} : {value.type}"


def _print_op(op: Op) -> str:
    results = ", ".join(_print_value(value) for value in op.results)
    operands = ", ".join(f"%{name}" for name in op.inputs)
    defaults = DEFAULTS.get(op.kind, {})
    printed = [(name, value) for name, value in op.attributes if name not in defaults or value != defaults[name]]
    attributes = ", ".join(f"{name}={_print_attribute(value)}" for name, value in printed)
    return f"{results} = {op.kind}({operands}) {{{attributes}}}"


def _print_attribute(value: Attribute) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple():
            return f"({','.join(map(str, value))})"
        case _:
            return repr(value)


def _full_match(pattern: str | re.Pattern[str], text: str, where: str, expected: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise _error(where, expected, repr(text))
    return found


def _error(where: str, expected: str, found: str) -> UserError:
    return UserError(where=where, expected=expected, found=found, way_out="see the grammar in compiler/graph.py")
