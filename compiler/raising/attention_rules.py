"""Rules of raising for attention: rotary embeddings, cache writes and attention over a cache."""

import math
from typing import Any

from torch.fx import Node

from compiler.graph import OpKind
from compiler.raising.found import NOTHING, Found, is_activation, is_position, owner, weight_of
from compiler.raising.masks import Visible, visible_of
from compiler.raising.patterns import Capture, Pattern, arguments_of, call, find, target_of
from compiler.raising.program import Program, elements_of, module_path, not_understood, root_of, shape_of
from compiler.raising.selection_rules import split_chosen

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
WRITES = ("pim.append", "aten.index_copy")


def _angles(frequencies: Pattern) -> Pattern:
    half = call("mul", POSITION, frequencies)
    return call("cat", (half, half), -1)


def find_rotary(program: Program, node: Node) -> tuple[Found, ...]:
    """x * cos(angles) + (-x[upper half], x[lower half]) * sin(angles), angles = position * frequencies"""
    rotated = find(ROTATED, node)
    if rotated is None or not is_activation(program, rotated.captures["x"]):
        return NOTHING
    x = rotated.captures["x"]
    plain = find(_angles(FREQUENCIES), rotated.captures["angles"])
    angles = plain or find(_angles(call("mul", FREQUENCIES, BLEND)), rotated.captures["angles"])
    head_dim, half, axis = shape_of(x)[-1], rotated.captures["half"], rotated.captures["axis"]
    whole_halves = (2 * half, axis) == (head_dim, len(shape_of(node)) - 1) and rotated.captures["end"] >= head_dim
    if angles is None or not whole_halves:
        return NOTHING
    bound = angles.captures
    if bound["head_dim"] != head_dim or not is_position(program, bound["position"]):
        return NOTHING
    assert program.position is not None
    scaling: tuple[Any, ...] = ("none", 1.0, 1.0, 1.0, 0)
    if plain is None:
        low, high = float(bound["low"]), float(bound["low"] + bound["span"])
        scaling = ("llama3", float(bound["factor"]), low, high, bound["original"])
    attributes = (elements_of(x) // program.batch // head_dim, head_dim, float(bound["theta"]), *scaling)
    return (Found(OpKind.ROTARY, (x, program.position), (node,), attributes, f"{_producer(program, x)}_rotary"),)


def _producer(program: Program, node: Node) -> str:
    """Return what the module that computed a value is called, without the suffixes of projections and norms."""
    path = module_path(root_of(node))
    return path.removesuffix("_proj").removesuffix("_norm")


def find_scaled_dot_product(program: Program, node: Node) -> tuple[Found, ...]:
    """scaled_dot_product_attention(q, k_cache, v_cache, mask) over the two caches just written"""
    query, keys, values, *rest = arguments_of(node)
    options: dict[str, Any] = {"attn_mask": rest[0] if len(rest) == 1 else None, **node.kwargs}
    mask = options.pop("attn_mask")
    if len(rest) > 1 or set(options) - {"scale", "enable_gqa"} or not isinstance(mask, Node):
        return NOTHING
    if len(shape_of(query)) != 4 or shape_of(query)[2] != 1:
        return NOTHING
    scale = float(options.get("scale") or 1 / math.sqrt(shape_of(query)[3]))
    return _attention(program, node, (query, keys, values), mask, scale)


def find_attention(program: Program, node: Node) -> tuple[Found, ...]:
    """pim.attention(q, k_cache, v_cache, mask, sinks, bias, scale, softcap)"""
    query, keys, values, mask, sinks, bias, scale, softcap = arguments_of(node)
    sink = None if sinks is None else weight_of(program, sinks) or sinks
    return _attention(program, node, (query, keys, values), mask, scale, softcap, sink, bias)


def _attention(
    program: Program,
    node: Node,
    operands: tuple[Node, Node, Node],
    mask: Node | None,
    scale: float,
    softcap: float = 0.0,
    sinks: Node | None = None,
    bias: Node | None = None,
) -> tuple[Found, ...]:
    query, *caches = operands
    if (
        program.position is None
        or not is_activation(program, query)
        or not all(is_write(program, cache) for cache in caches)
    ):
        return NOTHING
    (heads, _, head_dim), (kv_heads, context, value_dim) = shape_of(query)[1:], shape_of(caches[1])[1:]
    mask, chosen, ids = split_chosen(mask)
    visible = _visible(program, node, mask, context)
    sizes = (heads * context, program.batch * heads * context)
    # Sinks and a bias are parameters, or both are computed for every sequence.
    by_sequence = program.batch > 1 and any(
        one is not None and elements_of(one) == program.batch * size
        for one, size in ((sinks, heads), (bias, heads * context))
    )
    if visible is None or (bias is not None and elements_of(bias) not in sizes):
        return NOTHING
    wide = value_dim if value_dim != head_dim else 0
    more = tuple(one for one in (sinks, bias, *ids) if one is not None)
    attributes = (
        *(heads, kv_heads, head_dim, context, visible.window, float(scale), wide),
        *(visible.chunk, float(softcap), sinks is not None, bias is not None, *chosen, by_sequence),
    )
    path = module_path(node)
    attention = Found(
        OpKind.ATTENTION, (query, *caches, program.position, *more), (node,), attributes, f"{path}.attention"
    )
    return (append_of(program, tuple(caches), path), attention)


def append_of(program: Program, caches: tuple[Node, ...], path: str) -> Found:
    """Return the write of two caches: the token's key and value, or latent and rotary key."""
    tokens: Any = tuple(cache.args[1 if target_of(cache) == "pim.append" else 3] for cache in caches)
    befores = tuple(root_of(cache.args[0]) for cache in caches)  # type: ignore[arg-type]
    _, kv_heads, context, head_dim = shape_of(caches[0])
    value_dim = shape_of(caches[1])[3]
    attributes = (kv_heads, head_dim, context, value_dim if value_dim != head_dim else 0)
    place = root_of(caches[0].args[2])  # type: ignore[arg-type]
    operands: Any = (*tokens, *befores, place)
    return Found(OpKind.KV_APPEND, operands, caches, attributes, f"{path}.key_cache")


def is_write(program: Program, cache: Node) -> bool:
    """Tell whether a node is a cache with this step's token written into it at the position."""
    if target_of(cache) not in WRITES or root_of(cache.args[0]) not in program.states:  # type: ignore[arg-type]
        return False
    if target_of(cache) == "pim.append":
        return is_position(program, cache.args[2])
    on_tokens = bool(cache.args[1] == 2)
    return on_tokens and is_position(program, cache.args[2]) and is_activation(program, cache.args[3])


def _visible(program: Program, node: Node, mask: Node | None, context: int) -> Visible | None:
    if mask is None:
        # A single token without a mask would see slots that are not yet written.
        raise not_understood(node, "an attention with a mask over the cache's slots", "none")
    if mask not in program.visible:
        program.visible[mask] = visible_of(program, mask, context)
    found: Visible | None = program.visible[mask]
    return found


def find_latent_attention(program: Program, node: Node) -> tuple[Found, ...]:
    """pim.latent_attention(q, r, latents, keys, mask, scale, sinks)"""
    query, rotary, latents, keys, mask, scale, *sinks = arguments_of(node)
    sink = () if not sinks or sinks[0] is None else (weight_of(program, sinks[0]) or sinks[0],)
    if not (is_write(program, latents) and is_write(program, keys)):
        return NOTHING
    (heads, _, latent), (_, context, width) = shape_of(query)[1:], shape_of(keys)[1:]
    mask, chosen, ids = split_chosen(mask)
    visible = _visible(program, node, mask, context)
    if visible is None or visible.chunk:
        return NOTHING
    path = module_path(node)
    assert program.position is not None
    attributes = (heads, latent, width, context, visible.window, float(scale), bool(sink), *chosen)
    operands = (query, rotary, latents, keys, program.position, *sink, *ids)
    attention = Found(OpKind.LATENT_ATTENTION, operands, (node,), attributes, f"{path}.attention")
    return (append_of(program, (latents, keys), path), attention)


def find_head_linear(program: Program, node: Node) -> tuple[Found, ...]:
    """pim.head_linear(x, weight, first, count, transposed)"""
    x, weight_node, first, count, transposed = arguments_of(node)
    heads, columns = shape_of(x)[1], shape_of(weight_node)[-1]
    all_rows = elements_of(weight_node) // columns
    stack = root_of(weight_node)
    stacked = stack in program.weights and shape_of(stack) == (heads, all_rows // heads, columns)
    weight = stack if stacked else weight_of(program, weight_node)
    if weight is None:
        return NOTHING
    sizes = (count, columns) if transposed else (columns, count)
    attributes = (heads, *sizes, all_rows // heads, first, transposed, stacked)
    name = f"{owner(program, weight)}_{'keys' if transposed else 'values'}"
    return (Found(OpKind.HEAD_LINEAR, (x, weight), (node,), attributes, name),)
