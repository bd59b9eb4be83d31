"""Operators of our own that a captured model calls where its meaning is known: they arrive in the program as they are.

Each says what it computes by a plain implementation, so that a captured module also runs; a graph's meaning is
the interpreter's, which shares no code with these. Registered with torch as `pim::…`.
"""

import torch
from torch import Tensor
from torch.library import custom_op


@custom_op("pim::append", mutates_args=())
def append(cache: Tensor, token: Tensor, position: Tensor) -> Tensor:
    """Return the cache [B, heads, context, width] with a token [B, heads, 1, width] written at the position [1]."""
    return cache.index_copy(2, position, token)


@append.register_fake
def _append_type(cache: Tensor, token: Tensor, position: Tensor) -> Tensor:
    return torch.empty_like(cache)


@custom_op("pim::remember", mutates_args=())
def remember(state: Tensor, axis: int, place: Tensor, token: Tensor) -> Tensor:
    """Return a state with a token written at a place [1] along an axis: what tokens leave behind that is no key."""
    return state.index_copy(axis, place, token)


@remember.register_fake
def _remember_type(state: Tensor, axis: int, place: Tensor, token: Tensor) -> Tensor:
    return torch.empty_like(state)


@custom_op("pim::attention", mutates_args=())
def attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    sinks: Tensor | None,
    bias: Tensor | None,
    scale: float,
    softcap: float,
) -> Tensor:
    """Return the attention [B, 1, heads, value width] of one token over caches; the mask is true where it attends."""
    groups = query.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)
    scores = scale * (query @ keys.transpose(2, 3))
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    if sinks is not None:
        scores = torch.cat((scores, sinks.reshape(1, -1, 1, 1).expand(len(query), -1, 1, 1)), dim=-1)
    weights = scores.softmax(-1)[..., : keys.shape[2]]
    return (weights @ values).transpose(1, 2).contiguous()


@attention.register_fake
def _attention_type(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    sinks: Tensor | None,
    bias: Tensor | None,
    scale: float,
    softcap: float,
) -> Tensor:
    return query.new_empty((query.shape[0], query.shape[2], query.shape[1], values.shape[3]))


@custom_op("pim::latent_attention", mutates_args=())
def latent_attention(
    query: Tensor,
    rotary: Tensor,
    latents: Tensor,
    keys: Tensor,
    mask: Tensor | None,
    scale: float,
    sinks: Tensor | None = None,
) -> Tensor:
    """Return softmax(scale (query c^T + rotary k^T)) c as [B, heads, 1, latent] over latents c and rotary keys k."""
    scores = scale * (query @ latents.transpose(2, 3) + rotary @ keys.transpose(2, 3))
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    if sinks is not None:
        scores = torch.cat((scores, sinks.reshape(1, -1, 1, 1).expand(len(query), -1, 1, 1)), dim=-1)
    return scores.softmax(-1)[..., : keys.shape[2]] @ latents


@latent_attention.register_fake
def _latent_attention_type(
    query: Tensor,
    rotary: Tensor,
    latents: Tensor,
    keys: Tensor,
    mask: Tensor | None,
    scale: float,
    sinks: Tensor | None = None,
) -> Tensor:
    return torch.empty_like(query)


@custom_op("pim::head_linear", mutates_args=())
def head_linear(x: Tensor, weight: Tensor, first: int, count: int, transposed: bool) -> Tensor:
    """Return for every head of x [B, heads, 1, width] the product with `count` rows of its part of the weight.

    The parts are rows of one matrix, or one matrix a head.
    """
    matrices = weight.view(x.shape[1], -1, weight.shape[-1])[:, first : first + count]
    return x @ (matrices if transposed else matrices.transpose(1, 2))


@head_linear.register_fake
def _head_linear_type(x: Tensor, weight: Tensor, first: int, count: int, transposed: bool) -> Tensor:
    return x.new_empty((*x.shape[:3], weight.shape[-1] if transposed else count))


@custom_op("pim::routed_linear", mutates_args=())
def routed_linear(x: Tensor, ids: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
    """Return x [B, 1 or top_k, width] times the matrices that ids [B, top_k] choose: [B, top_k, outputs]."""
    chosen = weight[ids] if transposed else weight[ids].transpose(2, 3)
    products = (x.unsqueeze(2) @ chosen).squeeze(2)
    return products if bias is None else products + bias[ids]


@routed_linear.register_fake
def _routed_linear_type(x: Tensor, ids: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> Tensor:
    return x.new_empty((*ids.shape, weight.shape[2] if transposed else weight.shape[1]))
