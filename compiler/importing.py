"""Any model by what the user calls it: a built-in name, a configuration or checkpoint folder, or a factory of modules.

    built-in model, or a configuration of its families   modules of our own, no further library
    another HuggingFace configuration                    transformers' model, captured by `compiler.huggingface`
    PACKAGE.MODULE:FACTORY                               FACTORY(batch, context) -> (module, example arguments)

A module of a factory takes token ids [B], the position [1] and then its caches and states, and returns logits or ids
and, unless it changes them in place, the states after the step.
"""

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import nn
from torch.export import ExportedProgram

from compiler.frontend import capture
from compiler.graph import Graph
from compiler.passes import run_passes
from compiler.raising.assemble import Raised, raise_program
from compiler.raising.exporting import export_step
from configs.errors import UserError
from configs.model_config import ModelConfig, config_fields, is_built_in_family, load_model_config


@dataclass(frozen=True, slots=True)
class Captured:
    """An exported decode step, what its model is called, and the prefix that its modules' names lose."""

    name: str
    program: ExportedProgram
    prefix: str = ""

    def raised(self) -> Raised:
        """Return what raising makes of it."""
        return raise_program(self.program, self.name, self.prefix)


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """The canonical graph of a model's decode step, and where its bodies were traced from."""

    name: str
    graph: Graph
    sources: Mapping[str, str]


def import_named(model: str, batch: int, context: int, dtype: str = "bf16") -> ImportedModel:
    """Return the verified graph of a model; raises UserError for one that is not known or cannot be captured."""
    captured = capture_named(model, batch, context, dtype)
    raised = captured.raised()
    return ImportedModel(captured.name, run_passes(raised.graph), raised.sources)


def capture_named(model: str, batch: int, context: int, dtype: str = "bf16") -> Captured:
    """Return the exported decode step of a model; no weights are allocated."""
    if ":" in model and not Path(model).exists():
        return Captured(_one_line(model), _factory_step(model, batch, context))
    config = built_in_config(model)
    if config is not None:
        return Captured(config.name, capture(config, batch, context, dtype))
    fields = config_fields(model)
    try:
        from compiler.huggingface.models import capture_config
    except ImportError as error:
        raise UserError(
            where=f"model {model}",
            expected="a model of a built-in family, or transformers to make others",
            found=f"model_type {fields.values.get('model_type')!r} and {error}",
            way_out="pip install 'pim-explore[hf]'",
        ) from error
    return capture_config(fields, batch, context, dtype)


def built_in_config(model: str) -> ModelConfig | None:
    """Return the configuration of a model that we build ourselves, or None for what transformers is needed for."""
    fields = config_fields(model)
    return load_model_config(model) if is_built_in_family(fields) else None


def _factory_step(text: str, batch: int, context: int) -> ExportedProgram:
    module_name, _, name = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        factory = getattr(importlib.import_module(module_name), name)
        made = factory(batch, context)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise UserError(
            where=f"model {text}",
            expected="PACKAGE.MODULE:FACTORY that can be imported from here",
            found=str(error),
            way_out="run from the folder that holds the package, or install it",
        ) from error
    finally:
        sys.path.pop(0)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], nn.Module)):
        raise UserError(
            where=f"model {text}",
            expected="(module, example arguments) from the factory, called with batch and context",
            found=type(made).__name__,
            way_out="see compiler/importing.py for what a step takes and returns",
        )
    module, arguments = made
    return export_step(module.eval().requires_grad_(False), tuple(arguments))


def _one_line(text: str) -> str:
    return "".join(one if one.isalnum() or one in "_.-" else "." for one in text)
