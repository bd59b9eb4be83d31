"""The rule for attention that a model spells out: a product with keys, a softmax, a product with values.

What happens between the product and the softmax is read off by evaluating it: on scores of zero it leaves the mask and
the bias, and everywhere it must be the same multiple of the scores. How caches come to the products is read off by
sending numbered elements through their views.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import isclose
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from compiler.graph import OpKind
from compiler.raising.attention_rules import append_of, is_write
from compiler.raising.found import NOTHING, Found, is_activation
from compiler.raising.masks import Visible, before, evaluated, function_of, visible_from
from compiler.raising.patterns import CASTS, arguments_of, target_of
from compiler.raising.program import RESHAPES, Program, elements_of, module_path, root_of, shape_of

PRODUCTS = ("aten.matmul", "aten.bmm", "aten.baddbmm")
SOFTMAXES = ("aten.softmax", "aten._softmax", "aten._safe_softmax")
VIEWS = (*RESHAPES, *CASTS, "aten.transpose", "aten.permute", "aten.expand", "aten.repeat_interleave", "aten.repeat")
HIDDEN = -1e30  # masks add or set the lowest number of a format; sums of such overflow to minus infinity
PROBES = 3  # positions at which scores are tried: the last, the middle one, that at a third
LARGE = 1e3  # times scores of about 1
TOLERANCE = 1e-9  # of numbers that differ by the rounding of float64 only


@dataclass(frozen=True, slots=True)
class _Scores:
    """What the softmax takes, as a function of the product: `scale` times it, plus a bias, where it is visible."""

    scale: float
    visible: Visible
    bias: Node | None


def find_explicit_attention(program: Program, node: Node) -> tuple[Found, ...]:
    """softmax(scale * (q @ k_cache^T) + bias + mask) @ v_cache, through views and repetitions of heads"""
    weights, values = arguments_of(node)[:2]
    if not isinstance(weights, Node) or not isinstance(values, Node) or node.kwargs:
        return NOTHING
    softmax = root_of(weights)
    if target_of(softmax) not in SOFTMAXES or softmax.args[1] not in (-1, len(shape_of(softmax)) - 1):
        return NOTHING
    product = _product_before(softmax)
    if product is None:
        return NOTHING
    query, keys = arguments_of(product)[-2:]
    if not is_activation(program, query):
        return NOTHING
    caches = tuple(_written(program, one) for one in (keys, values))
    if None in caches or caches[0] is caches[1]:
        return NOTHING
    return _attention(program, node, product, softmax, (query, keys, values), caches)  # type: ignore[arg-type]


def _attention(
    program: Program,
    node: Node,
    product: Node,
    softmax: Node,
    operands: tuple[Node, Node, Node],
    caches: tuple[Node, Node],
) -> tuple[Found, ...]:
    query, keys, values = operands
    (kv_heads, context, head_dim), value_dim = shape_of(caches[0])[1:], shape_of(caches[1])[3]
    rows, odd = divmod(elements_of(query), head_dim)
    heads = rows // program.batch
    fits = elements_of(softmax) == rows * context and elements_of(node) == rows * value_dim
    fits = fits and shape_of(softmax)[-1] == context
    if odd or not fits or heads % kv_heads or shape_of(query)[-1] != head_dim:
        return NOTHING
    if not _feeds_every_head(keys, caches[0], heads, product, turned=True):
        return NOTHING
    if not _feeds_every_head(values, caches[1], heads, node, turned=False):
        return NOTHING
    scores = _scores_of(program, product, softmax, heads, context)
    if scores is None:
        return NOTHING
    more = () if scores.bias is None else (scores.bias,)
    wide = value_dim if value_dim != head_dim else 0
    attributes = (
        *(heads, kv_heads, head_dim, context, scores.visible.window, scores.scale, wide),
        *(scores.visible.chunk, 0.0, False, scores.bias is not None),
    )
    path = module_path(node)
    operator_operands: Any = (query, *caches, program.position, *more)
    attention = Found(OpKind.ATTENTION, operator_operands, (node,), attributes, f"{path}.attention")
    return (append_of(program, caches, path), attention)


def _product_before(softmax: Node) -> Node | None:
    """Return the one product of a softmax's operand that is not computed from another."""
    product = None
    waiting, seen = [softmax.args[0]], set()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Node) or one in seen:
            continue
        seen.add(one)
        if target_of(one) in PRODUCTS:
            if product is not None:
                return None
            product = one
            waiting.extend(one.all_input_nodes[:1] if target_of(one) == "aten.baddbmm" else ())
        else:
            waiting.extend(one.all_input_nodes)
    return product


def _written(program: Program, node: Node) -> Node | None:
    """Return the cache that a chain of views leads back to, with this step's token written into it."""
    while isinstance(node, Node) and not is_write(program, node):
        if target_of(node) not in VIEWS or len(node.all_input_nodes) != 1:
            return None
        (node,) = node.all_input_nodes
    return node if isinstance(node, Node) and len(shape_of(node)) == 4 else None


Step = tuple[Callable[..., Tensor], tuple[Any, ...]]


def _feeds_every_head(node: Node, cache: Node, heads: int, product: Node, *, turned: bool) -> bool:
    """Tell whether a product's operand is, for each head in order, the cache of the key-value head it belongs to."""
    steps: list[Step] = []
    while node is not cache:
        # Casts leave numbers as they are.
        if target_of(node) not in CASTS:
            steps.append((function_of(node), tuple(_hashable(one) for one in node.args[1:])))
        node = node.all_input_nodes[0]
    return _repeats(tuple(reversed(steps)), shape_of(cache), heads, shape_of(product), turned)


