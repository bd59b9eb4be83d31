"""Closed-form counts of a model's parameters and traffic, written by hand from the papers' layer equations.

Deliberately independent of the compiler: tests hold `compiler.traffic`, which counts the graph, equal to these.
"""

from configs.model_config import ModelConfig


def parameters(config: ModelConfig) -> int:
    """Return the number of parameters, tied embeddings counted once."""
    head = 0 if config.tied_embeddings else config.vocabulary * config.hidden
    embedding = config.vocabulary * config.hidden
    experts = _expert(config) * max(config.experts, 1)
    return embedding + config.layers * (_layer_without_experts(config) + experts) + config.hidden + head


def weights_read_per_token(config: ModelConfig) -> int:
    """Return the weight elements one token reads: active experts, the head's matrix, one embedding row."""
    experts = _expert(config) * max(config.experts_per_token, 1)
    head = config.vocabulary * config.hidden
    return config.layers * (_layer_without_experts(config) + experts) + config.hidden + head + config.hidden


def kv_elements_read_per_token(config: ModelConfig, context: int) -> int:
    """Return the K and V elements one token of one sequence reads, itself included, at `context` tokens."""
    return kv_elements_written_per_token(config) * min(context, config.sliding_window or context)


def kv_elements_written_per_token(config: ModelConfig) -> int:
    """Return the K and V elements one token of one sequence adds to the cache."""
    return 2 * config.layers * config.kv_heads * config.head_dim


def operations_per_token(config: ModelConfig, context: int) -> int:
    """Return the floating-point operations of all matrix products for one token, two per multiply-accumulate."""
    query, key_value = config.heads * config.head_dim, config.kv_heads * config.head_dim
    projections = config.hidden * (2 * query + 2 * key_value)
    experts = 3 * config.hidden * config.intermediate * max(config.experts_per_token, 1)
    router = config.hidden * config.experts
    attention = 2 * query * min(context, config.sliding_window or context)
    layer = projections + experts + router + attention
    return 2 * (config.layers * layer + config.hidden * config.vocabulary)


def _layer_without_experts(config: ModelConfig) -> int:
    """Return the elements of one layer outside its feed-forward matrices; dense models have no router."""
    query, key_value = config.heads * config.head_dim, config.kv_heads * config.head_dim
    projections = config.hidden * (2 * query + 2 * key_value)
    bias = query + 2 * key_value + config.hidden if config.attention_bias else 0
    norms = 2 * config.hidden + (2 * config.head_dim if config.query_key_norm else 0)
    return projections + bias + norms + config.hidden * config.experts


def _expert(config: ModelConfig) -> int:
    """Return the elements of one gated feed-forward block: gate, up and down."""
    bias = 2 * config.intermediate + config.hidden if config.mlp_bias else 0
    return 3 * config.hidden * config.intermediate + bias
