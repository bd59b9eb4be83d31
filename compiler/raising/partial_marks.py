"""Marks of attention to a part of what a token attends to, and of a selection, both up to a place that is computed.

A softmax over several caches is that over each, weighed by their sums: the logarithm of a part's sum comes with it.
"""

import torch
from torch import Tensor
from torch.library import custom_op


@custom_op("pim::partial_attention", mutates_args=())
def partial_attention(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    last: Tensor,
    ids: Tensor | None,
    sinks: Tensor | None,
    window: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Return attention [B, 1, heads, width] to the entries up to `last` [1], and the log of its sum [B, 1, heads].

    Only entries among ids [B, 1, k] are read, if there are any, and of a window only the last ones. With sinks, which
    take part in the sum, `last` may be -1: no entry then.
    """
    groups = query.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)
    entries = torch.arange(keys.shape[2])
    seen = (entries <= last) & (entries > last - window) if window else entries <= last
    if ids is not None:
        seen = seen & (entries == ids.unsqueeze(-1)).any(-2, keepdim=True)
    scores = (scale * (query @ keys.transpose(2, 3))).masked_fill(~seen, -torch.inf)
    if sinks is not None:
        scores = torch.cat((scores, sinks.reshape(1, -1, 1, 1).expand(len(query), -1, 1, 1)), dim=-1)
    attended = scores.softmax(-1)[..., : keys.shape[2]] @ values
    return attended.transpose(1, 2).contiguous(), scores.logsumexp(-1).transpose(1, 2).contiguous()


@partial_attention.register_fake
def _partial_attention_type(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    last: Tensor,
    ids: Tensor | None,
    sinks: Tensor | None,
    window: int,
    scale: float,
) -> tuple[Tensor, Tensor]:
    batch, heads, tokens, _ = query.shape
    return query.new_empty((batch, tokens, heads, values.shape[3])), query.new_empty((batch, tokens, heads))


@custom_op("pim::select_entries", mutates_args=())
def select_entries(
    query: Tensor, weights: Tensor, index_cache: Tensor, last: Tensor, count: int, scale: float
) -> Tensor:
    """Return the ids [B, 1, count] of the largest sums of weight relu(scale q k^T) up to `last`, -1 for none.

    query is [B, 1, heads, width], weights are [B, 1, heads], the index cache is [B, 1, entries, width].
    """
    scores = (scale * (query @ index_cache.transpose(2, 3))).relu()
    summed = (weights.unsqueeze(-2) @ scores).squeeze(-2)
    top = summed.masked_fill(torch.arange(index_cache.shape[2]) > last, -torch.inf).topk(count)
    return top.indices.masked_fill(top.values == -torch.inf, -1)


@select_entries.register_fake
def _select_entries_type(
    query: Tensor, weights: Tensor, index_cache: Tensor, last: Tensor, count: int, scale: float
) -> Tensor:
    return query.new_empty((len(query), 1, count), dtype=torch.int64)
