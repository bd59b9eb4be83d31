"""The oracle: eager decoding of a transformers model, token by token from an empty cache, and what it routed where."""

import inspect
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from compiler.huggingface.lifting import lifted_to_float64
from compiler.huggingface.quiet import quiet

# How a type's forward names what it carries from one step to the next; a type with none of these recomputes the prefix.
STATES = ("cache", "state", "past_buckets_states", "mems")
# These need the whole prefix at every step: cpmant cuts it itself; blt divides it into patches anew (its cache cannot
# be made: its configuration has no `num_hidden_layers`).
CUTS_THE_PREFIX = ("cpmant",)
STATELESS = ("blt",)
# rwkv adds [B, 1, width] to [B, width] when it mixes a token with the last one, so that rows of a batch are mixed up;
# blt divides every row into patches of its own and pads them to a common number.
ONE_ROW_AT_A_TIME = ("rwkv", "blt")


@torch.no_grad()
def decode_reference(model: PreTrainedModel, token_ids: Tensor) -> Tensor:
    """Return logits[B, steps, vocabulary] of teacher-forced decoding, one token at a time from an empty cache.

    The model makes its own cache at the first step. A float64 model is run in float64 throughout, see
    `lifted_to_float64`. A type that carries no state between steps is given the whole prefix at every step.
    """
    alone = model.config.model_type in ONE_ROW_AT_A_TIME
    rows = [row.unsqueeze(0) for row in token_ids] if alone else [token_ids]
    with quiet(), lifted_to_float64(model.dtype is torch.float64):
        return torch.cat([_decode(model, row) for row in rows])


def _decode(model: PreTrainedModel, token_ids: Tensor) -> Tensor:
    name = state_name(model)
    state = _first_state(model, len(token_ids))
    whole = name is None or model.config.model_type in CUTS_THE_PREFIX
    placed = "position_ids" in inspect.signature(model.forward).parameters
    steps = []
    for step in range(token_ids.shape[1]):
        first = 0 if whole else step
        named: dict[str, Any] = {"use_cache": name is not None} | ({name: state} if name else {})
        if placed:  # bamba counts from zero at every step unless it is told where the token stands
            named["position_ids"] = torch.arange(first, step + 1).expand(len(token_ids), -1)
        output = model(token_ids[:, first : step + 1], **named)
        state = output.get(name, state) if name else None
        steps.append(output.logits[:, -1])
    return torch.stack(steps, dim=1)


def state_name(model: PreTrainedModel) -> str | None:
    """Return the argument by which the model's forward takes the state of the step before; None if it takes none."""
    if model.config.model_type in STATELESS:
        return None
    names = inspect.signature(model.forward).parameters
    return next((name for name in STATES if name in names), None)


def _first_state(model: PreTrainedModel, batch: int) -> Any:
    """Return None, which lets the model make its own cache, except for recurrent_gemma.

    That type keeps its recurrent states in its modules, where they outlive a sequence, and does not return its cache.
    """
    if model.config.model_type != "recurrent_gemma":
        return None
    model.model._setup_cache(model.config, batch, model.device, model.dtype)
    return DynamicCache(config=model.config)
