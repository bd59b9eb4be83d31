"""Bodies: short straight-line programs of tensor calls, the meaning of an operator that has no name of its own.

    body      := (statement "; ")* "return " reference (", " reference)*
    statement := "t"INTEGER " = " target "(" [argument (", " argument)*] ")"
    target    := "aten." NAME "." OVERLOAD           an operator of torch's ATen library
    argument  := [NAME "="] value
    value     := reference | INTEGER | FLOAT | "true" | "false" | "none" | TYPE | "'" TEXT "'" | "[" values "]"
    reference := ("$"INTEGER | "t"INTEGER) ["." INTEGER]

`$i` is the operator's i-th operand, `t1.0` the first of several results of `t1`, TYPE an element type such as `f32`.
Devices and memory layouts are left out: they are no part of what is computed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from configs.errors import UserError


@dataclass(frozen=True, slots=True)
class Reference:
    """An operand (`operand` set) or the result of a statement; `element` picks one of several results."""

    number: int
    operand: bool
    element: int | None = None

    def __str__(self) -> str:
        """Return `$0`, `t3` or `t3.1`."""
        element = "" if self.element is None else f".{self.element}"
        return f"{'$' if self.operand else 't'}{self.number}{element}"


@dataclass(frozen=True, slots=True)
class ElementType:
    """The name of an element type, as an argument."""

    name: str


Value = Reference | ElementType | int | float | bool | str | None | tuple["Value", ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One call; its result is referred to by its place in the body."""

    target: str
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Body:
    """The calls in order, and what is returned."""

    statements: tuple[Statement, ...]
    returned: tuple[Reference, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the operators called, without namespace and overload."""
        return tuple(statement.target.split(".")[1] for statement in self.statements)


ELEMENT_TYPES = ("bf16", "f16", "f32", "f64", "c64", "c128", "i64", "i32", "bool")
TOKEN = re.compile(
    r"\s*(?:(?P<reference>[$t]\d+(?:\.\d+)?)(?![\w.])|(?P<number>-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf|nan))(?!\w)"
    r"|'(?P<text>[^']*)'|(?P<word>[A-Za-z_][\w.]*)|(?P<mark>[\[\](),=;]))"
)
WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None}


def print_body(body: Body) -> str:
    """Return the text of a body."""
    lines = [f"t{place} = {_statement_text(one)}; " for place, one in enumerate(body.statements)]
    return "".join(lines) + "return " + ", ".join(map(str, body.returned))


def parse_body(text: str) -> Body:
    """Return the body of a text; raises UserError on text that is none."""
    return _Parser(text).body()


def references(values: Iterable[Value]) -> list[Reference]:
    """Return the references among values, those inside lists included."""
    found: list[Reference] = []
    for value in values:
        if isinstance(value, Reference):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(references(value))
    return found


def _statement_text(statement: Statement) -> str:
    arguments = [_value_text(value) for value in statement.arguments]
    arguments += [f"{name}={_value_text(value)}" for name, value in statement.keywords]
    return f"{statement.target}({', '.join(arguments)})"


def _value_text(value: Value) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case ElementType(name):
            return name
        case str():
            return f"'{value}'"
        case tuple():
            return f"[{', '.join(map(_value_text, value))}]"
        case Reference():
            return str(value)
        case _:
            return repr(value)


class _Parser:
    """Reads one body, token by token."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0

    def body(self) -> Body:
        statements = []
        while not self._takes("word", "return"):
            self._reference()
            self._expect("=")
            statements.append(self._statement())
            self._expect(";")
        returned = [self._reference()]
        while self._takes("mark", ","):
            returned.append(self._reference())
        if self.text[self.place :].strip():
            raise self._error("the end of the body")
        return Body(tuple(statements), tuple(returned))

    def _statement(self) -> Statement:
        target = self._next("word", "the name of an operator")
        self._expect("(")
        arguments: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        while not self._takes("mark", ")"):
            name = self._keyword()
            if name is None:
                arguments.append(self._value())
            else:
                keywords.append((name, self._value()))
            self._takes("mark", ",")
        return Statement(target, tuple(arguments), tuple(keywords))

    def _keyword(self) -> str | None:
        found = re.compile(r"\s*([A-Za-z_]\w*)=").match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return found[1]

    def _value(self) -> Value:
        if self._takes("mark", "["):
            values: list[Value] = []
            while not self._takes("mark", "]"):
                values.append(self._value())
                self._takes("mark", ",")
            return tuple(values)
        found = TOKEN.match(self.text, self.place)
        if found is None or found["mark"]:
            raise self._error("a value")
        self.place = found.end()
        if found["reference"]:
            return _reference_of(found["reference"])
        if found["text"] is not None:
            return found["text"]
        if found["number"]:
            return int(found["number"]) if re.fullmatch(r"-?\d+", found["number"]) else float(found["number"])
        if found["word"] in WORDS:
            return WORDS[found["word"]]
        if found["word"] in ELEMENT_TYPES:
            return ElementType(found["word"])
        raise self._error("a value")

    def _reference(self) -> Reference:
        return _reference_of(self._next("reference", "a reference such as $0 or t1"))

    def _next(self, kind: str, expected: str) -> str:
        found = TOKEN.match(self.text, self.place)
        if found is None or found[kind] is None:
            raise self._error(expected)
        self.place = found.end()
        return found[kind]

    def _takes(self, kind: str, text: str) -> bool:
        found = TOKEN.match(self.text, self.place)
        if found is None or found[kind] != text:
            return False
        self.place = found.end()
        return True

    def _expect(self, mark: str) -> None:
        if not self._takes("mark", mark):
            raise self._error(f"`{mark}`")

    def _error(self, expected: str) -> UserError:
        return UserError(
            where=f"body, from character {self.place}",
            expected=expected,
            found=repr(self.text[self.place : self.place + 40]),
            way_out="see the grammar in compiler/bodies.py",
        )


def _reference_of(text: str) -> Reference:
    number, _, element = text[1:].partition(".")
    return Reference(int(number), text[0] == "$", int(element) if element else None)
