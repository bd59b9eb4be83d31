"""Sparse attention: which cached tokens a model's own indexer lets its attention read."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from compiler.raising import selection_marks


def chosen_mask(module: Any, mask: Tensor | None, indices: Tensor | None, block_indices: Tensor | None) -> Tensor:
    """Return the mask of an attention with its choice: tokens [B, 1, k], or blocks of tokens [B, heads, 1, k]."""
    assert mask is not None
    if indices is not None:
        chosen: Tensor = selection_marks.chosen(mask, indices.long(), 1)
        return chosen
    assert block_indices is not None
    chosen = selection_marks.chosen(mask, block_indices.squeeze(2), module.indexer.block_size)
    return chosen


@contextmanager
def recorded_selections(model: nn.Module) -> Iterator[list[tuple[str, Tensor]]]:
    """Yield a list that grows by an indexer's name and its choice [B, selectors, k] at every call of one."""
    found: list[tuple[str, Tensor]] = []

    def note(name: str, indexer: Any, chosen: Tensor) -> None:
        if chosen.dtype == torch.bool:
            chosen = _complete_blocks(chosen, indexer.compress_ratio)
        by_selector = chosen.squeeze(2) if chosen.ndim == len("BHSk") else chosen
        found.append((name, by_selector.to(torch.int64)))

    indexers = [(name, module) for name, module in model.named_modules() if name.endswith(".indexer")]
    handles = [
        module.register_forward_hook(lambda indexer, _given, chosen, name=name: note(name, indexer, chosen))
        for name, module in indexers
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _complete_blocks(mask: Tensor, block: int) -> Tensor:
    """Return the ids [B, 1, k] of the complete blocks of tokens that a mask [B, 1, 1, tokens] lets through."""
    complete = mask.shape[-1] // block * block
    seen = mask[:, :, 0, :complete].reshape(*mask.shape[:2], -1, block).all(-1) if complete else mask[:, :, 0, :0]
    return seen.to(torch.int8).topk(int(seen.sum(-1).amax()) if complete else 0).indices
