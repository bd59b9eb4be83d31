"""The meaning of a graph: executes it operator by operator in plain torch, in one stated precision.

This is the oracle that lowered programs and the original modules are compared with, so that it prefers the defining
formula to speed and shares no code with either.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from compiler.graph import Graph, Op, OpKind


def execute(
    graph: Graph,
    inputs: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
    precision: torch.dtype = torch.float64,
) -> dict[str, Tensor]:
    """Return every value of one step by name, inputs and weights included; floating values have `precision`.

    The tensors given are left unchanged. Raises KeyError when an input or a weight is missing.
    """
    given = {value.name: inputs[value.name] for value in graph.inputs}
    given |= {value.name: weights[value.name] for value in graph.weights}
    values = {name: one.to(precision) if one.is_floating_point() else one for name, one in given.items()}
    for op in graph.ops:
        results = MEANINGS[op.kind](op, [values[name] for name in op.inputs])
        values.update(zip((result.name for result in op.results), results, strict=True))
    return values


def next_caches(graph: Graph, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the caches after a step, under the names of the inputs that hold them before the next step."""
    appends = [op for op in graph.ops if op.kind is OpKind.KV_APPEND]
    return {
        before: values[after.name] for op in appends for before, after in zip(op.inputs[2:4], op.results, strict=True)
    }


Operands = Sequence[Tensor]


def _embedding(op: Op, operands: Operands) -> Operands:
    ids, table = operands
    return (table[ids],)


def _linear(op: Op, operands: Operands) -> Operands:
    x, *parameters = operands
    parts = len(op.integers("parts"))
    products = [x @ weight.T for weight in parameters[:parts]]
    if not op.flag("bias"):
        return products
    return [product + bias for product, bias in zip(products, parameters[parts:], strict=True)]


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
        cache[:, :, int(position)] = token.reshape(len(token), op.integer("kv_heads"), op.integer("head_dim"))
    return caches


def _attention(op: Op, operands: Operands) -> Operands:
    query, keys, values, position = operands
    last, window = int(position), op.integer("window")
    first = max(0, last + 1 - window) if window else 0
    kv_heads, head_dim = op.integer("kv_heads"), op.integer("head_dim")
    grouped = query.reshape(len(query), kv_heads, op.integer("heads") // kv_heads, head_dim)
    scores = op.number("scale") * torch.einsum("bkgd,bktd->bkgt", grouped, keys[:, :, first : last + 1])
    attended = torch.einsum("bkgt,bktd->bkgd", scores.softmax(-1), values[:, :, first : last + 1])
    return (attended.flatten(1),)


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
    OpKind.NORM: _norm,
    OpKind.ROTARY: _rotary,
    OpKind.KV_APPEND: _kv_append,
    OpKind.ATTENTION: _attention,
    OpKind.GATED_ACTIVATION: _gated_activation,
    OpKind.ADD: _add,
    OpKind.ROUTE: _route,
    OpKind.EXPERTS: _experts,
    OpKind.SAMPLE: _sample,
}
