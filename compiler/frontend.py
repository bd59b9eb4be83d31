"""The way in: a model configuration becomes a graph, by exporting a decode step of the full-size model without weights.

`import_model` = build the module on the meta device, `torch.export`, raise the ATen program, run the passes.
"""

import torch
from torch.export import ExportedProgram

from compiler.architectures import LanguageModel
from compiler.body_execution import TORCH_TYPES
from compiler.graph import Graph
from compiler.passes import run_passes
from compiler.raising.assemble import raise_program
from compiler.raising.exporting import export_step
from configs.errors import UserError
from configs.model_config import ModelConfig


def import_model(config: ModelConfig, batch: int, context: int, dtype: str = "bf16") -> Graph:
    """Return the verified, canonical graph of one decode step at `context` tokens, the current one included.

    `dtype` is the format of weights, activations and caches: bf16, f16, f32 or f64. Raises UserError on values that
    cannot be used and on operators that cannot be raised.
    """
    return run_passes(raise_program(capture(config, batch, context, dtype), config.name).graph)


def capture(config: ModelConfig, batch: int, context: int, dtype: str = "bf16") -> ExportedProgram:
    """Return the exported decode step of the full-size model on the meta device; no weights are allocated."""
    _check_scenario(config, batch, context, dtype)
    torch_type = {str(name): torch_type for torch_type, name in TORCH_TYPES.items()}[dtype]
    with torch.device("meta"):
        model = LanguageModel(config).to(torch_type).requires_grad_(False)
        shape = (batch, config.kv_heads, context, config.head_dim)
        keys = [torch.empty(shape, dtype=torch_type) for _ in range(config.layers)]
        values = [torch.empty(shape, dtype=torch_type) for _ in range(config.layers)]
        arguments = (torch.empty(batch, dtype=torch.int64), torch.empty(1, dtype=torch.int64), keys, values)
    return export_step(model, arguments)


def _check_scenario(config: ModelConfig, batch: int, context: int, dtype: str) -> None:
    if batch < 1:
        raise UserError(where="batch", expected="at least 1", found=str(batch), way_out="give a positive batch")
    if not 1 <= context <= config.maximum_context:
        raise UserError(
            where="context",
            expected=f"1 to {config.maximum_context} tokens for {config.name}",
            found=str(context),
            way_out="give a context within what the model was trained for",
        )
    formats = [str(name) for name in TORCH_TYPES.values() if name.is_float]
    if dtype not in formats:
        raise UserError(
            where="dtype", expected=f"one of {', '.join(formats)}", found=repr(dtype), way_out="give one of these"
        )
