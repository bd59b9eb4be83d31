"""Do the counts of the graph equal the closed-form hand formulas, exactly?"""

from typing import Any

import pytest

from compiler.frontend import import_model
from compiler.graph_text import parse_graph
from compiler.traffic import Traffic, traffic_of
from compiler.verify import verify
from configs import formulas
from configs.model_config import ModelConfig, built_in_models, load_model_config
from tests.tiny_models import CONTEXT, FAMILIES, built_in_graph, tiny_config


def traffic_by_hand(config: ModelConfig, batch: int, context: int) -> Traffic:
    """Return the record for two-byte elements; the caches hold whole contexts."""
    written = 2 * formulas.kv_elements_written_per_token(config)
    return Traffic(
        parameters=formulas.parameters(config),
        weight_capacity_bytes=2 * formulas.parameters(config),
        weight_bytes_per_token=2 * formulas.weights_read_per_token(config),
        kv_capacity_bytes=batch * context * written,
        kv_read_bytes_per_token=2 * formulas.kv_elements_read_per_token(config, context),
        kv_written_bytes_per_token=written,
        flops_per_token=formulas.operations_per_token(config, context),
    )


HUGE = ("llama-2-70b", "llama-3.1-70b")


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] if one in HUGE else []) for one in built_in_models()]
)
def test_every_built_in_model_counts_as_by_hand(name: str) -> None:
    config = load_model_config(name)
    assert traffic_of(built_in_graph(name)) == traffic_by_hand(config, 1, 4096)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_counts_as_by_hand(family: str, batch: int) -> None:
    config = tiny_config(family)
    assert traffic_of(import_model(config, batch, CONTEXT)) == traffic_by_hand(config, batch, CONTEXT)


def test_llama_moves_fifteen_gigabytes_of_weights_and_half_a_gibibyte_of_cache() -> None:
    traffic = traffic_of(built_in_graph("llama-3.1-8b"))
    assert traffic.parameters == 8_030_261_248
    assert round(traffic.weight_bytes_per_token / 1e9, 2) == 15.01
    assert traffic.kv_read_bytes_per_token == 2**29


def test_a_window_bounds_the_cache_read_but_not_its_capacity() -> None:
    config = tiny_config("mistral")
    short, long = (traffic_of(import_model(config, 1, context)) for context in (10, 20))
    assert long.kv_read_bytes_per_token == short.kv_read_bytes_per_token
    assert long.kv_capacity_bytes == 2 * short.kv_capacity_bytes


PER_HEAD_AND_ROUTED = """
graph step
input %ids : i64[1]
input %position : i64[1]
input %latents : bf16[1,1,10,6]
input %keys : bf16[1,1,10,4]
input %r : bf16[1,8]
input %chosen : i64[1,3]
weight %table : bf16[50,8]
weight %both : bf16[14,6]
weight %experts : bf16[5,2,6]
weight %biases : bf16[5,2]
%x : bf16[1,8] = embedding(%ids, %table) {vocabulary=50, width=8}
%q : bf16[1,12] = head_linear(%x, %both) {heads=2, in_features=4, out_features=6, rows=7, first=0, transposed=true}
%c : bf16[1,12] = latent_attention(%q, %r, %latents, %keys, %position) {heads=2, latent=6, rotary=4, context=10, window=0, scale=1.0}
%v : bf16[1,6] = head_linear(%c, %both) {heads=2, in_features=6, out_features=3, rows=7, first=4, transposed=false}
%y : bf16[1,6] = routed_linear(%v, %chosen, %experts, %biases) {experts=5, top_k=3, in_features=6, out_features=2, shared=true, bias=true, transposed=false}
output %y
"""  # noqa: E501  an operator is a line


def test_both_uses_of_a_matrix_by_heads_add_up_to_all_of_it_and_experts_to_the_chosen_ones() -> None:
    graph = parse_graph(PER_HEAD_AND_ROUTED)
    verify(graph)
    traffic = traffic_of(graph)
    assert traffic.weight_bytes_per_token == 2 * (8 + 14 * 6 + 3 * (2 * 6 + 2))
    assert traffic.weight_capacity_bytes == 2 * (50 * 8 + 14 * 6 + 5 * (2 * 6 + 2))
    assert traffic.kv_read_bytes_per_token == 2 * 10 * (6 + 4)
    assert traffic.flops_per_token == 2 * 14 * 6 + 2 * 2 * 10 * (6 + 4 + 6) + 2 * 3 * 2 * 6


