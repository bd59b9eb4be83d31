"""The supported model families as plain modules: one decode step, with HuggingFace's parameter names.

A context of T means that each cache has T slots, and that after the step of the last one it holds T tokens *including*
the current token, which is written at `position` = T - 1. Earlier positions may be stepped through in the same caches,
which is how tests drive it. B is the batch; all sequences stand at the same position.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from configs.model_config import ModelConfig


class RmsNorm(nn.Module):
    """Root-mean-square norm over the last dimension."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


def inverse_frequencies(config: ModelConfig, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return the rotary frequencies [head_dim / 2] in radians per token, scaled as Llama 3.1 does if configured."""
    exponents = torch.arange(0, config.head_dim, 2, device=device, dtype=dtype) / config.head_dim
    frequencies = 1.0 / config.rotary_theta**exponents
    scaling = config.rotary_scaling
    if scaling is None:
        return frequencies
    turns = frequencies * scaling.original_context / (2 * math.pi)
    smooth = (turns - scaling.low_frequency_factor) / (scaling.high_frequency_factor - scaling.low_frequency_factor)
    smooth = smooth.clamp(0.0, 1.0)
    return frequencies * ((1.0 - smooth) / scaling.factor + smooth)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate the pairs (j, j + head_dim / 2) of x [B, heads, 1, head_dim]."""
    half = x.shape[-1] // 2
    return x * cosine + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sine


class Attention(nn.Module):
    """Grouped-query attention over a cache, with optional per-head q/k norms."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.heads, config.kv_heads, config.head_dim
        query, key_value, bias = (
            config.heads * config.head_dim,
            config.kv_heads * config.head_dim,
            config.attention_bias,
        )
        self.q_proj = nn.Linear(config.hidden, query, bias=bias)
        self.k_proj = nn.Linear(config.hidden, key_value, bias=bias)
        self.v_proj = nn.Linear(config.hidden, key_value, bias=bias)
        self.o_proj = nn.Linear(query, config.hidden, bias=bias)
        if config.query_key_norm:
            self.q_norm: nn.Module = RmsNorm(config.head_dim, config.norm_epsilon)
            self.k_norm: nn.Module = RmsNorm(config.head_dim, config.norm_epsilon)
        else:
            self.q_norm, self.k_norm = nn.Identity(), nn.Identity()

    def forward(
        self,
        x: Tensor,
        position: Tensor,
        rotation: tuple[Tensor, Tensor],
        visible: Tensor,
        keys: Tensor,
        values: Tensor,
    ) -> Tensor:
        query = self.q_proj(x).view(-1, self.heads, 1, self.head_dim)
        key = self.k_proj(x).view(-1, self.kv_heads, 1, self.head_dim)
        value = self.v_proj(x).view(-1, self.kv_heads, 1, self.head_dim)
        query, key = rotate(self.q_norm(query), *rotation), rotate(self.k_norm(key), *rotation)
        keys = keys.index_copy_(2, position, key)
        values = values.index_copy_(2, position, value)
        grouped = self.heads != self.kv_heads
        attended = functional.scaled_dot_product_attention(query, keys, values, visible, enable_gqa=grouped)
        projected: Tensor = self.o_proj(attended.view(-1, self.heads * self.head_dim))
        return projected


class FeedForward(nn.Module):
    """The gated feed-forward block: down(silu(gate x) * up x)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden, config.intermediate, bias=config.mlp_bias)
        self.up_proj = nn.Linear(config.hidden, config.intermediate, bias=config.mlp_bias)
        self.down_proj = nn.Linear(config.intermediate, config.hidden, bias=config.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        narrowed: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return narrowed


class SparseFeedForward(nn.Module):
    """Mixture of experts: only the `experts_per_token` chosen experts are read, by `index(weights, ids)`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.experts_per_token = config.experts_per_token
        self.gate = nn.Linear(config.hidden, config.experts, bias=False)
        widen, narrow = (config.intermediate, config.hidden), (config.hidden, config.intermediate)
        self.gate_proj = nn.Parameter(torch.empty(config.experts, *widen))
        self.up_proj = nn.Parameter(torch.empty(config.experts, *widen))
        self.down_proj = nn.Parameter(torch.empty(config.experts, *narrow))

    def forward(self, x: Tensor) -> Tensor:
        weights, ids = torch.topk(torch.softmax(self.gate(x), -1), self.experts_per_token)
        weights = weights / weights.sum(-1, keepdim=True)
        column = x.unsqueeze(1).unsqueeze(-1)
        activated = functional.silu(self.gate_proj[ids] @ column) * (self.up_proj[ids] @ column)
        outputs = (self.down_proj[ids] @ activated).squeeze(-1)
        return (outputs * weights.unsqueeze(-1)).sum(1)


class Layer(nn.Module):
    """One pre-norm decoder layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(config.hidden, config.norm_epsilon)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RmsNorm(config.hidden, config.norm_epsilon)
        self.mlp: nn.Module = SparseFeedForward(config) if config.experts else FeedForward(config)

    def forward(
        self,
        x: Tensor,
        position: Tensor,
        rotation: tuple[Tensor, Tensor],
        visible: Tensor,
        keys: Tensor,
        values: Tensor,
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), position, rotation, visible, keys, values)
        x = x + self.mlp(self.post_attention_layernorm(x))
        return x


class Decoder(nn.Module):
    """Embedding, layers and the final norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocabulary, config.hidden)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = RmsNorm(config.hidden, config.norm_epsilon)

    def forward(self, ids: Tensor, position: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
        x = self.embed_tokens(ids)
        # Angles reach thousands of radians, which 16-bit formats cannot hold.
        precision = torch.float64 if x.dtype == torch.float64 else torch.float32
        angles = position * inverse_frequencies(self.config, x.device, precision)
        angles = torch.cat((angles, angles), dim=-1)
        rotation = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        visible = visible_slots(position, keys[0].shape[2], self.config.sliding_window)
        for layer, layer_keys, layer_values in zip(self.layers, keys, values, strict=True):
            x = layer(x, position, rotation, visible, layer_keys, layer_values)
        normalised: Tensor = self.norm(x)
        return normalised


def visible_slots(position: Tensor, context: int, window: int | None) -> Tensor:
    """Return the boolean mask [1, context] of the slots the token at `position` [1] attends to."""
    slots = torch.arange(context, device=position.device)
    visible = slots <= position
    if window is not None:
        visible = visible & (slots > position - window)
    return visible.unsqueeze(0)


class LanguageModel(nn.Module):
    """One decode step: token ids [B] to the next token ids [B]; the caches are updated in place."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.hidden, config.vocabulary, bias=False)
        if config.tied_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def logits(
        self, token_ids: Tensor, position: Tensor, key_caches: Sequence[Tensor], value_caches: Sequence[Tensor]
    ) -> Tensor:
        """Return the logits [B, vocabulary] of the next token; position [1], caches [B, heads, context, head_dim]."""
        logits: Tensor = self.lm_head(self.model(token_ids, position, key_caches, value_caches))
        return logits

    def forward(
        self, token_ids: Tensor, position: Tensor, key_caches: Sequence[Tensor], value_caches: Sequence[Tensor]
    ) -> Tensor:
        """Return the most likely next token ids [B]."""
        return self.logits(token_ids, position, key_caches, value_caches).argmax(-1)
