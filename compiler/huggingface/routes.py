"""Records which experts every layer chose, and pins a later run to them, through transformers' experts interface.

Two runs whose rounding differs may choose different experts where two router scores are close, and then differ by
far more than rounding; pinned to one choice they can be compared. Types whose experts do not pass through the
interface (dbrx, jetmoe, llama4_text, longcat_flash) record nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

# The name under which our function stands in the interface while a context below is open.
IMPLEMENTATION = "routes"

ExpertsForward = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Route:
    """What one call of one experts module was given: ids[tokens, top_k] and weights[tokens, top_k]."""

    module: str
    ids: Tensor
    weights: Tensor


@contextmanager
def recorded_routes(model: PreTrainedModel) -> Iterator[list[Route]]:
    """Yield a list that grows by one route at every call of an experts module, in call order."""
    routes: list[Route] = []
    names = {module: name for name, module in model.named_modules()}

    def forward(experts: nn.Module, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        routes.append(Route(names[experts], ids.clone(), weights.clone()))
        return _own_forward(experts, x, ids, weights)

    with _experts_forward(model, forward):
        yield routes


@contextmanager
def pinned_routes(model: PreTrainedModel, routes: Sequence[Route]) -> Iterator[None]:
    """Run the body with the recorded routes in place of the model's own; ValueError on another order of calls."""
    remaining = iter(routes)
    names = {module: name for name, module in model.named_modules()}

    def forward(experts: nn.Module, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        route = next(remaining, None)
        if route is None or route.module != names[experts]:
            raise ValueError(f"expected a route of {names[experts]}, found {route and route.module}")
        return _own_forward(experts, x, route.ids, route.weights.to(weights.dtype))

    with _experts_forward(model, forward):
        yield


def dispatched_experts(model: nn.Module) -> tuple[nn.Module, ...]:
    """Return the modules whose experts pass through the interface, in the order of the model."""
    return tuple(module for module in model.modules() if hasattr(module, "_is_expert_parallel"))


def _own_forward(experts: nn.Module, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
    own: Any = type(experts).forward
    result: Tensor = own.__wrapped__(experts, x, ids, weights)
    return result


@contextmanager
def _experts_forward(model: PreTrainedModel, forward: ExpertsForward) -> Iterator[None]:
    configs: list[Any] = [module.config for module in dispatched_experts(model)]
    before = [config._experts_implementation for config in configs]
    ALL_EXPERTS_FUNCTIONS[IMPLEMENTATION] = forward
    try:
        for config in configs:
            config._experts_implementation = IMPLEMENTATION
        yield
    finally:
        for config, implementation in zip(configs, before, strict=True):
            config._experts_implementation = implementation
        ALL_EXPERTS_FUNCTIONS.pop(IMPLEMENTATION)
