"""The host's part of a small attention case: queries, the softmax of blocks of tokens, the joining of their contexts.

One block: weights are the softmax. Several: a block's weights are exp(score - largest of the block), and contexts are
joined as sum over blocks of exp(largest of the block - largest) x context, over the sum of all weights so scaled.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.numerics.layout import Floats
from compiler.numerics.small_cache import CANCELLING_UNIT, INTEGER_UNIT, Cache
from compiler.numerics.small_sizes import AttentionCase
from compiler.numerics.small_values import random_values, sparse_integers
from simulator.bf16 import round_to_bf16

# Scores become softmax(score * scale); a small scale keeps weights level, so that every token counts.
LEVELLING = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class BlockSoftmax:
    """bf16 weights[unit, head, token], and fp32 factors[unit, head, block] and norms[unit, head] of the join."""

    weights: Floats
    factors: Floats
    norms: Floats

    def of_unit(self, cache: Cache, unit: int) -> tuple[Floats, Floats]:
        """Return V[dimension, token] and the weights[head, token] of a unit."""
        return cache.values[unit, : self.weights.shape[2]].T, self.weights[unit]

    def join(self, unit: int, contexts: list[Floats]) -> Floats:
        """Return the bf16 context[head, dimension] of a unit from contexts[block][part, head, dimension]."""
        total = np.zeros(contexts[0].shape[1:], dtype=np.float32)
        for block, parts in enumerate(contexts):
            for part in parts:
                total += self.factors[unit, :, block, None] * part if len(contexts) > 1 else part
        return round_to_bf16(total * self.norms[unit, :, None] if len(contexts) > 1 else total)


def random_queries(case: AttentionCase, cache: Cache, generator: np.random.Generator) -> Floats:
    """Return queries[unit, query head, k]."""
    shape = case.shape
    queries = random_values(generator, shape.units, shape.group, shape.head_dim)
    left, right = cache.dimension_pairs
    queries[CANCELLING_UNIT][:, right] = queries[CANCELLING_UNIT][:, left]
    queries[INTEGER_UNIT, 0] = sparse_integers(generator, shape.head_dim)
    return queries


def block_softmax(
    case: AttentionCase,
    cache: Cache,
    scores: Floats,
    block: NDArray[np.int64],
    generator: np.random.Generator,
) -> BlockSoftmax:
    """Return the host's softmax of scores[unit, query head, token] in fp32, weights rounded to bf16.

    `block` int64[token] says which tokens go together.
    """
    tokens = scores.shape[2]
    largest_key = np.abs(cache.keys).max()
    scaled = scores * np.float32(LEVELLING / np.sqrt(case.shape.head_dim) / max(largest_key, 1))
    tops = np.stack([scaled[:, :, block == number].max(axis=2) for number in range(block[-1] + 1)], axis=2)
    exponentials = np.exp(scaled - tops[:, :, block])
    factors: NDArray[np.float32] = np.exp(tops - tops.max(axis=2, keepdims=True))
    sums = (exponentials * factors[:, :, block]).sum(axis=2)
    single = tops.shape[2] == 1
    weights = round_to_bf16(exponentials / sums[:, :, None] if single else exponentials)
    norms = np.ones_like(sums) if single else (1 / sums).astype(np.float32)
    weights[INTEGER_UNIT, 0] = sparse_integers(generator, tokens)
    weights[INTEGER_UNIT, 0, -1] = 1
    factors[INTEGER_UNIT, 0], norms[INTEGER_UNIT, 0] = 1, 1
    left, right = (side[np.maximum(*cache.token_pairs) < tokens] for side in cache.token_pairs)
    weights[CANCELLING_UNIT, 0] = random_values(generator, tokens)
    weights[CANCELLING_UNIT, 0, right] = weights[CANCELLING_UNIT, 0, left]
    return BlockSoftmax(weights, factors, norms)