CHUNKED_AND_RECURRENT = """
graph step
input %q : bf16[2,8]
input %position : i64[1]
input %k : bf16[2,4]
input %v : bf16[2,6]
input %k_cache : bf16[2,1,CONTEXT,4]
input %v_cache : bf16[2,1,CONTEXT,6]
input %state : f32[2,5]
weight %decay : f32[5]
%k_after : bf16[2,1,CONTEXT,4], %v_after : bf16[2,1,CONTEXT,6] = kv_append(%k, %v, %k_cache, %v_cache, %position) {kv_heads=1, head_dim=4, context=CONTEXT, value_dim=6}
%a : bf16[2,12] = attention(%q, %k_after, %v_after, %position) {heads=2, kv_heads=1, head_dim=4, context=CONTEXT, window=0, scale=1.0, value_dim=6, chunk=8}
%after : f32[2,5], %read : f32[2,5] = recurrence(%state, %decay) {role="decay", states=1, body="t0 = aten.mul.Tensor($0, $1); t1 = aten.exp.default(t0); return t0, t1"}
output %a
"""  # noqa: E501  an operator is a line


@pytest.mark.parametrize(("context", "attended"), [(5, 5), (8, 8), (9, 1), (20, 4)])
def test_chunks_bound_what_is_read_and_states_are_read_and_written_once(context: int, attended: int) -> None:
    graph = parse_graph(CHUNKED_AND_RECURRENT.replace("CONTEXT", str(context)))
    verify(graph)
    traffic = traffic_of(graph)
    assert traffic.kv_read_bytes_per_token == 2 * attended * (4 + 6) + 4 * 5
    assert traffic.kv_written_bytes_per_token == 2 * (4 + 6) + 4 * 5
    assert traffic.kv_capacity_bytes == 2 * (2 * context * (4 + 6) + 4 * 5)
    assert traffic.weight_bytes_per_token == 4 * 5
    assert traffic.flops_per_token == 2 * 2 * (4 + 6) * attended + 2 * 5


def imported(model_type: str) -> tuple[Traffic, Any]:
    """Return the traffic of a tiny model at its context, and its configuration."""
    pytest.importorskip("transformers")
    from compiler.huggingface.tiny import tiny_config as tiny_imported
    from tests.imported_models import imported_graph

    return traffic_of(imported_graph(model_type)), tiny_imported(model_type)


def grouped_matrices(config: Any) -> int:
    """Return the elements of q, k, v and o of grouped-query attention."""
    width = config.head_dim
    queries, keys = config.num_attention_heads * width, config.num_key_value_heads * width
    return int(config.hidden_size * (2 * queries + 2 * keys))


def gated_matrices(config: Any, width: int) -> int:
    """Return the elements of gate, up and down."""
    return int(3 * config.hidden_size * width)


def ends(config: Any) -> int:
    """Return what is read of embedding, last norm and head."""
    return int(config.hidden_size * (1 + 1 + config.vocab_size))


IMPORTED_CONTEXT = 80


def test_grouped_queries_count_as_by_hand() -> None:
    traffic, config = imported("llama")
    layer = grouped_matrices(config) + gated_matrices(config, config.intermediate_size)
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    assert traffic.weight_bytes_per_token == 2 * (layers * (layer + 2 * config.hidden_size) + ends(config))
    cached = 2 * config.num_key_value_heads * config.head_dim * layers
    assert traffic.kv_read_bytes_per_token == 2 * IMPORTED_CONTEXT * cached
    assert traffic.kv_written_bytes_per_token == 2 * cached
    attention = 4 * heads * config.head_dim * IMPORTED_CONTEXT
    assert traffic.flops_per_token == layers * (2 * layer + attention) + 2 * config.hidden_size * config.vocab_size


def test_one_key_head_of_falcon_is_read_for_all_queries() -> None:
    traffic, config = imported("falcon")
    hidden, inner, width = config.hidden_size, config.ffn_hidden_size, config.hidden_size // config.num_attention_heads
    layer = hidden * (hidden + 2 * width) + hidden * hidden + 2 * hidden * inner
    read = config.num_hidden_layers * (layer + 2 * hidden) + ends(config) + hidden  # norms have biases
    assert traffic.weight_bytes_per_token == 2 * read
    assert traffic.kv_read_bytes_per_token == 2 * config.num_hidden_layers * IMPORTED_CONTEXT * 2 * width


