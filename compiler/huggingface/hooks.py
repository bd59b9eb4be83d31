"""What a transformers model calls in place of its attention and its experts while it is captured.

The functions are registered with transformers' own interfaces under the name `pim`; they call the marks of
`compiler.raising.marks`, so that these parts of a model arrive in the program with their meaning.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from compiler.huggingface import selection
from compiler.raising import marks
from configs.errors import UserError

NAME = "pim"
LATENT = "pim_latent"
# What attention functions are told that changes nothing for one token and a mask over the whole cache.
HARMLESS = (
    *("dropout", "is_causal", "position_ids", "cache_position", "use_cache", "output_attentions", "sliding_window"),
    *("output_router_logits", "output_hidden_states", "return_dict", "logits_to_keep", "num_items_in_batch", "cache"),
    *("past_key_values", "deterministic", "token_type_ids", "layer_idx", "attention_type", "labels"),
)
SINKS, BIASES = ("s_aux", "sinks"), ("position_bias",)
INDICES = ("indices", "block_indices")


def register() -> None:
    """Make the name `pim` known to transformers; calling it again changes nothing."""
    ALL_ATTENTION_FUNCTIONS.register(NAME, attend)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, visible)
    ALL_EXPERTS_FUNCTIONS.register(NAME, route)


def visible(*arguments: Any, **named: Any) -> Tensor | None:
    """Return the boolean mask over the cache's slots, never left out."""
    named |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False, "attention_mask": None}
    mask: Tensor | None = sdpa_mask(*arguments, **named)
    return mask


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    **named: Any,
) -> tuple[Tensor, None]:
    """Return the attention of one token [B, 1, heads, width], latent where the module was prepared for it."""
    sinks = next((named.pop(name) for name in SINKS if named.get(name) is not None), None)
    bias = next((named.pop(name) for name in BIASES if named.get(name) is not None), None)
    if any(named.get(name) is not None for name in INDICES):
        attention_mask = selection.chosen_mask(module, attention_mask, *[named.pop(name, None) for name in INDICES])
    known = (*HARMLESS, *SINKS, *BIASES, *INDICES)
    unknown = [name for name, given in named.items() if given is not None and name not in known]
    if unknown:
        raise _not_understood(module, ", ".join(unknown))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if getattr(module, LATENT, False):
        if bias is not None or softcap:
            raise _not_understood(module, "a bias or a soft cap of latent attention")
        return _attend_to_latents(module, query, key, value, attention_mask, float(scale), sinks), None
    if attention_mask is None and bias is None and sinks is None and not getattr(module, "is_causal", True):
        return _attend_to_activations(module, query, key, value, float(scale)), None
    mask, bias = _split_mask(attention_mask, bias)
    return marks.attention(query, key, value, mask, sinks, bias, float(scale), float(softcap or 0.0)), None


def _attend_to_activations(module: Any, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    """Attention without a cache, as over the outputs of earlier layers; queries that are parameters are a linear."""
    learnt = getattr(module, "query", None)
    if isinstance(learnt, nn.Parameter) and learnt.ndim > 1:
        scores = nn.functional.linear(key, learnt.to(key.dtype)).transpose(2, 3) * scale
    else:
        scores = torch.matmul(query, key.transpose(2, 3)) * scale
    return torch.matmul(scores.softmax(-1), value).transpose(1, 2)


def _not_understood(module: nn.Module, found: str) -> UserError:
    return UserError(
        where=f"attention of {type(module).__name__}",
        expected="an attention without further arguments",
        found=found,
        way_out="teach compiler/huggingface/hooks.py what they mean",
    )


def _split_mask(mask: Tensor | None, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Return a boolean mask and a bias; a model that makes its own mask may have added the two."""
    if mask is None or mask.dtype == torch.bool:
        return mask, bias
    return mask > torch.finfo(mask.dtype).min / 2, bias


def _attend_to_latents(
    module: Any,
    query: Tensor,
    latents: Tensor,
    keys: Tensor,
    mask: Tensor | None,
    scale: float,
    sinks: Tensor | None,
) -> Tensor:
    """Attention over latents with the up-projections absorbed: W_uk into the query, W_uv into the result."""
    plain, value = module.qk_nope_head_dim, module.v_head_dim
    weight = module.kv_b_proj.weight
    absorbed = marks.head_linear(query[..., :plain], weight, 0, plain, True)
    attended = marks.latent_attention(absorbed, query[..., plain:], latents, keys, mask, scale, sinks)
    values: Tensor = marks.head_linear(attended, weight, plain, value, False)
    return values.transpose(1, 2)


def keep_latents(latents: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Take the place of a module's expansion of latents into keys and values."""
    return latents, keys


def prepare(model: nn.Module) -> None:
    """Let every module of a model call the hooks: experts by its configuration, latent attention by its expansion."""
    for module in model.modules():
        config = getattr(module, "config", None)
        if config is not None and hasattr(config, "_experts_implementation_internal"):
            config._experts_implementation_internal = NAME
        if hasattr(module, "expand_kv") and getattr(module.kv_b_proj, "bias", None) is None:
            setattr(module, "expand_kv", keep_latents)  # noqa: B010
            setattr(module, LATENT, True)


def route(self: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    """Return the weighted sum of the chosen experts, each read once: two routed linears around the activation."""
    tokens, top_k = top_k_index.shape
    up = self.gate_up_proj if self.has_gate else self.up_proj
    biases = (None, None)
    if self.has_bias:
        biases = (self.gate_up_proj_bias if self.has_gate else self.up_proj_bias, self.down_proj_bias)
    widened = marks.routed_linear(hidden_states.unsqueeze(1), top_k_index, up, biases[0], self.is_transposed)
    rows = widened.reshape(tokens * top_k, -1)
    activated = self._apply_gate(rows) if self.has_gate else self.act_fn(rows)
    inner = activated.reshape(tokens, top_k, -1)
    narrowed = marks.routed_linear(inner, top_k_index, self.down_proj, biases[1], self.is_transposed)
    if self.has_post_expert_norm:
        narrowed = self.post_expert_norm(narrowed.reshape(tokens * top_k, -1)).reshape(tokens, top_k, -1)
    summed: Tensor = (narrowed * top_k_weights.unsqueeze(-1)).sum(1)
    return summed.to(hidden_states.dtype)
