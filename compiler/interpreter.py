"""The meaning of a graph: executes it operator by operator in plain torch, in one stated precision.

This is the oracle that lowered programs and the original modules are compared with, so that it prefers the defining
formula to speed and shares no code with either.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from compiler.body_execution import run_body
from compiler.graph import Graph, Op, OpKind
from compiler.signatures import WITH_BODY

Operands = Sequence[Tensor]


def execute(
    graph: Graph,
    inputs: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    precision: torch.dtype = torch.float64,
    pinned: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """Return every value of one step by name, inputs and weights included; floating values have `precision`.

    What a computation keeps wider on purpose is rounded where an operator takes it.
    A pinned value, such as the experts that another execution chose, takes the place of the one computed. The tensors
    given are left unchanged. Raises KeyError when an input, a weight or a constant is missing.
    """
    given = {value.name: inputs[value.name] for value in graph.inputs}
    given |= {value.name: weights[value.name] for value in (*graph.weights, *graph.constants)}
    values = {name: one.to(precision) if one.is_floating_point() else one for name, one in given.items()}
    for op in graph.ops:
        operands = [values[name] for name in op.inputs]
        if op.kind in WITH_BODY:
            results: Operands = run_body(op.text("body"), operands, precision)
        else:
            rounded = [one.to(precision) if one.is_floating_point() else one for one in operands]
            results = MEANINGS[op.kind](op, rounded)
        named = zip((result.name for result in op.results), results, strict=True)
        values.update((name, (pinned or {}).get(name, result)) for name, result in named)
    return values


def state_pairs(op: Op) -> list[tuple[str, str]]:
    """Return the names of the caches or states that an operator takes, each with that of the one it makes of it."""
    if op.kind is OpKind.KV_APPEND:
        return list(zip(op.inputs[2:4], (result.name for result in op.results), strict=True))
    if op.kind is OpKind.INDEX_APPEND:
        return [(op.inputs[1], op.name)]
    if op.kind is OpKind.RECURRENCE:
        count = op.integer("states")
        return list(zip(op.inputs[:count], (result.name for result in op.results[:count]), strict=True))
    return []


def next_states(graph: Graph, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the caches and states after a step, under the names of the inputs that hold them before the next step."""
    return {before: values[after] for op in graph.ops for before, after in state_pairs(op)}


def _embedding(op: Op, operands: Operands) -> Operands:
    ids, table = operands
    return (table[ids],)


def _linear(op: Op, operands: Operands) -> Operands:
    x, *parameters = operands
    parts = len(op.integers("parts"))
    matrices = [weight if op.flag("transposed") else weight.T for weight in parameters[:parts]]
    products = [x @ matrix for matrix in matrices]
    if not op.flag("bias"):
        return products
    return [product + bias for product, bias in zip(products, parameters[parts:], strict=True)]


def _head_linear(op: Op, operands: Operands) -> Operands:
    x, weight = operands
    heads, first, inputs = op.integer("heads"), op.integer("first"), op.integer("in_features")
    count = inputs if op.flag("transposed") else op.integer("out_features")
    matrices = weight.reshape(heads, op.integer("rows"), -1)[:, first : first + count]
    spelling = "bhi,hio->bho" if op.flag("transposed") else "bhi,hoi->bho"
    return (torch.einsum(spelling, x.reshape(len(x), heads, inputs), matrices).flatten(1),)


def _routed_linear(op: Op, operands: Operands) -> Operands:
    x, ids, weight, *bias = operands
    inputs = x.reshape(len(x), -1, op.integer("in_features")).expand(-1, op.integer("top_k"), -1)
    spelling = "bki,bkio->bko" if op.flag("transposed") else "bki,bkoi->bko"
    experts = weight.reshape(op.integer("experts"), -1, weight.shape[-1]) if op.flag("flat") else weight
    products = torch.einsum(spelling, inputs, experts[ids])
    return ((products + bias[0][ids] if bias else products).flatten(1),)


def _norm(op: Op, operands: Operands) -> Operands:
    x, weight = operands
    groups = x.reshape(len(x), op.integer("heads"), op.integer("width"))
    mean_square = groups.square().mean(-1, keepdim=True)
    return ((groups / torch.sqrt(mean_square + op.number("epsilon")) * weight).flatten(1),)


