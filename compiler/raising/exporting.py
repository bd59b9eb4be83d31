"""Exports a module's step as a functional program: no call changes what it is given, and every call has a value."""

import warnings
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

# Calls without a value: checks that the exporter adds.
NOISE = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size")


def export_step(module: nn.Module, arguments: tuple[Any, ...]) -> ExportedProgram:
    """Return the exported program of a module on example arguments, in which operators are kept whole."""
    with warnings.catch_warnings():
        # Torch uses some of its own deprecated classes.
        warnings.simplefilter("ignore", FutureWarning)
        exported: ExportedProgram = torch.export.export(module, arguments, strict=False)
        program: ExportedProgram = exported.run_decompositions({})
    for node in reversed(program.graph.nodes):
        if node.op == "call_function" and not node.users and any(name in str(node.target) for name in NOISE):
            program.graph.erase_node(node)
    return program
