"""Rules of raising for attention in parts, to caches whose entries are written and seen at places that are computed."""

from typing import Any

from torch.fx import Node

from compiler.graph import UNSELECTED, OpKind
from compiler.raising.attention_rules import append_of
from compiler.raising.found import NOTHING, Found, weight_of
from compiler.raising.patterns import arguments_of, target_of
from compiler.raising.program import Program, module_path, root_of, shape_of


def find_partial_attention(program: Program, node: Node) -> tuple[Found, ...]:
    """pim.partial_attention(q, k_cache, v_cache, last, ids, sinks, window, scale), taken apart"""
    mark: Any = node.args[0]
    if target_of(mark) != "pim.partial_attention":
        return NOTHING
    query, keys, values, last, ids, sinks, window, scale = arguments_of(mark)
    parts = {user.args[1]: user for user in mark.users}
    if set(parts) != {0, 1} or not all(_is_written(program, one) for one in (keys, values)):
        return NOTHING
    (heads, _, head_dim), (kv_heads, context, value_dim) = shape_of(query)[1:], shape_of(values)[1:]
    chosen = UNSELECTED if ids is None else UNSELECTED | {"selected": shape_of(ids)[2]}
    sink = () if sinks is None else (weight_of(program, sinks) or sinks,)
    attributes = (
        *(heads, kv_heads, head_dim, context, window, float(scale), value_dim if value_dim != head_dim else 0),
        *(0, 0.0, bool(sink), False, *chosen.values(), False, True),
    )
    path = module_path(mark)
    operands = (query, keys, values, root_of(last), *sink, *(() if ids is None else (ids,)))
    attention = Found(OpKind.ATTENTION, operands, (parts[0], parts[1]), attributes, f"{path}.attention")
    return (append_of(program, (keys, values), path), attention)


def find_selected_entries(program: Program, node: Node) -> tuple[Found, ...]:
    """pim.select_entries(q, weights, index_cache, last, count, scale)"""
    query, weights, cache, last, count, scale = arguments_of(node)
    if not _is_written(program, cache):
        return NOTHING
    path, (heads, width), context = module_path(node), shape_of(query)[2:], shape_of(cache)[2]
    token, before, place = cache.args[1], root_of(cache.args[0]), root_of(cache.args[2])
    append = Found(OpKind.INDEX_APPEND, (token, before, place), (cache,), (width, context), f"{path}.index_cache")
    attributes = (heads, width, context, count, 1, 0, float(scale), True)
    operands = (query, weights, cache, root_of(last))
    return (append, Found(OpKind.SELECT, operands, (node,), attributes, f"{path}.selected"))


def _is_written(program: Program, cache: Any) -> bool:
    """Tell whether a node is a cache with an entry written into it, wherever."""
    return target_of(cache) == "pim.append" and root_of(cache.args[0]) in program.states
