"""Shrinks the configuration of any model type by the names of its fields, keeping every kind of layer it has.

`shrunk(fields)` gives the fields of a tiny configuration: sizes by the first matching rule of `SIZES`, and layers by
picking, from every list that has one entry a layer, the first layer of each kind.
"""

import re
from collections.abc import Mapping

WINDOW_TOKENS = 16
VOCABULARY = 128
MINIMUM_LAYERS = 2

# Field names (whole matches, first one wins) and their tiny values. A field is only ever made smaller: a size that is
# absent, None or below the value stays as it is, so that a feature that is off by default stays off.
SIZES: tuple[tuple[str, int], ...] = (
    ("(unpadded_)?vocab_size(_per_layer_input)?", VOCABULARY),
    ("hidden_size(_global)?|n_embd|d_model|embedding_dim|word_embed_proj_dim|lru_width|backbone_hidden_size", 64),
    ("mamba_d_ssm", 128),
    (".*(intermediate_size|ffn_hidden_size|ffn_dim)(_mlp)?|n_inner|dff|dim_ff|d_inner|feed_forward_size", 96),
    ("hidden_size_per_layer_input", 12),
    (".*num_key_value_heads|num_kv_heads|num_query_groups", 2),
    (".*num_attention_heads|n_head|n_heads|num_heads|attention_heads|(linear|mamba)_num_heads", 4),
    ("mamba_n_heads", 8),
    ("n_mamba_heads|linear_num_key_heads", 2),
    ("linear_num_value_heads", 4),
    ("q_lora_rank", 24),
    ("kv_lora_rank", 20),
    ("o_lora_rank", 12),
    ("qk_rope_head_dim|rotary_dim", 8),
    ("qk_nope_head_dim", 16),
    ("v_head_dim", 12),
    (".*head_dim|dim_head|d_head|attention_head_size|linear_(key|value)_head_dim|kv_channels", 16),
    ("mamba_(d_head|head_dim|headdim)", 16),
    ("state_size|ssm_state_size|mamba_d_state", 8),
    ("time_step_rank|mamba_dt_rank|.*_rank", 6),
    ("n_groups|mamba_n_groups|mamba_ngroups", 2),
    ("n_routed_experts|num_experts|num_local_experts|moe_num_experts", 8),
    ("num_experts_per_tok(en)?|moe_topk|moe_k|top_k_experts", 2),
    ("n_group|num_expert_group", 4),
    ("topk_group", 2),
    ("zero_expert_num", 4),
    ("sliding_window(_size)?|attention_chunk_size|window_size|attention_window_size|local_attention", WINDOW_TOKENS),
    ("keep_window_size", WINDOW_TOKENS),
    (".*chunk_size|block_size", 8),
    ("first_k_dense_replace|num_dense_layers|moe_layer_start_index", 1),
    ("index_topk", 12),
    ("index_(head_dim|block_size)", 16),
    ("encoder_hash_byte_group_vocab|ngram_vocab_size_base", 256),
    ("max_position_embeddings|n_positions|n_ctx|max_seq_len|model_max_length|context_length", 512),
)

# Lists that name layers instead of having one entry a layer.
LISTS_OF_LAYERS = r"moe_layers|mlp_only_layers|.*_(idxs|ids|indices)"
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_blocks")


def shrunk(fields: Mapping[str, object]) -> dict[str, object]:
    """Return only the fields that a tiny configuration gives another value than `fields`."""
    sizes = {name: _tiny_size(name, value) for name, value in fields.items()}
    sizes |= _latent_attention(fields)
    changed = {name: value for name, value in sizes.items() if value != fields[name]}
    parts = {name: shrunk(value) for name, value in fields.items() if isinstance(value, dict) and "model_type" in value}
    return changed | parts | _special_tokens(fields) | _dropouts(fields) | _layers(fields)


def _latent_attention(fields: Mapping[str, object]) -> dict[str, object]:
    """Give latent attention as many key-value heads as heads; its `head_dim` is the rotated part or the whole."""
    if fields.get("kv_lora_rank") is None:
        return {}
    rotated, whole = fields.get("qk_rope_head_dim"), fields.get("head_dim")
    sizes: dict[str, object] = {name: 4 for name in fields if name == "num_key_value_heads"}
    sizes |= {"head_dim": 8 if whole == rotated else 24} if whole is not None else {}
    return sizes | ({"qk_head_dim": 24} if "qk_head_dim" in fields else {})


def _tiny_size(name: str, value: object) -> object:
    if name == "head_dim" and value is None:
        return 16
    if isinstance(value, list):
        return [_tiny_size(name, one) for one in value]
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return next((min(value, size) for pattern, size in SIZES if re.fullmatch(pattern, name)), value)


def _special_tokens(fields: Mapping[str, object]) -> dict[str, object]:
    """Give no token a special meaning: padding would blank an embedding row and could lie outside of the vocabulary."""
    return {name: None for name in fields if re.fullmatch(r"(pad|bos|eos|cls|sep|eod)_token_id", name)}


def _dropouts(fields: Mapping[str, object]) -> dict[str, object]:
    names = r".*(dropout|dropout_prob|pdrop|layerdrop)"
    return {name: 0.0 for name, value in fields.items() if re.fullmatch(names, name) and value}


def _layers(fields: Mapping[str, object]) -> dict[str, object]:
    """Keep the first layer of each kind, a kind being what all lists with one entry a layer say of it."""
    counts = {name: count for name in LAYER_COUNTS if isinstance(count := fields.get(name), int)}
    if not counts:
        return {}
    total = max(counts.values())
    lists = {
        name: value
        for name, value in fields.items()
        if isinstance(value, list) and len(value) == total and not re.fullmatch(LISTS_OF_LAYERS, name)
    }
    kinds = [tuple(repr(value[layer]) for value in lists.values()) for layer in range(total)]
    kept = sorted({kinds.index(kind) for kind in kinds})
    kept += [layer for layer in range(total) if layer not in kept][: max(0, MINIMUM_LAYERS - len(kept))]
    picked = {name: [_tiny_size(name, value[layer]) for layer in sorted(kept)] for name, value in lists.items()}
    shorter: dict[str, object] = {name: len(kept) for name in counts}
    return shorter | picked
