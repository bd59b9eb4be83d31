"""The mark of sparse attention: a mask together with the ids of the tokens, or blocks of tokens, that are read."""

import torch
from torch import Tensor
from torch.library import custom_op


@custom_op("pim::chosen", mutates_args=())
def chosen(mask: Tensor, ids: Tensor, block: int) -> Tensor:
    """Return a mask [B, 1 or heads, 1, context] true where it was and in a chosen block; ids are [B, 1 or heads, k].

    Ids below zero choose nothing.
    """
    context = mask.shape[-1]
    wanted = (torch.arange(context) // block == ids.unsqueeze(-1)).any(-2)
    return mask & wanted.unsqueeze(2)


@chosen.register_fake
def _chosen_type(mask: Tensor, ids: Tensor, block: int) -> Tensor:
    return mask.new_empty((ids.shape[0], ids.shape[1], 1, mask.shape[-1]))
