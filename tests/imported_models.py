"""Graphs of tiny HuggingFace models, imported once for all tests of a run; they need transformers."""

from functools import cache

import torch

from compiler.graph import Graph
from compiler.huggingface.capture import build, capture
from compiler.huggingface.tiny import tiny_config
from compiler.passes import run_passes
from compiler.raising.assemble import raise_program
from compiler.tasks import tasks_of
from compiler.workload import BF16_THROUGHOUT, StoredFormats, Workload, workload_of

CONTEXT = 80


@cache
def imported_graph(model_type: str, batch: int = 1) -> Graph:
    exported = capture(build(tiny_config(model_type), torch.bfloat16), batch, CONTEXT)
    return run_passes(raise_program(exported, model_type, "model.").graph)


@cache
def imported_workload(model_type: str, batch: int = 1, formats: StoredFormats = BF16_THROUGHOUT) -> Workload:
    return workload_of(tasks_of(imported_graph(model_type, batch)), model_type, batch, CONTEXT, formats)
