"""From a HuggingFace configuration to an exported decode step: the model without weights, hooks and our own cache.

`load` reads a configuration, `build` makes the model on the meta device, `capture` exports one step of it.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from transformers import AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from compiler.huggingface import hooks
from compiler.huggingface.cache import CapturedLayer, LayerShapes, shapes_of
from compiler.huggingface.carriers import carrier_of
from compiler.huggingface.converting import conversions_replace_parameters
from compiler.huggingface.lifting import lifted_functions
from compiler.huggingface.quiet import quiet
from compiler.huggingface.replaced import replace_methods
from compiler.raising.exporting import export_step

# Tensors have types but no values, on a device of their own kind, so that constants written down in code keep theirs.
WITHOUT_VALUES = FakeTensorMode(allow_non_fake_inputs=True)


@dataclass(frozen=True, slots=True)
class StateInput:
    """One cache or state that a step takes and returns: its name in the graph, its layer, shape and type."""

    name: str
    layer: int
    role: str
    shape: tuple[int, ...]
    dtype: torch.dtype


class DecodeStep(nn.Module):
    """One decode step as a function: token ids [B], position [1] and every cache and state, to next ids and states."""

    def __init__(self, model: PreTrainedModel, layers: Sequence[LayerShapes], states: Sequence[StateInput]) -> None:
        super().__init__()
        self.model, self.layers, self.states = model, layers, states
        self.context = 0

    def forward(
        self, token_ids: Tensor, position: Tensor, state: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the most likely next token ids [B], and the caches and states after the step."""
        held: list[dict[str, Tensor]] = [{} for _ in self.layers]
        for one in self.states:
            held[one.layer][one.role] = state[one.name]
        cached = [
            CapturedLayer(shapes, tensors, position, self.context)
            for shapes, tensors in zip(self.layers, held, strict=True)
        ]
        with lifted_functions(self.model.dtype == torch.float64):
            carrier = carrier_of(self.model)
            given = carrier.given(self.model, cached)
            logits = _decoded(self.model, token_ids.unsqueeze(1), position, given).logits[:, -1]
            carrier.keep(self.model, cached, given)
        return logits.argmax(-1), {one.name: held[one.layer][one.role] for one in self.states}


def _decoded(model: PreTrainedModel, token_ids: Tensor, position: Tensor, carried: Any) -> Any:
    names = inspect.signature(model.forward).parameters
    named: dict[str, Any] = {carrier_of(model).argument(model): carried, "use_cache": True}
    if "position_ids" in names:
        named["position_ids"] = position.unsqueeze(0).expand(len(token_ids), 1)
    return model(input_ids=token_ids, **named)


def build(config: PreTrainedConfig, dtype: torch.dtype) -> PreTrainedModel:
    """Return the model of a configuration on the meta device, in evaluation mode, calling the hooks."""
    hooks.register()
    # Its checks look at values, which there are none of on the meta device.
    torch.distributions.Distribution.set_default_validate_args(False)
    lifted = lifted_functions(dtype == torch.float64)
    with quiet(), WITHOUT_VALUES, lifted, conversions_replace_parameters():
        model = AutoModelForCausalLM.from_config(config, attn_implementation=_attention_of(config), dtype=dtype)
    model.eval().requires_grad_(False)
    hooks.prepare(model)
    replace_methods(model)
    return model


def _attention_of(config: PreTrainedConfig) -> str:
    """Return our hooks' name, or for a class that spells its attention out torch's operator or plain products."""
    kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    if kind._can_set_attn_implementation():
        return hooks.NAME
    return "sdpa" if kind._supports_sdpa else "eager"


def layers_of(model: PreTrainedModel, batch: int, context: int) -> list[LayerShapes]:
    """Return what each layer of the model's own cache holds, found by decoding one token on the meta device."""
    carrier = carrier_of(model)
    given = carrier.first(model)
    lifted = lifted_functions(model.dtype == torch.float64)
    with quiet(), torch.no_grad(), WITHOUT_VALUES, lifted:
        token_ids, position = torch.empty((batch, 1), dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        output = _decoded(model, token_ids, position, given)
        return [shapes_of(layer, context) for layer in carrier.layers_after(model, given, output)]


def capture(model: PreTrainedModel, batch: int, context: int) -> ExportedProgram:
    """Return the exported, functional decode step of a model on the meta device."""
    layers = layers_of(model, batch, context)
    states = [
        StateInput(f"layers_{number}_{role}", number, role, shape, shapes.types[role])
        for number, shapes in enumerate(layers)
        for role, shape in shapes.named()
    ]
    step = DecodeStep(model, layers, states)
    step.context = context
    with WITHOUT_VALUES:
        tensors = {state.name: torch.empty(state.shape, dtype=state.dtype) for state in states}
        arguments = (torch.empty(batch, dtype=torch.int64), torch.empty(1, dtype=torch.int64), tensors)
    with quiet(), torch.no_grad(), WITHOUT_VALUES:
        return export_step(step, arguments)
