"""DeepSeek-V4's attention as one step of fixed shapes: to a window of tokens, and to entries that stand for several.

transformers gathers tokens until an entry is complete. Here the entry is made anew with each of its tokens and written
to its place; it is seen once the last of them has been. The softmax over both caches is that over each, joined by their
sums. What the model keeps once, as key and as value, is two caches here.
"""

import sys
from typing import Any

import torch
from torch import Tensor, nn

from compiler.huggingface import hooks
from compiler.huggingface.cache import buffered, collected, position_of
from compiler.raising import marks
from compiler.raising.partial_marks import partial_attention, select_entries

# The numbers of a layer's states and caches: tokens and their gates of a compressor, and its entries.
ENTRY_STATES, INDEX_STATES = (0, 1), (2, 3)
KEYS, VALUES, INDEX = 0, 1, 2


def attention(
    module: Any,
    hidden_states: Tensor,
    position_embeddings: dict[str, tuple[Tensor, Tensor]],
    position_ids: Tensor,
    attention_mask: Tensor,
    cache: Any,
    **_: Any,
) -> tuple[Tensor, None]:
    """Take the place of `DeepseekV4Attention.forward`."""
    batch, width, config = len(hidden_states), module.head_dim, module.config
    cosine, sine = position_embeddings[module.rope_layer_type]
    residual = module.q_a_norm(module.q_a_proj(hidden_states))
    query = module.q_b_norm(module.q_b_proj(residual).view(batch, 1, -1, width).transpose(1, 2))
    shared = module.kv_norm(module.kv_proj(hidden_states)).view(batch, 1, 1, width)
    query, shared = _rotated(module, query, cosine, sine), _rotated(module, shared, cosine, sine)
    keys, values = cache.update(shared, shared, module.layer_idx)
    if module.compressor is None:
        attended, _none = hooks.attend(
            module, query, keys, values, attention_mask, scaling=module.scaling, s_aux=module.sinks
        )
    else:
        last, entries = module.compressor(hidden_states, residual, position_ids, cache, module.layer_idx)
        position = position_of(cache.layers[module.layer_idx])
        near, near_sum = partial_attention(
            query, keys, values, position, None, None, module.sliding_window, module.scaling
        )
        far, far_sum = partial_attention(query, *entries[:2], last, entries[2], module.sinks, 0, module.scaling)
        share = torch.sigmoid(near_sum.float() - far_sum.float()).unsqueeze(-1)
        attended = (far.float() + share * (near.float() - far.float())).to(far.dtype)
    turned = _rotated(module, attended.transpose(1, 2), cosine, -sine).transpose(1, 2)
    weight = module.o_a_proj.weight
    groups = turned.reshape(batch, config.o_groups, 1, -1)
    mixed = marks.head_linear(groups, weight, 0, len(weight) // config.o_groups, False)
    return module.o_b_proj(mixed.reshape(batch, 1, -1)), None


def heavy_compressor(
    module: Any, hidden_states: Tensor, _residual: Tensor, _position_ids: Tensor, cache: Any, layer_idx: int
) -> tuple[Tensor, tuple[Tensor, Tensor, None]]:
    """Take the place of `DeepseekV4HCACompressor.forward`: return the last entry that is complete, and the entries."""
    layer = cache.layers[layer_idx]
    entry = _entry(module, hidden_states, layer, ENTRY_STATES, overlapping=False).unsqueeze(1)
    keys, values = (collected(layer, number, entry, module.compress_rate) for number in (KEYS, VALUES))
    return _last(module, layer), (keys, values, None)


def sparse_compressor(
    module: Any, hidden_states: Tensor, residual: Tensor, position_ids: Tensor, cache: Any, layer_idx: int
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """Take the place of `DeepseekV4CSACompressor.forward`: with the entries also those that the indexer chooses."""
    layer = cache.layers[layer_idx]
    entry = _entry(module, hidden_states, layer, ENTRY_STATES, overlapping=True).unsqueeze(1)
    keys, values = (collected(layer, number, entry, module.compress_rate) for number in (KEYS, VALUES))
    chosen = module.indexer(hidden_states, residual, position_ids, cache, layer_idx)
    return _last(module, layer), (keys, values, chosen)


def indexer(
    module: Any, hidden_states: Tensor, residual: Tensor, position_ids: Tensor, cache: Any, layer_idx: int
) -> Tensor:
    """Take the place of `DeepseekV4Indexer.forward`: the entries with the largest scores."""
    layer, batch = cache.layers[layer_idx], len(hidden_states)
    entry = _entry(module, hidden_states, layer, INDEX_STATES, overlapping=True).unsqueeze(1)
    index = collected(layer, INDEX, entry, module.compress_rate)
    cosine, sine = module.rotary_emb(hidden_states, position_ids=position_ids, layer_type=module.rope_layer_type)
    query = module.q_b_proj(residual).view(batch, 1, -1, module.head_dim).transpose(1, 2)
    query = _rotated(module, query, cosine, sine).transpose(1, 2)
    weights = module.scorer.weights_proj(hidden_states) * module.scorer.weights_scaling
    count = min(module.index_topk, index.shape[2])
    last, scale = _last(module, layer), module.scorer.softmax_scale
    chosen: Tensor = select_entries(query, weights, index, last, count, scale)
    return chosen


def _last(module: Any, layer: Any) -> Tensor:
    """Return the number [1] of the last complete entry, -1 where there is none."""
    last: Tensor = (position_of(layer) + 1) // module.compress_rate - 1
    return last


def _entry(module: Any, hidden_states: Tensor, layer: Any, states: tuple[int, int], *, overlapping: bool) -> Tensor:
    """Return the entry [B, 1, width] of the tokens since the last one.

    Where entries overlap, every token has a part in that of its own window and another, the first half of its vector,
    in the next one; the buffer holds two windows then, which take turns.
    """
    rate, position = module.compress_rate, position_of(layer)
    windows = 2 if overlapping else 1
    projected = (module.kv_proj(hidden_states), module.gate_proj(hidden_states))
    values, gates = (
        buffered(layer, number, one, windows * rate) for number, one in zip(states, projected, strict=True)
    )
    bias = module.position_bias.repeat(windows, 1)
    if not overlapping:
        gates = gates + bias
    else:
        window = torch.arange(2 * rate).unsqueeze(-1) // rate
        is_own = window == position // rate % 2
        own, next_one = slice(module.head_dim, None), slice(module.head_dim)
        values = torch.where(is_own, values[..., own], values[..., next_one])
        gates = torch.where(is_own, gates[..., own] + bias[:, own], gates[..., next_one] + bias[:, next_one])
        gates = gates.masked_fill(~is_own & (position < rate), -torch.inf)
    weights = nn.functional.softmax(gates, dim=1, dtype=torch.float32).to(values.dtype)
    entry = module.kv_norm((values * weights).sum(1, keepdim=True))
    first = (position // rate * rate).unsqueeze(0).expand(len(hidden_states), 1)
    cosine, sine = module.rotary_emb(entry, position_ids=first, layer_type=module.rope_layer_type)
    return _rotated(module, entry.unsqueeze(1), cosine, sine).squeeze(1)


def _rotated(module: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    rotated: Tensor = sys.modules[type(module).__module__].apply_rotary_pos_emb(x, cosine, sine)
    return rotated
