"""Do types whose attention or experts are captured in another form still compute what transformers computes?

Few steps of tiny random models in float64, past the windows and chunks of the types that have them.
"""

from functools import lru_cache

import pytest

pytest.importorskip("transformers")

import torch

from compiler.graph import Graph, OpKind
from compiler.huggingface.capture import build, capture
from compiler.huggingface.reference import decode_reference
from compiler.huggingface.tiny import random_model, tiny_config
from compiler.interpreter import execute, next_states
from compiler.passes import run_passes
from compiler.raising.assemble import Raised, raise_program
from compiler.unmatched import unmatched_of

BATCH, STEPS, CONTEXT = 2, 18, 20
LARGEST_DIFFERENCE = 1e-9  # relative to the largest logit; float64 gives 1e-15, a wrong window 1e-2

# Each with how many of its operators are attentions and routed linears.
TYPES = {
    "bloom": (2, 0),
    "dbrx": (2, 6),
    "diffllama": (2, 0),
    "gpt_neo": (2, 0),
    "gpt_neox_japanese": (2, 0),
    "jetmoe": (2, 8),
    "llama4_text": (4, 4),
    "longcat_flash": (4, 4),
    "mpt": (2, 0),
    "xglm": (2, 0),
    "zamba": (2, 0),
}


@lru_cache
def raised(model_type: str) -> Raised:
    model = build(tiny_config(model_type), torch.float64)
    return raise_program(capture(model, BATCH, CONTEXT), model_type, "model.")


def largest_difference(found: Raised, graph: Graph, model_type: str) -> float:
    model = random_model(tiny_config(model_type), 0, torch.float64)
    ids = torch.randint(0, 100, (BATCH, STEPS), generator=torch.Generator().manual_seed(1))
    expected = decode_reference(model, ids)
    held = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    weights = {
        one.name: held[one.name] if one.name in held else found.constants[one.name]
        for one in (*graph.weights, *graph.constants)
    }
    states = {one.name: torch.zeros(one.type.shape, dtype=torch.float64) for one in graph.inputs[2:]}
    logits = next(op.inputs[0] for op in graph.ops if op.kind is OpKind.SAMPLE)
    differences = []
    for step in range(STEPS):
        inputs = {graph.inputs[0].name: ids[:, step], graph.inputs[1].name: torch.tensor([step]), **states}
        values = execute(graph, inputs, weights)
        states |= next_states(graph, values)
        differences.append((values[logits] - expected[:, step]).abs().max() / expected[:, step].abs().max())
    return float(torch.stack(differences).max())


@pytest.mark.slow
@pytest.mark.parametrize("model_type", TYPES)
def test_a_type_is_exact_and_nothing_memory_bound_is_left(model_type: str) -> None:
    found = raised(model_type)
    graph = run_passes(found.graph)
    attentions, routed = TYPES[model_type]
    kinds = [op.kind for op in graph.ops]
    assert kinds.count(OpKind.ATTENTION) + kinds.count(OpKind.LATENT_ATTENTION) == attentions
    assert kinds.count(OpKind.ROUTED_LINEAR) == routed
    assert not unmatched_of(graph, found.sources)
    assert largest_difference(found, graph, model_type) < LARGEST_DIFFERENCE


def test_a_local_layer_reads_its_window_only() -> None:
    graph = raised("gpt_neo").graph
    windows = [op.integer("window") for op in graph.ops if op.kind is OpKind.ATTENTION]
    assert windows == [0, tiny_config("gpt_neo").window_size]


def test_differential_attention_reads_every_cache_once() -> None:
    graph, config = raised("diffllama").graph, tiny_config("diffllama")
    attention = next(op for op in graph.ops if op.kind is OpKind.ATTENTION)
    held = 2 * attention.integer("kv_heads") * attention.integer("head_dim")
    assert held == 2 * config.num_key_value_heads * config.head_dim