def _hashable(argument: Any) -> Any:
    return tuple(argument) if isinstance(argument, list | tuple) else argument


@lru_cache(maxsize=64)
def _repeats(
    steps: tuple[Step, ...], shape: tuple[int, ...], heads: int, product: tuple[int, ...], turned: bool
) -> bool:
    numbered = torch.arange(torch.Size(shape).numel(), dtype=torch.int32).reshape(shape)
    value = numbered
    for target, arguments in steps:
        value = target(value, *(list(one) if isinstance(one, tuple) else one for one in arguments))
    value = value.transpose(-1, -2) if turned else value
    batch, kv_heads, context, width = shape
    if value.shape[-2:] != (context, width):
        return False
    # A matrix serves every row of a product, and is repeated along the axes that the product broadcasts.
    *axes, rows, _ = product
    used = value.expand(*axes, context, width).reshape(-1, 1, context, width).expand(-1, rows, -1, -1)
    expected = numbered.reshape(-1, 1, context, width).expand(-1, heads // kv_heads, -1, -1)
    return torch.equal(used.reshape(batch * heads, context, width), expected.reshape(batch * heads, context, width))


def _scores_of(program: Program, product: Node, softmax: Node, heads: int, context: int) -> _Scores | None:
    """Return how the softmax's operand follows from the product, by evaluating it on zeros and on random scores."""
    between = _Between(program, product, softmax.args[0], context)  # type: ignore[arg-type]
    nothing = torch.zeros(shape_of(product), dtype=torch.float64)

    def shown_at(position: int) -> Tensor | None:
        value = between.at(position, nothing)
        return None if value is None else value > HIDDEN

    visible = visible_from(shown_at, context)
    if visible is None:
        return None
    generator = torch.Generator().manual_seed(0)
    biases: dict[int, Tensor] = {}
    scales = []
    for position in sorted({context - 1, context // 2, context // PROBES}):
        tried = torch.randn(nothing.shape, generator=generator, dtype=torch.float64)
        seen = slice(visible.first(position), position + 1)
        # Large scores too: a clamp is a line for small ones.
        lines = [_line(between, position, nothing, tried * size, seen) for size in (LARGE, 1.0)]
        found = lines[1]
        if found is None or lines[0] is None:
            return None
        scales.append(found[0])
        biases[position] = found[1]
    if max(scales) - min(scales) > TOLERANCE * abs(scales[0]):
        return None
    if all(bool((bias == 0).all()) for bias in biases.values()):
        return _Scores(scales[0], visible, None)
    node = _bias_node(between, biases, visible, heads)
    return None if node is None else _Scores(scales[0], visible, node)


@dataclass(frozen=True, slots=True)
class _Between:
    """The part of a program from a product of queries and keys to the operand of a softmax."""

    program: Program
    product: Node
    shown: Node
    context: int

    def at(self, position: int, scores: Tensor) -> Tensor | None:
        """Return the softmax's operand [rows, context] where the product is `scores`; None if data matter besides."""
        if target_of(self.product) == "aten.baddbmm":
            # The product scaled, and something added to it.
            addend = evaluated(self.program, arguments_of(self.product)[0], position)
            if addend is None:
                return None
            named: dict[str, Any] = {"beta": 1, "alpha": 1, **self.product.kwargs}
            scores = named["beta"] * addend + named["alpha"] * scores
        value = evaluated(self.program, self.shown, position, {self.product: scores})
        return None if value is None else value.reshape(-1, self.context)


def _line(between: _Between, position: int, nothing: Tensor, tried: Tensor, seen: slice) -> tuple[float, Tensor] | None:
    """Return the scale and the bias with which visible scores go to the softmax; None if they are not a line."""
    left, right = between.at(position, nothing), between.at(position, tried)
    if left is None or right is None:
        return None
    bias, difference = left[:, seen], (right - left)[:, seen]
    scores = tried.reshape(-1, between.context)[:, seen]
    # What is written with few digits is found as it is written.
    scale = float((difference * scores).sum() / scores.square().sum())
    scale = rounded if isclose(rounded := float(f"{scale:.14g}"), scale, rel_tol=1e-14) else scale
    close = TOLERANCE * (1 + float(bias.abs().max()) + float(scores.abs().max()))
    return (scale, bias) if torch.allclose(difference, scale * scores, rtol=0, atol=close) else None


def _bias_node(between: _Between, biases: dict[int, Tensor], visible: Visible, heads: int) -> Node | None:
    """Return the computation from the position whose result [heads, context] is the bias."""
    product, size = between.product, heads * between.context
    added = before(product.args[0], product) if target_of(product) == "aten.baddbmm" else []  # type: ignore[arg-type]
    for node in reversed([*before(between.shown, product), *added]):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, Tensor) or value.numel() != size:
            continue
        if all(_is_bias(between, node, place, bias, visible.first(place)) for place, bias in biases.items()):
            return node
    return None


def _is_bias(between: _Between, node: Node, position: int, bias: Tensor, first: int) -> bool:
    value = evaluated(between.program, node, position)
    if value is None:
        return False
    rows = value.reshape(-1, between.context)[:, first : position + 1].to(bias.dtype)
    return torch.allclose(rows.repeat(len(bias) // len(rows), 1), bias, rtol=TOLERANCE, atol=1e-12)
