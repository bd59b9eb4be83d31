"""The cache that a model is captured with: one tensor per cache and state, the position a tensor, no tensor changed.

Attention layers append to full-length caches, sliding ones too: what a token attends to is the mask's to say, and a
graph's window tells how much of the cache is read. Layers with states take the convolution's last inputs and the
recurrent state and keep what they become. What a token leaves behind besides, such as a bias for those that follow it,
is a history: a tensor with an axis of tokens that a replaced method asks for by `remembered`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import cache_utils

from compiler.raising import marks

POSITION_AXIS = 2


@dataclass(frozen=True, slots=True)
class LayerShapes:
    """What a layer keeps, as shapes: key and value caches, index keys, convolutions, recurrent states, histories."""

    sliding: bool = False
    caches: tuple[tuple[int, ...], ...] = ()
    index: tuple[int, ...] = ()
    convolutions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    recurrent: dict[int, tuple[int, ...]] = field(default_factory=dict)
    histories: dict[int, tuple[int, ...]] = field(default_factory=dict)
    types: dict[str, torch.dtype] = field(default_factory=dict)

    def named(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield every tensor's name and shape, in the order in which a layer takes them."""
        yield from zip(("key_cache", "value_cache"), self.caches, strict=False)
        if self.index:
            yield "index_cache", self.index
        yield from ((f"convolution_{number}", shape) for number, shape in self.convolutions.items())
        yield from ((f"recurrent_{number}", shape) for number, shape in self.recurrent.items())
        yield from ((f"history_{number}", shape) for number, shape in self.histories.items())


def held_by(layer: Any) -> dict[str, tuple[Tensor, int | None]]:
    """Return every tensor that a layer of transformers' own cache holds by its role, with its axis of tokens if any."""
    held: dict[str, tuple[Tensor, int | None]] = {}
    if isinstance(getattr(layer, "keys", None), Tensor):
        held |= {"key_cache": (layer.keys, POSITION_AXIS), "value_cache": (layer.values, POSITION_AXIS)}
    if isinstance(getattr(layer, "indexer_keys", None), Tensor):
        held["index_cache"] = (layer.indexer_keys.unsqueeze(1), POSITION_AXIS)
    if isinstance(getattr(layer, "idx_keys", None), Tensor):  # minimax_m3
        held["index_cache"] = (layer.idx_keys, POSITION_AXIS)
    for role, states in (("convolution", "conv_states"), ("recurrent", "recurrent_states")):
        for number, state in getattr(layer, states, {}).items():
            if state is not None:
                held[f"{role}_{number}"] = (state, None)
    histories: dict[int, Tensor] = getattr(layer, "histories", {})
    return held | {f"history_{number}": (one, POSITION_AXIS) for number, one in histories.items()}


def remembered(layer: Any, number: int, token: Tensor) -> Tensor:
    """Return a history [B, heads, context, width] of a layer with a token [B, heads, 1, width] added.

    A layer of transformers' own is only asked for its shape: it keeps the token.
    """
    if isinstance(layer, CapturedLayer):
        return layer.update_history(token, number)
    layer.histories = {**getattr(layer, "histories", {}), number: token}
    return token


def collected(layer: Any, number: int, entry: Tensor, tokens: int) -> Tensor:
    """Return a cache [B, heads, entries, width] of a layer with the entry [B, heads, 1, width] of each `tokens` tokens.

    An entry is written with each of its tokens: it is what it should be once the last of them has been.
    """
    if isinstance(layer, CapturedLayer):
        return layer.update_entries(entry, number, tokens)
    layer.entry_tokens = {**getattr(layer, "entry_tokens", {}), f"history_{number}": tokens}
    return remembered(layer, number, entry)


def buffered(layer: Any, number: int, token: Tensor, tokens: int) -> Tensor:
    """Return a state [B, tokens, width] of a layer that holds the last tokens [B, 1, width], at their place modulo."""
    if isinstance(layer, CapturedLayer):
        before = layer.tensors[f"recurrent_{number}"]
        return layer.update_recurrent_state(marks.remember(before, 1, layer.position % tokens, token), number)
    state = token.repeat(1, tokens, 1)
    layer.recurrent_states = {**getattr(layer, "recurrent_states", {}), number: state}
    return state


def position_of(layer: Any) -> Tensor:
    """Return the position [1] of the token that a layer is given: a layer of transformers' own is given the first."""
    return layer.position if isinstance(layer, CapturedLayer) else torch.zeros(1, dtype=torch.int64)


