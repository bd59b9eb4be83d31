"""What a model carries from token to token and how it is handed over: transformers' cache, or a type's own way.

A carrier says which layers hold what after a first token (`layers_after`), makes of captured layers what the model
takes (`given`) and puts what the model kept elsewhere back into them (`keep`).
"""

import inspect
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer
from transformers.models.minimax.modeling_minimax import MiniMaxCache

from compiler.huggingface.cache import CapturedLayer


class Carrier:
    """The common way: a cache of layers, `cache` or `past_key_values`."""

    def argument(self, model: PreTrainedModel) -> str:
        """Return by which name the model's forward takes what is carried."""
        return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"

    def first(self, model: PreTrainedModel) -> Any:
        """Return what the first token is given."""
        return DynamicCache(config=model.config)

    def layers_after(self, model: PreTrainedModel, given: Any, output: Any) -> Sequence[Any]:
        """Return for every layer what it holds after the first token, see `compiler.huggingface.cache.held_by`."""
        del model, output
        layers: Sequence[Any] = given.layers
        return layers

    def given(self, model: PreTrainedModel, layers: list[CapturedLayer]) -> Any:
        """Return what a step is given."""
        del model
        return Cache(layers=list(layers))

    def keep(self, model: PreTrainedModel, layers: list[CapturedLayer], given: Any) -> None:
        """Put what the model kept elsewhere into the layers' tensors."""


class MiniMaxCarrier(Carrier):
    """minimax: a cache class of its own whose lightning attention keeps one matrix a head."""

    def first(self, model: PreTrainedModel) -> Any:
        """Return an empty cache of the type."""
        del model
        return _new(MiniMaxCache)

    def layers_after(self, model: PreTrainedModel, given: Any, output: Any) -> Sequence[Any]:
        """Return the layers, with the matrix as a recurrent state."""
        del model, output
        layers = [*given.layers, *[SimpleNamespace()] * (len(given) - len(given.layers))]
        for number, matrix in enumerate(given.linear_cache):
            if isinstance(matrix, Tensor):
                layers[number] = SimpleNamespace(recurrent_states={0: matrix})
        return layers

    def given(self, model: PreTrainedModel, layers: list[CapturedLayer]) -> Any:
        """Return a cache of the type over the captured layers."""
        del model
        cache = _new(_CapturedMiniMaxCache)
        cache.layers, cache.captured = list(layers), layers
        return cache


def _new(kind: Any) -> Any:
    """Return an object of a class without type annotations."""
    return kind()


class _CapturedMiniMaxCache(MiniMaxCache):  # type: ignore[misc]
    captured: list[CapturedLayer]

    def set_linear_cache(self, layer_idx: int, linear_cache: Tensor) -> None:
        self.captured[layer_idx].update_recurrent_state(linear_cache)

    def get_linear_cache(self, layer_idx: int) -> Tensor:
        return self.captured[layer_idx].tensors["recurrent_0"]


class RwkvCarrier(Carrier):
    """rwkv: five tensors [B, width, layers], each layer's part of which is a state here."""

    parts = range(5)
    # The last tokens of feed-forward and attention, which rows of a batch would get mixed up without an axis of tokens.
    tokens = (0, 1)

    def argument(self, model: PreTrainedModel) -> str:
        """Return `state`."""
        del model
        return "state"

    def first(self, model: PreTrainedModel) -> Any:
        """Return nothing: the model makes its own."""
        del model

    def layers_after(self, model: PreTrainedModel, given: Any, output: Any) -> Sequence[Any]:
        """Return the parts of every layer."""
        del given
        layers = range(model.config.num_hidden_layers)
        return [
            SimpleNamespace(recurrent_states={part: output.state[part][:, :, layer] for part in self.parts})
            for layer in layers
        ]

    def given(self, model: PreTrainedModel, layers: list[CapturedLayer]) -> Any:
        """Return five views that find a layer's part by its number."""
        del model
        return [_PartOfLayers(layers, f"recurrent_{part}", part in self.tokens) for part in self.parts]


class _PartOfLayers:
    """Stands for a tensor [B, width, layers] that is only ever read and written as `[:, :, layer]`."""

    def __init__(self, layers: list[CapturedLayer], role: str, with_tokens: bool) -> None:
        self.layers, self.role, self.with_tokens = layers, role, with_tokens

    def __getitem__(self, key: tuple[Any, Any, int]) -> Tensor:
        state = self.layers[key[2]].tensors[self.role]
        return state.unsqueeze(1) if self.with_tokens else state

    def __setitem__(self, key: tuple[Any, Any, int], state: Tensor) -> None:
        self.layers[key[2]].tensors[self.role] = state


