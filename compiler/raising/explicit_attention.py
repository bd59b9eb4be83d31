"""The rule for attention that a model spells out: a product with keys, a softmax, a product with values.

What happens between the product and the softmax is read off by evaluating it: on scores of zero it leaves the mask and
the bias, and everywhere it must be the same multiple of the scores. How caches come to the products is read off by
sending numbered elements through their views.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
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
PROBES = 3  # positions at which scores are tried, beside those that masks are tried at


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
    shown = softmax.args[0]
    assert isinstance(shown, Node)
    size = program.batch * heads * context

    def at(position: int, product_value: Tensor) -> Tensor | None:
        known = _with_addend(program, product, product_value, position)
        value = None if known is None else evaluated(program, shown, position, {product: known})
        return None if value is None else value.reshape(-1, context)

    nothing = torch.zeros(shape_of(product), dtype=torch.float64)

    def visible_rows(position: int) -> Tensor | None:
        value = at(position, nothing)
        return None if value is None else value > HIDDEN

    if elements_of(shown) != size:
        return None
    visible = visible_from(visible_rows, context)
    if visible is None:
        return None
    generator = torch.Generator().manual_seed(0)
    scale = None
    biases: dict[int, Tensor] = {}
    for position in sorted({context - 1, context // 2, context // PROBES}):
        tried = torch.randn(nothing.shape, generator=generator, dtype=torch.float64)
        left, right = at(position, nothing), at(position, tried)
        assert left is not None
        assert right is not None
        seen = slice(visible.first(position), position + 1)
        bias, difference = left[:, seen], (right - left)[:, seen]
        scores = tried.reshape(-1, context)[:, seen]
        scale = float(difference[0, 0] / scores[0, 0]) if scale is None else scale
        if not torch.allclose(difference, scale * scores, rtol=1e-9, atol=1e-9 * (1 + float(bias.abs().max()))):
            return None
        biases[position] = bias
    assert scale is not None
    scale = float(f"{scale:.12g}") if abs(float(f"{scale:.12g}") - scale) < 1e-15 * abs(scale) else scale
    if all(bool((bias == 0).all()) for bias in biases.values()):
        return _Scores(scale, visible, None)
    found = _bias_node(program, product, shown, biases, visible, (heads, context))
    return None if found is None else _Scores(scale, visible, found)


def _with_addend(program: Program, product: Node, value: Tensor, position: int) -> Tensor | None:
    """Return what a product node gives where the product itself is `value`: baddbmm scales it and adds to it."""
    if target_of(product) != "aten.baddbmm":
        return value
    addend = evaluated(program, arguments_of(product)[0], position)
    beta: Any = product.kwargs.get("beta", 1)
    alpha: Any = product.kwargs.get("alpha", 1)
    return None if addend is None else beta * addend + alpha * value


def _bias_node(
    program: Program,
    product: Node,
    shown: Node,
    biases: dict[int, Tensor],
    visible: Visible,
    shape: tuple[int, int],
) -> Node | None:
    """Return the computation from the position whose result [heads, context] is the bias."""
    heads, context = shape
    for node in reversed([*before(shown, product), *product.all_input_nodes[:1], *before(product.args[0], product)]):  # type: ignore[arg-type]
        value = node.meta.get("val")
        if not isinstance(value, Tensor) or value.numel() != heads * context:
            continue
        if node.op == "call_function" and all(
            _is_bias(program, node, position, bias, visible.first(position), context)
            for position, bias in biases.items()
        ):
            return node
    return None


def _is_bias(program: Program, node: Node, position: int, bias: Tensor, first: int, context: int) -> bool:
    value = evaluated(program, node, position)
    if value is None:
        return False
    rows = value.reshape(-1, context)[:, first : position + 1].to(bias.dtype)
    return torch.allclose(rows.repeat(len(bias) // len(rows), 1), bias, rtol=1e-9, atol=1e-12)
