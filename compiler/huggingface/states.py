"""What transformers' own cache holds after some tokens, as the caches and states that a captured step takes.

A graph starts from there where a type's first token is computed otherwise than those that follow it.
"""

from typing import Any

import torch
from torch import Tensor, nn

from compiler.huggingface.cache import held_by


def states_after(cache: Any, context: int, tokens: int) -> dict[str, Tensor]:
    """Return the caches and states by the names of a graph's inputs, their token axis padded to `context`.

    `cache` holds what a model kept after `tokens` tokens; a sliding layer has dropped the first of them.
    """
    states: dict[str, Tensor] = {}
    for number, layer in enumerate(cache.layers):
        for role, (tensor, token_axis) in held_by(layer).items():
            placed = tensor if token_axis is None else _padded(tensor, token_axis, context, tokens)
            states[f"layers_{number}_{role}"] = placed
    return states


def _padded(cache: Tensor, axis: int, context: int, tokens: int) -> Tensor:
    """Return a cache with its tokens at their positions along an axis of length `context`, zeros elsewhere."""
    first = tokens - cache.shape[axis]
    after = [0, 0] * (cache.ndim - 1 - axis)
    padded: Tensor = nn.functional.pad(cache, [*after, first, context - tokens])
    return padded if cache.is_floating_point() else padded.to(torch.int64)
