"""Rules of raising for attention: rotary embeddings, cache writes and scaled dot products over a cache."""

import math
from collections.abc import Sequence
from typing import Any

from torch.fx import Node

from compiler.graph import OpKind, Value
from compiler.patterns import Capture, Pattern, arguments_of, call, find
from compiler.raiser import Raiser, all_known, module_path, shape_of

X, POSITION = Capture("x"), Capture("position")

UPPER = call("neg", call("slice", X, Capture("axis"), Capture("half"), Capture("end")))
LOWER = call("slice", X, Capture("axis"), 0, Capture("half"))
COSINE, SINE = call("cos", Capture("angles")), call("sin", Capture("angles"))
ROTATED = call("add", call("mul", X, COSINE), call("mul", call("cat", (UPPER, LOWER), -1), SINE))
EXPONENTS = call("div", call("arange", 0, Capture("head_dim"), 2), Capture("head_dim"))
FREQUENCIES = call("mul", call("reciprocal", call("pow", Capture("theta"), EXPONENTS)), 1.0)
TURNS = call("div", call("mul", FREQUENCIES, Capture("original")), 2 * math.pi)
SMOOTH = call("clamp", call("div", call("sub", TURNS, Capture("low")), Capture("span")), 0.0, 1.0)
BLEND = call("add", call("div", call("rsub", SMOOTH, 1.0), Capture("factor")), SMOOTH)


def _angles(frequencies: Pattern) -> Pattern:
    half = call("mul", POSITION, frequencies)
    return call("cat", (half, half), -1)


SLOTS = call("arange", Capture("context"))
CAUSAL = call("le", SLOTS, POSITION)
WINDOWED = call("__and__", CAUSAL, call("gt", SLOTS, call("sub", POSITION, Capture("window"))))


def raise_rotary(raiser: Raiser, node: Node) -> bool:
    """x * cos(angles) + (-x[upper half], x[lower half]) * sin(angles), angles = position * frequencies"""
    rotated = find(ROTATED, node)
    if rotated is None or rotated.captures["x"] not in raiser.activations:
        return False
    plain = find(_angles(FREQUENCIES), rotated.captures["angles"])
    angles = plain or find(_angles(call("mul", FREQUENCIES, BLEND)), rotated.captures["angles"])
    head_dim = shape_of(rotated.captures["x"])[-1]
    half, axis = rotated.captures["half"], rotated.captures["axis"]
    whole_halves = (2 * half, axis) == (head_dim, len(shape_of(node)) - 1) and rotated.captures["end"] >= head_dim
    if angles is None or not whole_halves:
        return False
    bound, position = angles.captures, raiser.activations.get(angles.captures["position"])
    if bound["head_dim"] != head_dim or position is None:
        return False
    scaling: tuple[Any, ...] = ("none", 1.0, 1.0, 1.0, 0)
    if plain is None:
        low, high = float(bound["low"]), float(bound["low"] + bound["span"])
        scaling = ("llama3", float(bound["factor"]), low, high, bound["original"])
    x = raiser.activations[rotated.captures["x"]]
    attributes = (x.type.shape[-1] // head_dim, head_dim, float(bound["theta"]), *scaling)
    raiser.covered.update(angles.covered)
    name = f"{x.name.removesuffix('_proj').removesuffix('_norm')}_rotary"
    return raiser.emit_result(node, OpKind.ROTARY, name, [x, position], attributes, rotated)


def raise_cache_write(raiser: Raiser, node: Node) -> bool:
    """Note index_copy_(cache, 2, position, token); attention turns the pair of them into one kv_append."""
    cache, axis, *_ = arguments_of(node)
    if cache not in raiser.inputs or axis != 2 or cache in raiser.cache_writes:
        return False
    raiser.cache_writes[cache] = raiser.cache_writes[node] = node
    return False


def raise_attention(raiser: Raiser, node: Node) -> bool:
    """scaled_dot_product_attention(q, k_cache, v_cache, mask) over the two caches just written"""
    query, keys, values, *rest = arguments_of(node)
    options: dict[str, Any] = {"attn_mask": rest[0] if len(rest) == 1 else None, **node.kwargs}
    mask = options.pop("attn_mask")
    writes = [raiser.cache_writes[cache] for cache in (keys, values) if cache in raiser.cache_writes]
    if query not in raiser.activations or len(writes) != 2:
        return False
    if len(rest) > 1 or set(options) - {"scale", "enable_gqa"}:
        return False
    found = find(call("unsqueeze", CAUSAL, 0), mask) or find(call("unsqueeze", WINDOWED, 0), mask)
    if found is None or len(shape_of(query)) != 4 or shape_of(query)[2] != 1:
        return False
    heads, head_dim = shape_of(query)[1], shape_of(query)[3]
    kv_heads, context = shape_of(keys)[1:3]
    position = raiser.activations.get(found.captures["position"])
    if position is None or found.captures["context"] != context:
        return False
    appended = _append_to_caches(raiser, node, writes, position)
    if not appended:
        return False
    scale = float(options.get("scale") or 1 / math.sqrt(head_dim))
    attributes = (heads, kv_heads, head_dim, context, found.captures.get("window", 0), scale)
    operands = [raiser.activations[query], *appended, position]
    return raiser.emit_result(node, OpKind.ATTENTION, f"{module_path(node)}.attention", operands, attributes, found)


def _append_to_caches(raiser: Raiser, node: Node, writes: Sequence[Node], position: Value) -> list[Value]:
    """Emit the kv_append of two noted writes and return the caches after it.

    Returns nothing when a write is already used, or writes something else than this step's token at `position`.
    """
    tokens = all_known(raiser.activations, [write.args[3] for write in writes])
    indices = all_known(raiser.activations, [write.args[2] for write in writes])
    caches = all_known(raiser.inputs, [write.args[0] for write in writes])
    if not tokens or not caches or indices != [position, position] or raiser.covered.intersection(writes):
        return []
    names = [raiser.fresh_name(f"{module_path(node)}.{role}_cache") for role in ("key", "value")]
    results = [Value(name, cache.type) for name, cache in zip(names, caches, strict=True)]
    _, kv_heads, context, head_dim = caches[0].type.shape
    raiser.emit(OpKind.KV_APPEND, [*tokens, *caches, position], results, (kv_heads, head_dim, context))
    raiser.caches_after.extend(names)
    raiser.covered.update(writes)
    return results
