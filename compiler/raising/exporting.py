"""Exports a module's step as a functional program: no call of it changes what it is given."""

import warnings
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram


def export_step(module: nn.Module, arguments: tuple[Any, ...]) -> ExportedProgram:
    """Return the exported program of a module on example arguments, in which operators are kept whole."""
    with warnings.catch_warnings():
        # Torch uses some of its own deprecated classes.
        warnings.simplefilter("ignore", FutureWarning)
        return torch.export.export(module, arguments, strict=False).run_decompositions({})