class RecurrentGemmaCarrier(Carrier):
    """recurrent_gemma: a cache for attention, and states that modules keep in attributes."""

    def layers_after(self, model: PreTrainedModel, given: Any, output: Any) -> Sequence[Any]:
        """Return the layers, with what the recurrent blocks keep."""
        del output
        layers = [*given.layers, *[SimpleNamespace()] * (model.config.num_hidden_layers - len(given.layers))]
        for number, block in self._blocks(model):
            states = {0: block.rg_lru.recurrent_states}
            layers[number] = SimpleNamespace(conv_states={0: block.conv1d_state}, recurrent_states=states)
        return layers

    def given(self, model: PreTrainedModel, layers: list[CapturedLayer]) -> Any:
        """Hand the states to their modules and return the cache."""
        for number, block in self._blocks(model):
            block.conv1d_state = layers[number].tensors["convolution_0"]
            block.rg_lru.recurrent_states = layers[number].tensors["recurrent_0"]
        return super().given(model, layers)

    def keep(self, model: PreTrainedModel, layers: list[CapturedLayer], given: Any) -> None:
        """Take the states from their modules."""
        del given
        for number, block in self._blocks(model):
            layers[number].tensors["convolution_0"] = block.conv1d_state
            layers[number].tensors["recurrent_0"] = block.rg_lru.recurrent_states

    def _blocks(self, model: Any) -> Iterator[tuple[int, Any]]:
        for number, layer in enumerate(model.model.layers):
            if hasattr(layer.temporal_block, "rg_lru"):
                yield number, layer.temporal_block


class XlstmCarrier(Carrier):
    """xlstm: a table of three tensors a layer, which the model overwrites."""

    def first(self, model: PreTrainedModel) -> Any:
        """Return nothing: the model makes its own."""
        del model

    def layers_after(self, model: PreTrainedModel, given: Any, output: Any) -> Sequence[Any]:
        """Return the tensors of every layer."""
        del model, given
        return [SimpleNamespace(recurrent_states=dict(enumerate(three))) for three in output.cache.rnn_state.values()]

    def given(self, model: PreTrainedModel, layers: list[CapturedLayer]) -> Any:
        """Return a table of copies, which may be overwritten."""
        del model
        states = {
            number: tuple(layer.tensors[f"recurrent_{part}"].clone() for part in range(len(layer.tensors)))
            for number, layer in enumerate(layers)
        }
        return SimpleNamespace(rnn_state=states, seqlen_offset=layers[0].position, rnn_state_initial=False)

    def keep(self, model: PreTrainedModel, layers: list[CapturedLayer], given: Any) -> None:
        """Take the tensors from the table."""
        del model
        for number, three in given.rnn_state.items():
            for part, state in enumerate(three):
                layers[number].tensors[f"recurrent_{part}"] = state


class AttachedCarrier(Carrier):
    """Types without a cache, which give every step the whole prefix: attention modules are handed a layer of their own.

    The method of theirs that is replaced (`replaced.py`) appends to it, so that a step computes its own token only.
    """

    def first(self, model: PreTrainedModel) -> Any:
        """Attach an empty layer to every attention; the model itself is given nothing."""
        for attention in self._attentions(model):
            attention.layer = _new(DynamicLayer)

    def layers_after(self, model: PreTrainedModel, given: Any, output: Any) -> Sequence[Any]:
        """Return the layers that are attached."""
        del given, output
        return [attention.layer for attention in self._attentions(model)]

    def given(self, model: PreTrainedModel, layers: list[CapturedLayer]) -> Any:
        """Attach the captured layers."""
        for attention, layer in zip(self._attentions(model), layers, strict=True):
            attention.layer = layer

    def _attentions(self, model: Any) -> list[Any]:
        return [block.attn for block in model.transformer.h]


class Qwen4Carrier(Carrier):
    """qwen4_exp_text: its first indexed layer keeps the positions of all tokens, of which blocks need their first."""

    def given(self, model: PreTrainedModel, layers: list[CapturedLayer]) -> Any:
        """Return the cache, that layer given the position at which the current block began."""
        config = model.config.get_text_config()
        first: Any = layers[config.layer_types.index("indexed_attention")]
        start = first.position // config.indexer_compress_ratio * config.indexer_compress_ratio
        batch = next(iter(first.tensors.values())).shape[0]
        first.indexer_position_ids = start.expand(3, batch, 1)
        return super().given(model, layers)


COMMON = Carrier()
CARRIERS: dict[str, Carrier] = {
    "minimax": MiniMaxCarrier(),
    "openai-gpt": AttachedCarrier(),
    "rwkv": RwkvCarrier(),
    "recurrent_gemma": RecurrentGemmaCarrier(),
    "xlstm": XlstmCarrier(),
    "qwen4_exp_text": Qwen4Carrier(),
}


def carrier_of(model: PreTrainedModel) -> Carrier:
    """Return the carrier of a model's type."""
    return CARRIERS.get(model.config.model_type, COMMON)
