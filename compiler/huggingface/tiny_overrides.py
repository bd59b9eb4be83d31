"""What the rules of `compiler.huggingface.shrinking` cannot know of a type: the fields of its tiny configuration.

Most entries switch on a kind of layer that the type's own default leaves out, or make sizes agree with each other.
"""

LOCAL, GLOBAL, RECURRENT = "sliding_attention", "full_attention", "linear_attention"
TWO_KINDS: dict[str, object] = {"num_hidden_layers": 2, "layer_types": [LOCAL, GLOBAL]}
PLAIN_ROTARY = {"rope_type": "default", "rope_theta": 1e4}
DENSE_THEN_SPARSE = ["dense", "sparse"]

OVERRIDES: dict[str, dict[str, object]] = {
    # Attention only where a list of layers says so; the default has none.
    "bamba": {"attn_layer_indices": [1]},
    "granitemoehybrid": {"num_hidden_layers": 2, "layer_types": [RECURRENT, GLOBAL]},
    "lfm2": {"num_hidden_layers": 2, "layer_types": ["conv", GLOBAL], "full_attn_idxs": [1]},
    "lfm2_moe": {"num_hidden_layers": 3, "layer_types": ["conv", GLOBAL, "conv"]},
    "jamba": {"num_hidden_layers": 4, "attn_layer_period": 4, "attn_layer_offset": 2},
    "recurrent_gemma": {"num_hidden_layers": 3},
    # The default is full attention throughout, published checkpoints mix.
    "cohere_compass_text": TWO_KINDS | {"rope_parameters": {LOCAL: PLAIN_ROTARY, GLOBAL: None}},
    "laguna": TWO_KINDS | {"num_attention_heads_per_layer": [4, 8], "mlp_layer_types": DENSE_THEN_SPARSE},
    "mellum": TWO_KINDS,
    "minimax_m3_vl_text": {
        "num_hidden_layers": 2,
        "layer_types": [GLOBAL, "minimax_m3_sparse"],
        "mlp_layer_types": DENSE_THEN_SPARSE,
        "index_block_size": 8,
        "index_topk_blocks": 2,
    },
    "zaya": {
        "num_hidden_layers": 2,
        "layer_types": ["hybrid_sliding", "hybrid"],
        "sliding_window": 16,
        "router_hidden_size": 32,
    },
    "doge": {"keep_window_size": 24},
    # Layers counted in other ways.
    "dory": TWO_KINDS
    | {
        "num_hidden_layers": 4,
        "layer_types": [LOCAL, LOCAL, GLOBAL, LOCAL],
        "n_input_layers": 1,
        "n_recurrent_layers": 2,
        "n_output_layers": 1,
    },
    "hrm_text": {"num_hidden_layers": 8, "num_layers_per_stack": 1},
    "flint": {"num_hidden_layers": 3, "layer_types": [GLOBAL, LOCAL, GLOBAL], "mlp_only_layers": [0]},
    "llama4_text": {
        "num_hidden_layers": 4,
        "layer_types": ["chunked_attention", "chunked_attention", GLOBAL, "chunked_attention"],
        "no_rope_layers": [1, 1, 0, 1],
        "moe_layers": [1, 3],
    },
    "gemma3n_text": {
        "num_hidden_layers": 5,
        "layer_types": [LOCAL, GLOBAL, LOCAL, LOCAL, GLOBAL],
        "num_kv_shared_layers": 2,
        "intermediate_size": [96] * 5,
        "activation_sparsity_pattern": [0.9, 0.0, 0.0, 0.9, 0.0],
    },
    "zamba": {
        "num_hidden_layers": 5,
        "layers_block_type": [RECURRENT, "hybrid", RECURRENT, "hybrid", RECURRENT],
        "attention_hidden_size": 128,
        "attention_head_dim": 32,
        "num_key_value_heads": 4,
        "mamba_dt_rank": 4,
    },
    # Sizes that must agree.
    "mamba2": {"num_heads": 8},
    "dots1": TWO_KINDS
    | {
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 4,
        "topk_group": 2,
        "first_k_dense_replace": 1,
    },
    "hunyuan_v1_moe": {"num_experts": 8, "moe_topk": 2},
    "deepseek_v2": {"first_k_dense_replace": 1, "num_experts_per_tok": 2},
    "deepseek_v4": {
        "num_hidden_layers": 3,
        "layer_types": ["compressed_sparse_attention", LOCAL, "heavily_compressed_attention"],
        "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
    },
    "dots3_note_text": {
        "num_hidden_layers": 4,
        "layer_types": ["indexed_attention", "indexed_attention", LOCAL, LOCAL],
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
        "swa_num_attention_heads": 2,
        "swa_num_key_value_heads": 2,
        "swa_q_lora_rank": 16,
        "swa_kv_lora_rank": 28,
        "swa_head_dim": 24,
        "swa_qk_nope_head_dim": 16,
        "swa_v_head_dim": 12,
    },
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 1e4},
        "ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 8, "moe_top_k": 2},
    },
    "qwen4_exp_text": {
        "num_hidden_layers": 2,
        "layer_types": [RECURRENT, "indexed_attention"],
        "ple_layer_ids": [1],
        "ple_embed_dim": 32,
        "heads_per_ngram": 4,
        "split_ngram_parts": 4,
        "eos_token_id": 2,
        "indexer_n_heads": 2,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
        "indexer_budget": 16,
        "indexer_compress_ratio": 4,
        "hc_lowrank": 20,
    },
    "longcat_flash": {"head_dim": 8, "qk_head_dim": None},
    "zamba2": {"n_mamba_heads": 8, "mamba_headdim": 16, "attention_head_dim": 32, "num_key_value_heads": 4},
    "xlstm": {"embedding_dim": 128, "hidden_size": 128},
    # Fields without a default that works.
    "nemotron": {"num_key_value_heads": 2},
    "cwm": {"bos_token_id": 1, "eos_token_id": 2},
    "modernbert-decoder": {
        "pad_token_id": 127,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "cls_token_id": 1,
        "sep_token_id": 2,
    },
    "reformer": {
        "is_decoder": True,
        "hidden_size": 64,
        "axial_pos_shape": [16, 32],
        "axial_pos_embds_dim": [24, 40],
        "num_buckets": 4,
        "hash_seed": 0,
    },
}