def shapes_of(layer: Any, context: int) -> LayerShapes:
    """Return what a layer of transformers' own cache holds after one token, with the token axis at full length."""
    held = held_by(layer)
    tokens: dict[str, int] = getattr(layer, "entry_tokens", {})
    lengths = {name: -(-context // tokens.get(name, 1)) for name in held}
    shapes = {
        name: tuple(lengths[name] if axis == token_axis else size for axis, size in enumerate(tensor.shape))
        for name, (tensor, token_axis) in held.items()
    }
    return LayerShapes(
        sliding=bool(getattr(layer, "is_sliding", False)),
        caches=tuple(shapes[name] for name in ("key_cache", "value_cache") if name in shapes),
        index=shapes.get("index_cache", ()),
        convolutions=_numbered(shapes, "convolution"),
        recurrent=_numbered(shapes, "recurrent"),
        histories=_numbered(shapes, "history"),
        types={name: tensor.dtype for name, (tensor, _) in held.items()},
    )


def _numbered(shapes: dict[str, tuple[int, ...]], role: str) -> dict[int, tuple[int, ...]]:
    return {int(name.rpartition("_")[2]): shape for name, shape in shapes.items() if name.startswith(role)}


class CapturedLayer(cache_utils.LinearAttentionCacheLayerMixin, cache_utils.CacheLayerMixin):  # type: ignore[misc]
    """One layer of the cache: what it holds before the step, and after the model has updated it what it holds then."""

    supports_early_init = False

    def __init__(self, shapes: LayerShapes, tensors: dict[str, Tensor], position: Tensor, context: int) -> None:
        cache_utils.LinearAttentionCacheLayerMixin.__init__(self, number_of_states=max(1, len(shapes.convolutions)))
        self.is_sliding = shapes.sliding
        self.shapes, self.tensors, self.position, self.context = shapes, tensors, position, context
        self.keys, self.values = tensors.get("key_cache"), tensors.get("value_cache")
        self.is_initialized = self.is_indexer_initialized = True
        numbers = range(max((*shapes.convolutions, *shapes.recurrent), default=0) + 1)
        self.conv_states = {number: tensors.get(f"convolution_{number}") for number in numbers}
        self.recurrent_states = {number: tensors.get(f"recurrent_{number}") for number in numbers}
        self.has_previous_state = dict.fromkeys(numbers, True)
        self.conv_kernel_size = {number: shape[-1] for number, shape in shapes.convolutions.items()}
        self.is_conv_states_initialized = self.is_recurrent_states_initialized = dict.fromkeys(numbers, True)

    def lazy_initialization(self, *_: Any, **__: Any) -> None:
        """Do nothing: every tensor is there from the start."""

    def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append a token's key and value and return the caches."""
        self.tensors["key_cache"] = marks.append(self.tensors["key_cache"], keys, self.position)
        self.tensors["value_cache"] = marks.append(self.tensors["value_cache"], values, self.position)
        self.keys, self.values = self.tensors["key_cache"], self.tensors["value_cache"]
        return self.keys, self.values

    def update_indexer(self, keys: Tensor) -> Tensor:
        """Append a token's index key [B, 1, width] and return the index cache [B, context, width]."""
        return self.update_index(keys.unsqueeze(1)).squeeze(1)

    def update_index(self, keys: Tensor) -> Tensor:
        """Append a token's index key [B, 1, 1, width] and return the index cache [B, 1, context, width]."""
        self.tensors["index_cache"] = marks.append(self.tensors["index_cache"], keys, self.position)
        return self.tensors["index_cache"]

    def update_conv_state(self, states: Tensor, state_idx: int = 0, **_: Any) -> Tensor:
        """Return the convolution's inputs with the new one behind them, and keep the last."""
        name = f"convolution_{state_idx}"
        every = torch.cat([self.tensors[name], states], dim=-1)
        self.tensors[name] = every[..., -self.conv_kernel_size[state_idx] :]
        self.conv_states[state_idx] = self.tensors[name]
        return every

    def update_recurrent_state(self, state: Tensor, state_idx: int = 0, **_: Any) -> Tensor:
        """Keep the new state and return it."""
        self.tensors[f"recurrent_{state_idx}"] = self.recurrent_states[state_idx] = state
        return state

    def update_history(self, token: Tensor, number: int) -> Tensor:
        """Write a token [B, heads, 1, width] at the position of a history and return the history."""
        name = f"history_{number}"
        self.tensors[name] = marks.remember(self.tensors[name], POSITION_AXIS, self.position, token)
        return self.tensors[name]

    def update_entries(self, entry: Tensor, number: int, tokens: int) -> Tensor:
        """Write the entry [B, heads, 1, width] of the last `tokens` tokens to its place among all and return them."""
        name = f"history_{number}"
        self.tensors[name] = marks.append(self.tensors[name], entry, self.position // tokens)
        return self.tensors[name]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the slots that masks cover, and where they begin."""
        return self.context, 0

    def get_seq_length(self) -> Any:
        """Return how many tokens came before: a tensor, so that no number is baked into the program."""
        return self.position.squeeze(0)

    def get_max_length(self) -> int:
        """Return the context."""
        return self.context

    get_max_cache_shape = get_max_length
