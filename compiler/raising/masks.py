"""Windows read off a mask by evaluating it: which positions a token attends to, whatever way that was written.

A mask depends on the position alone. It is computed for many positions, around every place where a window or a chunk
of the size found would begin, and must agree with it at all of them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from compiler.raising.patterns import target_of
from compiler.raising.program import Program, shape_of

PLACES = ("device", "layout", "pin_memory")
SPREAD = 24  # positions tried over the whole context, beside those near the edges of windows


@dataclass(frozen=True, slots=True)
class Visible:
    """What a token attends to: all before it, those in a window, or those in its chunk; 0 where there is none."""

    window: int = 0
    chunk: int = 0

    def first(self, position: int) -> int:
        """Return the first position that the token at `position` attends to."""
        if self.window:
            return max(0, position + 1 - self.window)
        return position // self.chunk * self.chunk if self.chunk else 0


CAUSAL = Visible()


def visible_of(program: Program, mask: Node, context: int) -> Visible | None:
    """Return what a boolean mask [..., context] lets through; None if that is not causal, a window or a chunk."""
    if shape_of(mask)[-1] != context or mask.meta["val"].dtype != torch.bool:
        return None
    return visible_from(lambda position: evaluated(program, mask, position), context)


def visible_from(mask_at: Callable[[int], Tensor | None], context: int) -> Visible | None:
    """Return what a mask [..., context], given as a function of the position, lets through."""
    first = _first_visible(mask_at, context, context - 1)
    if first is None:
        return None
    candidates = [CAUSAL] if first == 0 else [Visible(window=context - first), *_chunks(first)]
    # In a chunk the last position sees back to its start, which is a multiple of the size.
    for candidate in candidates:
        tried = _positions(candidate, context)
        if all(_first_visible(mask_at, context, place) == candidate.first(place) for place in tried):
            return candidate
    return None


def _chunks(first: int) -> Iterator[Visible]:
    return (Visible(chunk=size) for size in range(first, 1, -1) if first % size == 0)


def _positions(visible: Visible, context: int) -> list[int]:
    size = visible.window or visible.chunk
    edges = [place * size + offset for place in (1, 2, 3) for offset in (-2, -1, 0, 1)] if size else []
    spread = [context * place // SPREAD for place in range(SPREAD)]
    return sorted({place for place in (*edges, *spread, context - 1) if 0 <= place < context})


def _first_visible(mask_at: Callable[[int], Tensor | None], context: int, position: int) -> int | None:
    """Return where the visible positions begin, if they are all those from there to `position`, for every sequence."""
    value = mask_at(position)
    if value is None:
        return None
    rows = value.reshape(-1, context)
    first = int(rows[0].to(torch.int8).argmax())
    expected = torch.zeros(context, dtype=torch.bool)
    expected[first : position + 1] = True
    return first if bool((rows == expected).all()) else None


def evaluated(program: Program, node: Node, position: int, known: Mapping[Node, Tensor] | None = None) -> Tensor | None:
    """Return what a node computes at a position, if it depends on nothing else than `known`; None if it does.

    Floats are float64 throughout, whatever the program says: what is read off must not be rounded.
    """
    if program.position is None:
        return None
    with _float64_by_default():
        return _evaluated(program.position, node, position, known or {})


@contextmanager
def _float64_by_default() -> Iterator[None]:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


def _evaluated(place: Node, node: Node, position: int, known: Mapping[Node, Tensor]) -> Tensor | None:
    values: dict[Node, Any] = {place: torch.tensor([position]), **known}
    for one in before(node, *values):
        if one.op != "call_function" or any(operand not in values for operand in one.all_input_nodes):
            return None
        arguments = torch.fx.node.map_arg(_exact(one.args), values.__getitem__)
        keywords = {key: _exact(value) for key, value in one.kwargs.items() if key not in PLACES}
        values[one] = function_of(one)(*arguments, **torch.fx.node.map_arg(keywords, values.__getitem__))
    found: Tensor = values[node]
    return found


def function_of(node: Node) -> Callable[..., Any]:
    """Return what a node calls; views may copy, as layouts differ where values are others than the program's."""
    if target_of(node) in ("aten.view", "aten._unsafe_view"):
        return torch.ops.aten.reshape.default
    return node.target  # type: ignore[return-value]


def _exact(argument: Any) -> Any:
    if isinstance(argument, tuple | list):
        return type(argument)(_exact(one) for one in argument)
    return torch.float64 if isinstance(argument, torch.dtype) and argument.is_floating_point else argument


def before(node: Node, *stops: Node) -> list[Node]:
    """Return a node and all that it is computed from, each after its operands, up to `stops`."""
    seen: set[Node] = set(stops)
    ordered: list[Node] = []
    waiting: list[tuple[Node, bool]] = [(node, False)]
    while waiting:
        current, ready = waiting.pop()
        if ready:
            ordered.append(current)
        elif current not in seen:
            seen.add(current)
            waiting.append((current, True))
            waiting.extend((operand, False) for operand in current.all_input_nodes)
    return ordered
