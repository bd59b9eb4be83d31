"""Which experts a batch activates: seeded draws, because the number of distinct experts decides the traffic."""

import numpy as np

ExpertLoad = tuple[int, ...]
ZIPF_EXPONENT = 1.0


def draw_loads(experts: int, top_k: int, batch: int, layers: int, *, seed: int, skewed: bool) -> tuple[ExpertLoad, ...]:
    """Return, per layer, the tokens of each active expert in falling order.

    Each token picks `top_k` different experts, uniformly or with Zipf popularity. A single token always activates
    top_k experts with one token each.
    """
    rng = np.random.default_rng([seed, experts, top_k, batch, int(skewed)])
    popularity = 1.0 / np.arange(1, experts + 1) ** (ZIPF_EXPONENT if skewed else 0.0)
    keys = rng.exponential(size=(layers, batch, experts)) / popularity
    chosen = np.argsort(keys, axis=-1)[..., :top_k]
    loads = [np.bincount(chosen[layer].ravel(), minlength=experts) for layer in range(layers)]
    return tuple(tuple(sorted((int(load) for load in layer if load), reverse=True)) for layer in loads)
