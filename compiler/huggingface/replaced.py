"""What single classes of transformers do in a way that cannot be captured, written so that it can.

Each function takes the place of one method of one class on the instances of a model that is captured, and computes the
same: attention that does not go through transformers' interface, mixtures that loop over experts or run all, and heads
with matrices of their own. They are written on marks, which read the chosen experts only.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from compiler.huggingface import compressed, hooks
from compiler.huggingface.cache import buffered, collected, position_of, remembered
from compiler.raising import marks, selection_marks
from compiler.raising.partial_marks import select_entries


def replace_methods(model: nn.Module) -> None:
    """Put the functions of `REPLACED` in the place of the methods they stand for."""
    for module in model.modules():
        kind = type(module)
        own = REPLACED.get(kind.__name__) or REPLACED.get(f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}", {})
        for name, function in own.items():
            setattr(module, name, partial(function, module))


class _AsIfEmpty:
    """A cache that claims to hold nothing: mpt would cut its biases for a length that is a number, not a tensor."""

    def __init__(self, cache: Any) -> None:
        self.update = cache.update

    def get_seq_length(self) -> int:
        return 0


def _mpt_attention(module: Any, hidden_states: Tensor, *positional: Any, cache: Any = None, **named: Any) -> Any:
    return type(module).forward(module, hidden_states, *positional, cache=_AsIfEmpty(cache), **named)


def _gpt_neo_products(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor
) -> tuple[Tensor, None]:
    """Attention without a scale, over a window in local layers, whose mask the module would look up by its length."""
    visible = attention_mask > torch.finfo(attention_mask.dtype).min / 2
    if module.attention_type == "local":
        position = visible.sum(-1, keepdim=True) - 1
        visible = visible & (torch.arange(visible.shape[-1]) > position - module.config.window_size)
    attended = marks.attention(query, key, value, visible, None, None, 1.0, 0.0)
    return attended.transpose(1, 2), None


def _qwen4_indexer(
    module: Any, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor], attention_mask: Tensor, cache: Any
) -> Tensor:
    """The mask with the blocks of tokens that score highest, and the newest one while it is incomplete.

    The key of a block, the mean of its tokens' turned to where it begins, is made anew with each of them and kept: the
    model computes those of all blocks at every step.
    """
    layer, ratio, width = cache.layers[module.layer_idx], module.compress_ratio, module.index_head_dim
    rotate, tables = _own(module, "apply_rotary_pos_emb"), position_embeddings
    heads = module.index_qk_proj(hidden_states).view(len(hidden_states), 1, -1, width)
    query, key = heads.split([module.index_n_heads, module.index_kv_heads], dim=2)
    query = rotate(module.q_layernorm(query), cos=tables[0][:, -1:], sin=tables[1][:, -1:], unsqueeze_dim=2)
    mean = buffered(layer, 0, key.squeeze(2), ratio).float().mean(1, keepdim=True).to(key.dtype)
    entry = rotate(module.k_layernorm(mean).unsqueeze(1), cos=tables[0][:, :1], sin=tables[1][:, :1])
    index = collected(layer, 0, entry, ratio)
    if module.block_topk >= index.shape[2]:
        return attention_mask
    complete = (position_of(layer) + 1) // ratio
    weights = torch.ones_like(query[..., 0])
    best = select_entries(query, weights, index, complete - 1, module.block_topk, width**-0.5)
    blocks = torch.cat((best, complete.expand(len(best), 1, 1)), dim=-1)
    chosen: Tensor = selection_marks.chosen(attention_mask, blocks, ratio)
    return chosen


class _BeginsWithEnds:
    """A cache whose last tokens are ends of a text before there are any: a graph's states are zeros then."""

    def __init__(self, cache: Any, end: int) -> None:
        self.cache, self.end = cache, end

    def get_conv_state(self, layer: int, state_idx: int) -> Tensor | None:
        state = self.cache.get_conv_state(layer, state_idx=state_idx)
        if state is None:
            return None
        places = torch.arange(state.shape[-1]) - state.shape[-1] + position_of(self.cache.layers[layer])
        return torch.where(places < 0, self.end, state)

    def update_conv_state(self, *given: Any, **named: Any) -> Any:
        return self.cache.update_conv_state(*given, **named)


