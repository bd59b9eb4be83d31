"""What attention costs the host: softmax, the joining of partial contexts, or all of it (ints or arrays)."""

from typing import Any

import numpy as np

from compiler.attention import AttentionShape
from compiler.host_cost import host_work_ns
from configs.device import Host

# Exponential, sum, maximum, scale and division per score: host operations counted per score.
SOFTMAX_OPERATIONS = 10
ROUNDING_OPERATIONS = 4  # of a value that is stored narrow: magnitude, maximum, division, rounding
SCALE_BYTES = 2  # of a token's K or V of one head: bf16
SOFTCAP_OPERATIONS = 3  # of a score: division, hyperbolic tangent, product


def softmax_ns(shape: AttentionShape, host: Host, tokens: Any) -> Any:
    """Return the host's time for the softmax of the scores of so many tokens: read once, written once.

    Where the cache has scales, those of K are multiplied into the scores and those of V into the weights. A soft cap
    and a bias change scores first; a sink is one more score of each query.
    """
    scores = shape.vectors * tokens
    scaled = int(shape.storage.host_scale)
    moved = 2 * scores * shape.value_bytes + scaled * 2 * shape.units * tokens * SCALE_BYTES
    moved = moved + (shape.bias_heads * tokens + shape.sinks * shape.heads) * shape.value_bytes
    changes = 2 * scaled + SOFTCAP_OPERATIONS * shape.softcap + (shape.bias_heads > 0)
    operations = (SOFTMAX_OPERATIONS + changes) * scores + SOFTMAX_OPERATIONS * shape.sinks * shape.vectors
    return host_work_ns(host, moved, operations)


def rounding_ns(shape: AttentionShape, host: Host) -> Any:
    """Return the host's time to round the newest K and V to a narrow cache's format: read, written, scales written."""
    heads = 2 * shape.units * shape.queries
    values = shape.units * shape.queries * (shape.head_dim + shape.value_width)
    scales = heads * SCALE_BYTES * int(shape.storage.host_scale)
    moved = values * shape.value_bytes + values * shape.storage.bits / 8 + scales
    return host_work_ns(host, moved, ROUNDING_OPERATIONS * values)


def context_sum_ns(shape: AttentionShape, split: Any, blocks: Any, host: Host) -> Any:
    """Return the host's time to join the contexts of `split` channels and of `blocks` blocks, each weighted by its sum.

    Zero where there is one of each.
    """
    parts = split * blocks
    values = shape.vectors * shape.value_width
    operations = values * (parts - 1) + np.where(blocks > 1, values * (parts + 1), 0)
    return np.where(parts > 1, host_work_ns(host, values * shape.value_bytes * (parts + 1), operations), 0.0)


def host_attention_ns(shape: AttentionShape, host: Host) -> Any:
    """Return the host's time for the whole operator with K and V in its own memory."""
    return host_work_ns(host, shape.host_kv_bytes, shape.operations, matrix=True) + softmax_ns(
        shape, host, shape.tokens
    )
