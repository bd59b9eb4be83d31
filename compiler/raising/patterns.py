"""Trees of ATen calls to look for, and the matcher that finds them in an exported program.

A pattern is a `Call` on patterns, a `Capture` that binds whatever stands there (twice the same name must bind the same
thing), a tuple for a list of arguments, or a literal. Casts between floating formats are looked through: a graph's
types say how values are stored, and its interpreter in which precision they are computed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch.fx import Node

COMMUTATIVE = ("aten.add", "aten.mul", "aten.__and__", "aten.bitwise_and", "aten.logical_and")
CASTS = ("aten.to", "aten._to_copy", "aten.alias", "aten.contiguous", "aten.clone", "aten.detach")
# Keyword arguments that choose a format or a place, never a value.
PLACEMENT = ("dtype", "device", "layout", "pin_memory", "memory_format")


@dataclass(frozen=True, slots=True)
class Capture:
    """Binds a node or a literal to a name."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the operator `target`, overloads ignored, on exactly these positional arguments."""

    target: str
    arguments: tuple["Pattern", ...]


Pattern = Call | Capture | tuple[Any, ...] | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Match:
    """What the captures are bound to, and the nodes the pattern covers."""

    captures: dict[str, Any]
    covered: tuple[Node, ...]


def call(target: str, *arguments: Pattern) -> Call:
    """Return the pattern of one ATen call."""
    return Call(f"aten.{target}", arguments)


def target_of(node: Node) -> str:
    """Return the operator of a node without its overload, such as `aten.linear`; `getitem` for tuple elements."""
    text = str(node.target)
    if node.op != "call_function":
        return node.op
    ours = text.startswith(("aten.", "pim."))
    return text.rsplit(".", 1)[0] if ours else getattr(node.target, "__name__", text)


def arguments_of(node: Node) -> tuple[Any, ...]:
    """Return the positional arguments, whose types only the operator's schema knows."""
    return tuple(node.args)


def is_cast(node: Node) -> bool:
    """Tell whether a node changes at most the floating format of its operand, or makes a float of an integer."""
    if target_of(node) not in CASTS or not isinstance(node.args[0], Node):
        return False
    before, after = node.args[0].meta["val"].dtype, node.meta["val"].dtype
    return bool(after.is_floating_point or before == after)


def find(pattern: Pattern, node: Any) -> Match | None:
    """Return the first way in which the tree that ends in `node` fits the pattern, or None."""
    return next(_matches(pattern, node, Match({}, ())), None)


def _matches(pattern: Pattern, found: Any, so_far: Match) -> Iterator[Match]:
    while isinstance(found, Node) and is_cast(found):
        so_far = Match(so_far.captures, (*so_far.covered, found))
        found = found.args[0]
    match pattern:
        case Capture(name):
            if name not in so_far.captures:
                yield Match({**so_far.captures, name: found}, so_far.covered)
            elif so_far.captures[name] is found or (not isinstance(found, Node) and so_far.captures[name] == found):
                yield so_far
        case Call(target, arguments):
            if isinstance(found, Node) and target_of(found) == target and not set(found.kwargs) - set(PLACEMENT):
                here = Match(so_far.captures, (*so_far.covered, found))
                yield from _match_sequence(arguments, tuple(found.args), here)
                if target in COMMUTATIVE:
                    yield from _match_sequence(arguments, tuple(reversed(found.args)), here)
        case tuple():
            if isinstance(found, tuple | list):
                yield from _match_sequence(pattern, tuple(found), so_far)
        case _:
            if not isinstance(found, Node) and type(found) in (int, float, bool, type(None)) and found == pattern:
                yield so_far


def _match_sequence(patterns: tuple[Pattern, ...], found: tuple[Any, ...], so_far: Match) -> Iterator[Match]:
    if len(patterns) != len(found):
        return
    if not patterns:
        yield so_far
        return
    for first in _matches(patterns[0], found[0], so_far):
        yield from _match_sequence(patterns[1:], found[1:], first)