def rotary_frequencies(op: Op) -> list[float]:
    """Return the radians per token of each pair of a rotary operator (`llama3`: the rule of the Llama 3.1 release)."""
    head_dim = op.integer("head_dim")
    plain = [op.number("theta") ** (-2 * pair / head_dim) for pair in range(head_dim // 2)]
    return [_scale_as_llama3(op, one) for one in plain] if op.text("scaling") == "llama3" else plain


def _scale_as_llama3(op: Op, frequency: float) -> float:
    low, high, factor = (op.number(name) for name in ("low_frequency_factor", "high_frequency_factor", "factor"))
    context, wavelength = op.integer("original_context"), 2 * math.pi / frequency
    if wavelength < context / high:
        return frequency
    if wavelength > context / low:
        return frequency / factor
    smooth = (context / wavelength - low) / (high - low)
    return (1 - smooth) * frequency / factor + smooth * frequency


def _rotary(op: Op, operands: Operands) -> Operands:
    x, position = operands
    heads = x.reshape(len(x), op.integer("heads"), 2, op.integer("head_dim") // 2)
    first, second = heads[:, :, 0], heads[:, :, 1]
    angles = torch.tensor(rotary_frequencies(op), dtype=torch.float64) * position
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    rotated = torch.stack((first * cosine - second * sine, second * cosine + first * sine), dim=2)
    return (rotated.flatten(1),)


def _kv_append(op: Op, operands: Operands) -> Operands:
    *tokens, key_cache, value_cache, position = operands
    caches = [key_cache.clone(), value_cache.clone()]
    for cache, token in zip(caches, tokens, strict=True):
        cache[:, :, int(position)] = token.reshape(len(token), op.integer("kv_heads"), -1)
    return caches


def _attention(op: Op, operands: Operands) -> Operands:
    query, keys, values, position, *more = operands
    ids = more.pop() if op.integer("selected") else None
    first, end = seen_tokens(op, int(position))
    kv_heads, head_dim = op.integer("kv_heads"), op.integer("head_dim")
    grouped = query.reshape(len(query), kv_heads, op.integer("heads") // kv_heads, head_dim)
    scores = op.number("scale") * torch.einsum("bkgd,bktd->bkgt", grouped, keys[:, :, first:end])
    if op.number("softcap"):
        scores = op.number("softcap") * torch.tanh(scores / op.number("softcap"))
    if op.flag("bias"):
        scores = scores + more.pop()[..., first:end].reshape(-1, *scores.shape[1:])
    scores = _of_chosen(op, scores.flatten(1, 2), ids, first).reshape(scores.shape)
    if op.flag("sinks"):
        sinks = more.pop().reshape(-1, *scores.shape[1:3], 1).expand(len(query), -1, -1, -1)
        scores = torch.cat((scores, sinks), dim=-1)
    weights = scores.softmax(-1)[..., : end - first]
    attended = torch.einsum("bkgt,bktd->bkgd", weights, values[:, :, first:end]).flatten(1)
    return (attended, scores.logsumexp(-1).flatten(1)) if op.flag("logsum") else (attended,)


def seen_tokens(op: Op, position: int) -> tuple[int, int]:
    """Return from which to before which position the token at `position` attends."""
    window = op.integer("window")
    chunk = op.integer("chunk") if op.kind is OpKind.ATTENTION else 0
    first = max(0, position + 1 - window) if window else position // chunk * chunk if chunk else 0
    return first, position + 1


def _of_chosen(op: Op, scores: Tensor, ids: Tensor | None, first: int) -> Tensor:
    """Return scores [B, heads, tokens] of the tokens from `first` on, minus infinity outside of the chosen blocks."""
    if ids is None:
        return scores
    blocks = torch.arange(first, first + scores.shape[2]) // op.integer("block")
    chosen = (blocks == ids.reshape(len(ids), op.integer("selectors"), -1, 1)).any(2)
    share = op.integer("heads") // op.integer("selectors")
    return scores.masked_fill(~chosen.repeat_interleave(share, 1), -torch.inf)


def _index_append(op: Op, operands: Operands) -> Operands:
    token, before, position = operands
    cache = before.clone()
    cache[:, 0, int(position)] = token
    return (cache,)


def _select(op: Op, operands: Operands) -> Operands:
    query, *weights, cache, position = operands
    keys, block, selected = cache[:, 0, : int(position) + 1], op.integer("block"), op.integer("selected")
    if not keys.shape[1]:
        return (torch.full((len(query), 1 if weights else op.integer("heads"), selected), -1),)
    scores = op.number("scale") * torch.einsum("bhd,btd->bht", query.reshape(len(query), op.integer("heads"), -1), keys)
    if weights:
        scores = torch.einsum("bh,bht->bt", weights[0], scores.relu()).unsqueeze(1)
    starts = range(0, scores.shape[-1], block)
    blocks = torch.stack([scores[..., start : start + block].amax(-1) for start in starts], dim=-1)
    if op.integer("local"):
        blocks[..., -op.integer("local") :] = torch.inf
    chosen = blocks.topk(min(selected, blocks.shape[-1])).indices
    return (torch.nn.functional.pad(chosen, (0, selected - chosen.shape[-1]), value=-1),)


def _latent_attention(op: Op, operands: Operands) -> Operands:
    query, rotary, latents, keys, position, *more = operands
    ids = more.pop() if op.integer("selected") else None
    first, end = seen_tokens(op, int(position))
    heads, seen = op.integer("heads"), latents[:, 0, first:end]
    scores = torch.einsum("bhc,btc->bht", query.reshape(len(query), heads, -1), seen)
    scores = scores + torch.einsum("bhr,btr->bht", rotary.reshape(len(rotary), heads, -1), keys[:, 0, first:end])
    scores = _of_chosen(op, op.number("scale") * scores, ids, first)
    if op.flag("sinks"):
        scores = torch.cat((scores, more.pop().reshape(1, heads, 1).expand(len(query), -1, -1)), dim=-1)
    weights = scores.softmax(-1)[..., : end - first]
    return (torch.einsum("bht,btc->bhc", weights, seen).flatten(1),)


def _gated_activation(op: Op, operands: Operands) -> Operands:
    gate, up = operands
    return (gate * torch.sigmoid(gate) * up,)


def _add(op: Op, operands: Operands) -> Operands:
    return (operands[0] + operands[1],)


def _route(op: Op, operands: Operands) -> Operands:
    largest = operands[0].softmax(-1).topk(op.integer("top_k"))
    weights = largest.values
    return largest.indices, weights / weights.sum(-1, keepdim=True) if op.flag("normalise") else weights


def _experts(op: Op, operands: Operands) -> Operands:
    x, ids, weights, gate, up, down = operands
    rows = []
    for token, token_ids, token_weights in zip(x, ids.tolist(), weights, strict=True):
        outputs = [
            weight * (down[one] @ (torch.nn.functional.silu(gate[one] @ token) * (up[one] @ token)))
            for one, weight in zip(token_ids, token_weights, strict=True)
        ]
        rows.append(torch.stack(outputs).sum(0))
    return (torch.stack(rows),)


def _sample(op: Op, operands: Operands) -> Operands:
    return (operands[0].argmax(-1),)


MEANINGS: dict[OpKind, Callable[[Op, Operands], Operands]] = {
    OpKind.EMBEDDING: _embedding,
    OpKind.LINEAR: _linear,
    OpKind.HEAD_LINEAR: _head_linear,
    OpKind.ROUTED_LINEAR: _routed_linear,
    OpKind.NORM: _norm,
    OpKind.ROTARY: _rotary,
    OpKind.KV_APPEND: _kv_append,
    OpKind.INDEX_APPEND: _index_append,
    OpKind.SELECT: _select,
    OpKind.ATTENTION: _attention,
    OpKind.LATENT_ATTENTION: _latent_attention,
    OpKind.GATED_ACTIVATION: _gated_activation,
    OpKind.ADD: _add,
    OpKind.ROUTE: _route,
    OpKind.EXPERTS: _experts,
    OpKind.SAMPLE: _sample,
}