def test_sliding_layers_of_gemma_read_their_window() -> None:
    traffic, config = imported("gemma3_text")
    token = 2 * 2 * config.num_key_value_heads * config.head_dim
    assert traffic.kv_read_bytes_per_token == token * (config.sliding_window + IMPORTED_CONTEXT)
    assert traffic.kv_written_bytes_per_token == 2 * token
    layer = grouped_matrices(config) + gated_matrices(config, config.intermediate_size)
    norms = 4 * config.hidden_size + 2 * config.head_dim
    assert traffic.weight_bytes_per_token == 2 * (2 * (layer + norms) + ends(config))


def test_latent_attention_and_shared_experts_of_deepseek_count_as_by_hand() -> None:
    traffic, config = imported("deepseek_v3")
    hidden, heads, latent, rotary = (
        config.hidden_size,
        config.num_attention_heads,
        config.kv_lora_rank,
        config.qk_rope_head_dim,
    )
    key, value = config.qk_nope_head_dim, config.v_head_dim
    queries = hidden * config.q_lora_rank + config.q_lora_rank * heads * (key + rotary)
    by_head = heads * (key + value) * latent
    attention = queries + hidden * (latent + rotary) + by_head + heads * value * hidden
    norms = 2 * hidden + config.q_lora_rank + latent
    expert = gated_matrices(config, config.moe_intermediate_size)
    sparse = (config.num_experts_per_tok + config.n_shared_experts) * expert
    router = hidden * config.n_routed_experts
    dense = gated_matrices(config, config.intermediate_size)
    read = 2 * (attention + norms) + dense + sparse + ends(config)
    assert traffic.weight_bytes_per_token == 2 * read + 4 * router
    assert traffic.kv_read_bytes_per_token == 2 * 2 * IMPORTED_CONTEXT * (latent + rotary)
    attended = 2 * heads * IMPORTED_CONTEXT * (latent + rotary + latent)
    matrices = 2 * (2 * attention + dense + sparse + router + hidden * config.vocab_size)
    assert traffic.flops_per_token == matrices + 2 * attended


def test_states_of_mamba_are_read_and_written_once() -> None:
    traffic, config = imported("mamba2")
    inner, groups = config.num_heads * config.head_dim, config.n_groups * config.state_size
    channels, state = inner + 2 * groups, inner * config.state_size
    states = 2 * (2 * channels * config.conv_kernel + 4 * state)
    assert traffic.kv_read_bytes_per_token == traffic.kv_written_bytes_per_token == states
    matrices = config.hidden_size * (inner + channels + config.num_heads) + inner * config.hidden_size
    # The convolution slides over the state and the new value: two positions.
    convolution = 2 * 2 * channels * config.conv_kernel
    # The factor exp(dt A) and the input dt B x, two operations each, decay, addition, the product with C; A itself.
    layer = 2 * matrices + convolution + 6 * state + 2 * state + 2 * config.num_heads
    assert traffic.flops_per_token == 2 * layer + 2 * config.hidden_size * config.vocab_size


def test_the_delta_rule_of_qwen_counts_each_pass_over_its_state() -> None:
    traffic, config = imported("qwen3_next")
    heads, key, value = config.linear_num_value_heads, config.linear_key_head_dim, config.linear_value_head_dim
    channels = 2 * config.linear_num_key_heads * key + heads * value
    states = 2 * channels * config.linear_conv_kernel_dim + 4 * heads * key * value
    cached = 2 * 2 * config.num_key_value_heads * config.head_dim
    assert traffic.kv_read_bytes_per_token == states + IMPORTED_CONTEXT * cached
    assert traffic.kv_written_bytes_per_token == states + cached
    hidden, inner = config.hidden_size, heads * value
    linear = hidden * (channels + inner + 2 * heads) + inner * hidden
    # The query projection carries a gate.
    attention = grouped_matrices(config) + hidden * config.num_attention_heads * config.head_dim
    expert = gated_matrices(config, config.moe_intermediate_size)
    shared = gated_matrices(config, config.shared_expert_intermediate_size) + hidden
    sparse = config.num_experts_per_tok * expert + shared + hidden * config.num_experts
    matrices = linear + attention + 2 * sparse + hidden * config.vocab_size
    # Decay, k S and its sum, v - k S times beta, the outer product, the addition, q S and its sum.
    rule = 7 * heads * key * value + 2 * heads * value
    attended = 4 * config.num_attention_heads * config.head_dim * IMPORTED_CONTEXT
    convolution = 2 * 2 * channels * config.linear_conv_kernel_dim
    assert traffic.flops_per_token == 2 * matrices + rule + convolution + attended
