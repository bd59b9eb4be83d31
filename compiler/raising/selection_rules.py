"""Rules of raising for sparse attention: an indexer that scores cached tokens and the attention to those it selects."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from compiler.graph import UNSELECTED, Attribute, OpKind
from compiler.raising.found import NOTHING, Found, is_activation, is_position
from compiler.raising.masks import evaluated
from compiler.raising.patterns import Call, Capture, Match, call, find, target_of
from compiler.raising.program import Program, is_tensor, module_path, root_of, shape_of

Q, CACHE, SCALE, HIDDEN, COUNT = (Capture(name) for name in ("q", "cache", "scale", "hidden", "count"))
PLAIN_SCORES = call("matmul", Q, call("unsqueeze", call("transpose", CACHE, -1, -2), 1))
SCALED_SCORES = call("mul", PLAIN_SCORES, SCALE)


def _tokens(scores: Call) -> Call:
    """topk(sum over heads of weight relu(scores)), hidden tokens at minus infinity"""
    weighted = call("matmul", call("unsqueeze", Capture("weights"), -2), call("relu", scores))
    hidden = call("masked_fill", call("squeeze", weighted, -2), HIDDEN, -math.inf)
    return Call("getitem", (call("topk", hidden, COUNT), 1))


TOKENS = (_tokens(PLAIN_SCORES), _tokens(SCALED_SCORES))

BLOCK_SCORES = call("masked_fill", call("matmul", Q, call("transpose", CACHE, -1, -2)), HIDDEN, -math.inf)
PADDED = call("pad", BLOCK_SCORES, Capture("padding"), Capture("mode"), -math.inf)
# Beyond these positions masks and local blocks are taken to go on as they did.
TRIED = 40


def _blocks(scores: Call) -> Call:
    """topk(maximum in each block), local blocks at infinity, -1 where the maximum is minus infinity"""
    maxima = call("amax", call("view", scores, Capture("shape")), (-1,))
    top = call("topk", call("scatter", maxima, -1, Capture("local"), math.inf), COUNT)
    empty = call("eq", Call("getitem", (top, 0)), -math.inf)
    return call("masked_fill", Call("getitem", (top, 1)), empty, -1)


BLOCKS = (_blocks(BLOCK_SCORES), _blocks(PADDED))


def split_chosen(mask: Node | None) -> tuple[Node | None, tuple[Attribute, ...], tuple[Node, ...]]:
    """Return a mask without its choice, then the choice: selected, block and selectors as attributes, and the ids."""
    mask = _chosen_before(mask)
    if mask is None or target_of(mask) != "pim.chosen":
        return mask, tuple(UNSELECTED.values()), ()
    plain, ids, block = mask.args
    assert isinstance(plain, Node)
    assert isinstance(ids, Node)
    assert isinstance(block, int)
    _, selectors, selected = shape_of(ids)
    return plain, (selected, block, selectors), (_without_integer_casts(ids),)


def _chosen_before(mask: Node | None) -> Node | None:
    """Return the choice from a mask, of a mask that is both: mask & chosen(mask, ids)."""
    if mask is None or target_of(mask) not in ("aten.__and__", "aten.bitwise_and", "aten.logical_and"):
        return mask
    for one, other in (mask.args, mask.args[::-1]):
        if isinstance(one, Node) and target_of(one) == "pim.chosen" and one.args[0] is other:
            return one
    return mask


def _without_integer_casts(ids: Node) -> Node:
    """Return the ids before they were made 32 bits wide and 64 again."""
    node = root_of(ids)
    while target_of(node) == "aten._to_copy" and isinstance(node.args[0], Node):
        source = node.args[0]
        if not is_tensor(source) or source.meta["val"].dtype not in (torch.int32, torch.int64):
            return node
        node = root_of(source)
    return node


def find_selected_tokens(program: Program, node: Node) -> tuple[Found, ...]:
    """select with `weighted`: the tokens whose weighted sum of scores is among the largest"""
    found = next((match for one in TOKENS if (match := find(one, node))), None)
    if found is None:
        return NOTHING
    q, weights, scale = found.captures["q"], found.captures["weights"], found.captures.get("scale", 1.0)
    if not isinstance(scale, float) or not is_activation(program, weights):
        return NOTHING
    append = _index_append(program, found, node)
    if append is None:
        return NOTHING
    heads, width = shape_of(q)[-2:]
    context = shape_of(append.results[0])[2]
    attributes = (heads, width, context, found.captures["count"], 1, 0, scale, True)
    operands: Any = (q, weights, *append.results, program.position)
    return (append, Found(OpKind.SELECT, operands, (node,), attributes, f"{module_path(node)}.selected"))


def find_selected_blocks(program: Program, node: Node) -> tuple[Found, ...]:
    """select of blocks: for every head those with the largest scores and the newest ones"""
    found = next((match for one in BLOCKS if (match := find(one, node))), None)
    if found is None:
        return NOTHING
    append = _index_append(program, found, node)
    if append is None:
        return NOTHING
    q, (*_, block) = found.captures["q"], found.captures["shape"]
    _, heads, _, width = shape_of(q)
    local = _local_blocks(program, found.captures["local"], block)
    if local is None:
        return NOTHING
    context = shape_of(append.results[0])[2]
    attributes = (heads, width, context, found.captures["count"], block, local, 1.0, False)
    operands: Any = (q, *append.results, program.position)
    return (append, Found(OpKind.SELECT, operands, (node,), attributes, f"{module_path(node)}.selected"))


def _index_append(program: Program, found: Match, node: Node) -> Found | None:
    """Return the write of the index cache, if what is scored is that and only later tokens are hidden."""
    cache = root_of(found.captures["cache"])
    q, hidden = found.captures["q"], found.captures["hidden"]
    if target_of(cache) != "pim.append" or not is_activation(program, q) or not is_position(program, cache.args[2]):
        return None
    _, token, _ = cache.args
    before = root_of(cache.args[0])  # type: ignore[arg-type]
    _, heads, context, width = shape_of(cache)
    if before not in program.states or heads != 1 or not _hides_later_tokens(program, hidden, context):
        return None
    operands: Any = (token, before, program.position)
    return Found(OpKind.INDEX_APPEND, operands, (cache,), (width, context), f"{module_path(node)}.index_cache")


def _hides_later_tokens(program: Program, hidden: Node, context: int) -> bool:
    return all(
        (value := evaluated(program, hidden, position)) is not None
        and bool((value.reshape(-1, context) == (torch.arange(context) > position)).all())
        for position in sorted({*range(min(context, TRIED)), context - 1})
    )


def _local_blocks(program: Program, local: Node, block: int) -> int | None:
    """Return how many of the newest blocks are always selected; None if these are others."""
    count = shape_of(local)[-1]

    def newest(position: int) -> Tensor:
        return (position // block - torch.arange(count)).clamp(min=0)

    fits = all(
        (value := evaluated(program, local, position)) is not None
        and bool((value.reshape(-1, count) == newest(position)).all())
        for position in range(0, count * block + TRIED, max(1, block // 2))
    )
    return count if fits else None
