"""A type compared with transformers: the graph of its tiny model, interpreted, against eager decoding.

float64 is lifted and has to agree to rounding; float32 and bfloat16 are pinned to the experts and tokens that eager
chose, so that what is left is rounding. Both run teacher-forced on the same random tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from compiler.graph import Graph, Op, OpKind, TensorType
from compiler.huggingface.capture import build, capture
from compiler.huggingface.lifting import lifted_to_float64
from compiler.huggingface.quiet import quiet
from compiler.huggingface.reference import decode_reference, state_name
from compiler.huggingface.routes import Route, recorded_routes
from compiler.huggingface.selection import recorded_selections
from compiler.huggingface.states import states_after
from compiler.huggingface.tiny import random_model, tiny_config
from compiler.interpreter import execute, next_states
from compiler.passes import run_passes
from compiler.raising.assemble import Raised, raise_program
from compiler.unmatched import Unmatched, unmatched_of

# Types whose first token eager computes otherwise than later ones: nemotron_h clamps the step sizes of a prefill only.
FIRST_TOKEN_DIFFERS = ("nemotron_h",)
# Types that choose tokens by what does not depend on their place: equal tokens score the same, and which of them eager
# then takes is torch's to say. They are given no token twice.
NO_TOKEN_TWICE = ("doge",)
STATE_PREFIX = "state_"
ROUTED = {OpKind.ROUTED_LINEAR: 2, OpKind.EXPERTS: 3}  # which operand is the experts' first weight


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far a graph is from eager transformers, and what it consists of.

    `largest_difference` is that of any logit at any step, relative to the largest logit of the same step;
    `differences` are those of the steps compared, the last `steps` of the sequence.
    """

    model_type: str
    steps: int
    batch: int
    dtype: torch.dtype
    largest_difference: float
    differences: tuple[float, ...]
    unmatched: tuple[Unmatched, ...]
    graph: Graph
    import_seconds: float
    execution_seconds: float

    @property
    def unmatched_bytes(self) -> int:
        """Bytes of weights and states that computations without a name read."""
        return sum(one.moved_bytes for one in self.unmatched)


def import_tiny(model_type: str, batch: int, context: int, dtype: torch.dtype) -> Raised:
    """Return the raised graph of a type's tiny model, its passes run."""
    exported = capture(build(tiny_config(model_type), dtype), batch, context)
    raised = raise_program(exported, model_type, "model.")
    return Raised(run_passes(raised.graph), raised.sources, raised.constants)


def compare(model_type: str, steps: int = 72, batch: int = 1, dtype: torch.dtype = torch.float64) -> Comparison:
    """Return the comparison of a type's tiny model over `steps` steps; raises UserError where it is not imported."""
    prefilled = int(model_type in FIRST_TOKEN_DIFFERS)
    context = steps + prefilled + 8
    started = perf_counter()
    raised = import_tiny(model_type, batch, context, dtype)
    imported = perf_counter()
    model = random_model(tiny_config(model_type), 0, dtype)
    token_ids = random_tokens(model, batch, steps + prefilled)
    with recorded_routes(model) as routes, recorded_selections(model) as selections:
        expected = decode_reference(model, token_ids)
    states = {value.name: _empty(value.type, dtype) for value in raised.graph.inputs[2:]}
    if prefilled:
        states |= _first_states(model, token_ids[:, :1], context)
    pins: list[dict[str, Tensor]] = [{} for _ in range(steps + prefilled)]
    if dtype is not torch.float64:
        _pin_routes(pins, raised.graph, routes, dtype)
        _pin_selections(pins, raised.graph, selections)
    executing = perf_counter()
    logits = run_steps(raised, model, token_ids, states, pins, first=prefilled)
    differences = tuple(_difference(found, expected[:, prefilled + step]) for step, found in enumerate(logits))
    return Comparison(
        model_type=model_type,
        steps=steps,
        batch=batch,
        dtype=dtype,
        largest_difference=float(torch.tensor(differences).max()),  # unlike Python's, of a NaN a NaN
        differences=differences,
        unmatched=unmatched_of(raised.graph, raised.sources),
        graph=raised.graph,
        import_seconds=imported - started,
        execution_seconds=perf_counter() - executing,
    )


def _empty(state: TensorType, dtype: torch.dtype) -> Tensor:
    return torch.zeros(state.shape, dtype=dtype if state.dtype.is_float else torch.int64)


