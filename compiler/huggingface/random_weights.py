"""Seeded random parameters that leave nothing trivial: no norm of ones, no zero bias, no router that cannot decide."""

import math
import re

import torch
from torch import Tensor, nn

# Matrices are N(0, 1 / n) for the smaller n of their sides, which is the fan-in or close to it in a tiny model whether
# they are stored as [out, in] or [in, out], so that activations stay of order one. Router logits are spread further, so
# that rounding does not change which experts are chosen.
ROUTER_GAIN = 3.0
# Vectors (norms, biases, decays, sinks) and other structured parameters keep the type's own value, plus this deviation.
JITTER = 0.2

ROUTERS = re.compile(r".*(router|gate|gate\.wg|router\.classifier|router\.layer|router\.proj)\.weight")
STRUCTURED = re.compile(r".*(A_log|dt_bias|dt_proj\.bias|time_decay|time_first|decay|conv1d.*|lambda_.*)")
ROUTER_BIASES = re.compile(r".*(correction_bias|expert_bias|router.*bias|gate.*bias|balancing_biases)")
# Fixed tables from tokens to experts (deepseek_v4's first layers), which a checkpoint would bring.
TOKEN_ROUTES = re.compile(r".*tid2eid")
FILLED_BUFFERS = re.compile(f"{ROUTER_BIASES.pattern}|{TOKEN_ROUTES.pattern}")
# Bounds of the number of experts of a tiny model; a larger matrix named like a router is an ordinary gate.
FEWEST_EXPERTS, MOST_EXPERTS = 8, 16


@torch.no_grad()
def fill(model: nn.Module, seed: int) -> None:
    """Give every parameter, every buffer that biases a router and every table of routes a value drawn from `seed`."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        parameter.copy_(_random_value(name, parameter, generator))
    for name, buffer in model.named_buffers():
        if ROUTER_BIASES.fullmatch(name) and buffer.is_floating_point():
            buffer.add_(JITTER * _normal(buffer, generator))
        if TOKEN_ROUTES.fullmatch(name):
            buffer.copy_(torch.rand(len(buffer), FEWEST_EXPERTS, generator=generator).argsort()[:, : buffer.shape[1]])


@torch.no_grad()
def copy_filled(source: nn.Module, target: nn.Module) -> None:
    """Give `target` what `fill` gave `source`; other buffers, such as tables of decays, keep the target's precision."""
    values: dict[str, Tensor] = {**dict(source.named_parameters())}
    values |= {name: buffer for name, buffer in source.named_buffers() if FILLED_BUFFERS.fullmatch(name)}
    for name, tensor in (*target.named_parameters(), *target.named_buffers()):
        if name in values:
            tensor.copy_(values[name])


def _random_value(name: str, parameter: Tensor, generator: torch.Generator) -> Tensor:
    noise = _normal(parameter, generator)
    if parameter.squeeze().dim() < 2 or STRUCTURED.fullmatch(name):
        return parameter.nan_to_num() + JITTER * noise
    if ROUTERS.fullmatch(name) and parameter.shape[0] <= MOST_EXPERTS:
        return noise * (ROUTER_GAIN / math.sqrt(parameter.shape[-1]))
    return noise / math.sqrt(min(parameter.shape[-2:]))


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like.dtype)