def _qwen4_ngrams(module: Any, input_ids: Tensor, cache: Any) -> Any:
    return type(module).forward(module, input_ids, _BeginsWithEnds(cache, module.eos_token_id))


def _openai_products(module: Any, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> list[Tensor]:
    """Attention of one token over a cache, which the model has none of: it is given the whole prefix at every step."""
    layer = module.layer
    keys, values = layer.update(key.transpose(2, 3), value)
    visible = torch.arange(keys.shape[2]) <= getattr(layer, "position", 0)
    scale = value.shape[-1] ** -0.5 if module.scale else 1.0
    mask = visible.expand(len(query), 1, 1, -1)
    return [marks.attention(query, keys, values, mask, None, None, scale, 0.0).transpose(1, 2)]


def _doge_attention(
    module: Any,
    hidden_states: Tensor,
    position_embeddings: tuple[Tensor, Tensor],
    attention_mask: Tensor,
    cache: Any,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention with a bias that every cached token brings along, kept instead of computed anew from all values.

    The tokens of the largest biases alone are attended to where there are more than `keep_window_size`.
    """
    batch, width = len(hidden_states), module.head_dim
    query, key, value = (
        project(hidden_states).view(batch, 1, -1, width) for project in (module.q_proj, module.k_proj, module.v_proj)
    )
    turned = (module.q_norm(query).transpose(1, 2), module.k_norm(key).transpose(1, 2))
    query, key = _own(module, "apply_rotary_pos_emb")(*turned, *position_embeddings)
    added = torch.exp(module.A * nn.functional.softplus(module.dt_proj(value.reshape(batch, 1, -1))))
    keys, values = cache.update(key, value.transpose(1, 2), module.layer_idx)
    bias = remembered(cache.layers[module.layer_idx], 0, added.view(batch, -1, 1, 1)).transpose(2, 3)
    if bias.shape[-1] > module.keep_window_size:
        lowest = torch.finfo(bias.dtype).min
        kept = bias.masked_fill(~attention_mask, lowest).topk(module.keep_window_size).indices
        bias = torch.full_like(bias, lowest).scatter(-1, kept, bias.gather(-1, kept))
    bias = bias.repeat_interleave(module.num_key_value_groups, 1)
    attended = marks.attention(query, keys, values, attention_mask, None, bias, module.scaling, 0.0)
    return module.o_proj(attended.reshape(batch, 1, -1)), None


def _diffllama_attention(
    module: Any,
    hidden_states: Tensor,
    position_embeddings: tuple[Tensor, Tensor],
    attention_mask: Tensor,
    cache: Any,
    **_: Any,
) -> tuple[Tensor, None]:
    """Two attentions with the same keys, over either half of the value heads, as one that reads every cache once.

    Heads k and k + half of keys and values are kept side by side as one head of twice the width. A query is padded with
    zeros where the other key stands, and takes both values.
    """
    batch, width = len(hidden_states), module.head_dim
    query, key, value = (
        project(hidden_states).view(batch, 1, -1, width).transpose(1, 2)
        for project in (module.q_proj, module.k_proj, module.v_proj)
    )
    query, key = _own(module, "apply_rotary_pos_emb")(query, key, *position_embeddings)
    half = key.shape[1] // 2
    paired = [one.view(batch, 2, half, 1, width).permute(0, 2, 3, 1, 4).flatten(3) for one in (key, value)]
    keys, values = cache.update(*paired, module.layer_idx)
    first, second = query.view(batch, 2, half, -1, width).unbind(1)
    padded = (nn.functional.pad(first, (0, width)), nn.functional.pad(second, (width, 0)))
    queries = torch.stack(padded, dim=2).view(batch, -1, 1, 2 * width)
    attended, _none = hooks.attend(module, queries, keys, values, attention_mask, scaling=module.scaling)
    plus, minus = attended.view(batch, half, 2, -1, 2 * width).unbind(2)
    factor = (module.lambda_q1 * module.lambda_k1).sum().exp() - (module.lambda_q2 * module.lambda_k2).sum().exp()
    difference = plus - (factor + module.lambda_init) * minus
    normed = (1 - module.lambda_init) * module.groupnorm(difference)
    return module.o_proj(normed.reshape(batch, 1, -1)), None


def _llama4_mixture(module: Any, hidden_states: Tensor) -> tuple[Tensor, Tensor]:
    """The chosen experts on the token times their scores; every other expert would be given zeros."""
    rows = hidden_states.reshape(-1, module.hidden_dim)
    logits = nn.functional.linear(rows, module.router.weight)
    chosen, ids = torch.topk(logits, module.top_k, dim=1)
    scaled = rows.unsqueeze(1) * torch.sigmoid(chosen.float()).to(rows.dtype).unsqueeze(-1)
    experts = module.experts
    gate, up = marks.routed_linear(scaled, ids, experts.gate_up_proj, None, True).chunk(2, dim=-1)
    routed = marks.routed_linear(up * experts.act_fn(gate), ids, experts.down_proj, None, True)
    return module.shared_expert(rows) + routed.sum(1), logits


def _dbrx_experts(module: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    rows, mlp = hidden_states.reshape(-1, 1, module.hidden_size), module.mlp
    stack = (module.num_experts, module.ffn_hidden_size, module.hidden_size)
    gate = marks.routed_linear(rows, top_k_index, mlp.w1.view(stack), None, False)
    up = marks.routed_linear(rows, top_k_index, mlp.v1.view(stack), None, False)
    down = marks.routed_linear(mlp.activation_fn(gate) * up, top_k_index, mlp.w2.view(stack), None, True)
    summed: Tensor = (down * top_k_weights.unsqueeze(-1)).sum(1)
    return summed.view(hidden_states.shape)


def _jetmoe_choice(router: Any, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the chosen experts, their weights [tokens, top_k, 1] and the logits."""
    logits = router.layer(rows).float()
    chosen, ids = logits.topk(router.top_k, dim=1)
    return ids, torch.softmax(chosen, dim=1).type_as(rows).unsqueeze(-1), logits


def _jetmoe_mixture(module: Any, layer_input: Tensor) -> Tensor:
    rows = layer_input.reshape(-1, module.input_size)
    ids, weights, _ = _jetmoe_choice(module.router, rows)
    widened = marks.routed_linear(rows.unsqueeze(1), ids, module.input_linear.weight, None, False)
    gate, up = widened.chunk(2, dim=-1)
    narrowed = marks.routed_linear(module.activation(gate) * up, ids, module.output_linear.weight, None, False)
    summed: Tensor = (narrowed * weights).sum(1).view(layer_input.shape) + module.bias
    return summed


def _jetmoe_attention(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor,
    position_embeddings: tuple[Tensor, Tensor],
    cache: Any,
    **_: Any,
) -> tuple[Tensor, None, Tensor]:
    """Attention whose projections of queries and results are chosen; each choice has a query for every key head."""
    batch, experts, width = len(hidden_states), module.experts, module.head_dim
    rows = hidden_states.reshape(batch, -1)
    ids, weights, logits = _jetmoe_choice(experts.router, rows)
    queries = marks.routed_linear(rows.unsqueeze(1), ids, experts.input_linear.weight, None, False)
    # A key head's queries stand together, as attention wants them; the model repeats its key heads for each choice.
    query = queries.view(batch, module.top_k, -1, width).transpose(1, 2).contiguous().view(batch, -1, 1, width)
    key, value = (one.view(batch, 1, -1, width).transpose(1, 2) for one in module.kv_proj(hidden_states).chunk(2, -1))
    query, key = _own(module, "apply_rotary_pos_emb")(query, key, *position_embeddings)
    keys, values = cache.update(key, value, module.layer_idx)
    attended, _none = hooks.attend(module, query, keys, values, attention_mask, scaling=module.scaling)
    by_choice = attended.view(batch, -1, module.top_k, width).transpose(1, 2).contiguous().view(batch, module.top_k, -1)
    narrowed = marks.routed_linear(by_choice, ids, experts.output_linear.weight, None, False)
    return (narrowed * weights).sum(1).view(hidden_states.shape) + experts.bias, None, logits


def _longcat_experts(module: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    """Experts of which the last ones return the token itself: they count with weight zero among those that are read."""
    is_real = top_k_index < module.num_routed_experts
    ids = torch.where(is_real, top_k_index, torch.zeros_like(top_k_index))
    gate, up = marks.routed_linear(hidden_states.unsqueeze(1), ids, module.gate_up_proj, None, False).chunk(2, dim=-1)
    narrowed = marks.routed_linear(module.act_fn(gate) * up, ids, module.down_proj, None, False)
    outputs = torch.where(is_real.unsqueeze(-1), narrowed, hidden_states.unsqueeze(1))
    return (outputs * top_k_weights.unsqueeze(-1)).sum(1).to(hidden_states.dtype)


def _zamba_mixer(
    module: Any, hidden_states: Tensor, cache: Any = None, attention_mask: Tensor | None = None, **_: Any
) -> Tensor:
    """A state space with matrices of its own for every head, all heads at once; the model goes through them."""
    batch, heads, width = len(hidden_states), module.n_mamba_heads, module.mamba_head_dim
    mixed, gate = module.in_proj(hidden_states).view(batch, heads * width, 2, 1).unbind(2)
    inputs = _zamba_convolution(module, mixed.contiguous(), cache).view(batch, heads, 1, width)
    rank, size = module.time_step_rank, module.ssm_state_size
    chosen = marks.head_linear(inputs, module.x_proj_weight.flatten(0, 1), 0, rank + 2 * size, False)
    steps, writes, reads = torch.split(chosen, [rank, size, size], dim=-1)
    steps = marks.head_linear(steps, module.dt_proj_weight.flatten(0, 1), 0, width, False).squeeze(2)
    steps = nn.functional.softplus(steps + module.dt_proj_bias.to(steps.dtype)).float().unsqueeze(-1)
    before = cache.get_recurrent_state(module.layer_idx, state_idx=0)
    before = hidden_states.new_zeros((batch, heads, width, size)) if before is None else before
    added = steps * writes.float() * inputs.float().transpose(2, 3)
    state = before.float() * torch.exp(steps * -torch.exp(module.A_log.float())) + added
    cache.update_recurrent_state(state.to(before.dtype), module.layer_idx)
    read = torch.matmul(state.to(reads.dtype), reads.transpose(2, 3)).squeeze(-1) + inputs.squeeze(2) * module.D
    gated = read.view(batch, 1, -1) * nn.functional.silu(gate.reshape(batch, 1, -1))
    projected: Tensor = module.out_proj(gated.to(hidden_states.dtype))
    return projected


def _zamba_convolution(module: Any, mixed: Tensor, cache: Any) -> Tensor:
    state = cache.get_conv_state(module.layer_idx, state_idx=0)
    kernel, bias = module.conv1d.weight.squeeze(1), module.conv1d.bias
    if state is not None:
        update: Callable[..., Tensor] = _own(module, "causal_conv1d_update")
        return update(mixed, state, kernel, bias, activation=module.activation)
    padded = cache.update_conv_state(mixed, module.layer_idx, conv_kernel_size=module.conv_kernel_size)
    whole: Callable[..., Tensor] = _own(module, "causal_conv1d_fn")
    return whole(padded, kernel, bias, activation=module.activation)[:, :, -1:]


def _own(module: nn.Module, function: str) -> Callable[..., Any]:
    """Return a function of the file that a module's class is written in."""
    found: Callable[..., Any] = getattr(sys.modules[type(module).__module__], function)
    return found


# By class, with its file before it where another may bear the same name.
REPLACED: dict[str, dict[str, Callable[..., Any]]] = {
    "modeling_openai.Attention": {"_attn": _openai_products},
    "MptAttention": {"forward": _mpt_attention},
    "GPTNeoSelfAttention": {"_attn": _gpt_neo_products},
    "DeepseekV4Attention": {"forward": compressed.attention},
    "DeepseekV4HCACompressor": {"forward": compressed.heavy_compressor},
    "DeepseekV4CSACompressor": {"forward": compressed.sparse_compressor},
    "DeepseekV4Indexer": {"forward": compressed.indexer},
    "Qwen4ExpTextQSAIndexer": {"forward": _qwen4_indexer},
    "Qwen4ExpTextNGramEmbedding": {"forward": _qwen4_ngrams},
    "DogeAttention": {"forward": _doge_attention},
    "DiffLlamaAttention": {"forward": _diffllama_attention},
    "Llama4TextMoe": {"forward": _llama4_mixture},
    "DbrxExperts": {"forward": _dbrx_experts},
    "JetMoeMoE": {"forward": _jetmoe_mixture},
    "JetMoeAttention": {"forward": _jetmoe_attention},
    "LongcatFlashExperts": {"forward": _longcat_experts},
    "ZambaMambaMixer": {"forward": _zamba_mixer},
}