def random_tokens(model: PreTrainedModel, batch: int, steps: int) -> Tensor:
    """Return the token ids [batch, steps] that every comparison decodes; rows begin alike whatever the batch."""
    generator = torch.Generator().manual_seed(1)
    vocabulary = min(model.config.get_text_config(decoder=True).vocab_size, 100)
    if model.config.model_type in NO_TOKEN_TWICE:
        return torch.stack([torch.randperm(vocabulary, generator=generator)[:steps] for _ in range(batch)])
    return torch.stack([torch.randint(0, vocabulary, (steps,), generator=generator) for _ in range(batch)])


def values_of(raised: Raised, model: PreTrainedModel) -> dict[str, Tensor]:
    """Return the values of a graph's weights and constants; raises KeyError for one without a value."""
    named = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    known: dict[str, Tensor] = {**raised.constants, **named}
    return {value.name: known[value.name] for value in (*raised.graph.weights, *raised.graph.constants)}


def run_steps(
    raised: Raised,
    model: PreTrainedModel,
    token_ids: Tensor,
    states: Mapping[str, Tensor],
    pins: Sequence[Mapping[str, Tensor]],
    first: int = 0,
) -> list[Tensor]:
    """Return the logits of each step from `first` on, the graph starting from `states`."""
    graph, weights = raised.graph, values_of(raised, model)
    ids, position = (value.name for value in graph.inputs[:2])
    logits = next(op.inputs[0] for op in reversed(graph.ops) if op.kind is OpKind.SAMPLE)
    held, found = dict(states), []
    for step in range(first, token_ids.shape[1]):
        given = {ids: token_ids[:, step], position: torch.tensor([step]), **held}
        values = execute(graph, given, weights, model.dtype, pins[step])
        held |= next_states(graph, values)
        found.append(values[logits])
    return found


def _difference(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())


@torch.no_grad()
def _first_states(model: PreTrainedModel, token_ids: Tensor, context: int) -> dict[str, Tensor]:
    """Return the states after the first token, which eager computes as a prefill."""
    name = state_name(model)
    assert name is not None
    named: dict[str, Any] = {"use_cache": True}
    with quiet(), lifted_to_float64(model.dtype is torch.float64):
        cache = model(token_ids, **named)[name]
    return {f"{STATE_PREFIX}{role}": state for role, state in states_after(cache, context, 1).items()}


def _pin_routes(pins: list[dict[str, Tensor]], graph: Graph, routes: Sequence[Route], dtype: torch.dtype) -> None:
    """Add for every step the ids and weights of experts that eager chose, by the names of the graph's values."""
    each = max(1, len(routes) // len(pins))
    names = _routed_values(graph)
    for place, route in enumerate(routes):
        ids, weights = names.get(route.module, (None, None))
        if ids is not None:
            pins[place // each][ids] = route.ids
        if weights is not None:
            pins[place // each][weights] = route.weights.to(dtype)


def _pin_selections(pins: list[dict[str, Tensor]], graph: Graph, selections: Sequence[tuple[str, Tensor]]) -> None:
    """Add for every step the tokens that eager's indexers chose, by the names of the graph's values."""
    each = max(1, len(selections) // len(pins))
    shapes = {op.name: op.results[0].type.shape for op in graph.ops if op.kind is OpKind.SELECT}
    for place, (module, chosen) in enumerate(selections):
        name = f"{module}.selected"
        if name in shapes:
            missing = shapes[name][2] - chosen.shape[2]
            pins[place // each][name] = nn.functional.pad(chosen, (0, missing), value=-1)


def _routed_values(graph: Graph) -> dict[str, tuple[str, str | None]]:
    """Return for every module of experts the values that hold the ids and the weights of those chosen."""
    found: dict[str, tuple[str, str | None]] = {}
    for op in graph.ops:
        if op.kind in ROUTED:
            module = op.inputs[ROUTED[op.kind]].rpartition(".")[0]
            weights = op.inputs[2] if op.kind is OpKind.EXPERTS else _weights_beside(graph, op)
            found[module] = (op.inputs[1], weights)
    return found


def _weights_beside(graph: Graph, routed: Op) -> str | None:
    """Return the weights [B, top_k] that the reader of a routed linear multiplies its result with, if it reads one."""
    shape, types = (routed.results[0].type.shape[0], routed.integer("top_k")), graph.types()
    for op in graph.ops:
        if op.kind is OpKind.COMPUTE and routed.name in op.inputs:
            weights = [name for name in op.inputs if types[name].shape == shape and types[name].dtype.is_float]
            return weights[0] if len(weights) == 1 else None
    return None
