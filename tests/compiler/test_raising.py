"""Is what raising understands raised by its structure, and everything else kept as what it computes?"""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from compiler.frontend import capture, import_model
from compiler.graph import OpKind
from compiler.graph_text import parse_graph
from compiler.interpreter import execute
from compiler.raising import marks
from compiler.raising.assemble import Raised, raise_program
from compiler.raising.exporting import export_step
from compiler.unmatched import unmatched_of
from compiler.verify import verify
from configs.errors import UserError
from configs.model_config import load_model_config
from tests.tiny_models import CONTEXT, tiny_config


class Step(nn.Module):
    """A step that embeds, applies `body` to [B, 1, width] and samples, to try one expression at a time."""

    def __init__(self, body: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.weight = nn.Parameter(torch.ones(8))
        self.body = body

    def forward(self, ids: Tensor) -> Tensor:
        x = self.body(self, self.table(ids).unsqueeze(1))
        return nn.functional.linear(x.squeeze(1), self.table.weight).argmax(-1)


def raised(step: nn.Module, *arguments: Tensor) -> Raised:
    arguments = (torch.zeros(3, dtype=torch.int64), *arguments)
    found = raise_program(export_step(step, arguments), "step")
    verify(found.graph)
    return found


def raised_kinds(body: Callable[[nn.Module, Tensor], Tensor]) -> list[OpKind]:
    return [op.kind for op in raised(Step(body)).graph.ops[1:-2]]


def test_a_norm_that_is_spelled_out_is_one_operator() -> None:
    def body(step: nn.Module, x: Tensor) -> Tensor:
        x = x.to(torch.float32)
        return step.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    assert raised_kinds(body) == [OpKind.NORM]


def test_a_gate_multiplied_from_the_left_is_recognised() -> None:
    assert raised_kinds(lambda step, x: x * nn.functional.silu(x)) == [OpKind.GATED_ACTIVATION]


def test_transposing_axes_of_length_one_is_no_operator() -> None:
    assert raised_kinds(lambda step, x: x.transpose(1, 2).reshape(3, 1, 8) + x) == [OpKind.ADD]


@pytest.mark.parametrize(
    "body",
    [
        lambda step, x: x.sin(),
        lambda step, x: x + 1.0,
        lambda step, x: x + step.weight,
        lambda step, x: x.view(3, 2, 4).transpose(1, 2).reshape(3, 1, 8),
        lambda step, x: torch.add(x, x, alpha=2.0),
        lambda step, x: nn.functional.rms_norm(x, (8,), step.weight),
        lambda step, x: (x + x.transpose(0, 1)).sum(1, keepdim=True),
        lambda step, x: x.to(torch.int64).to(torch.float32),
        lambda step, x: x.mul_(2.0),
    ],
)
def test_what_has_no_operator_of_its_own_is_a_computation_that_gives_the_same(
    body: Callable[[nn.Module, Tensor], Tensor],
) -> None:
    step = Step(body)
    with torch.no_grad():
        step.table.weight.copy_(torch.randn(11, 8, generator=torch.Generator().manual_seed(0)) * 3)
    graph = raised(step).graph
    assert OpKind.COMPUTE in {op.kind for op in graph.ops}
    assert not unmatched_of(graph, {})
    ids = torch.tensor([1, 5, 7])
    values = execute(graph, {"ids": ids}, dict(step.named_parameters()), torch.float32)
    expected = nn.functional.linear(body(step, step.table(ids).unsqueeze(1)).squeeze(1), step.table.weight)
    torch.testing.assert_close(values[graph.ops[-1].inputs[0]], expected)


def test_a_matrix_that_is_read_by_no_operator_is_counted_with_its_source_line() -> None:
    def body(step: nn.Module, x: Tensor) -> Tensor:
        return x * (x.mean() * step.table.weight).sum(0)

    found = raised(Step(body))
    (item,) = unmatched_of(found.graph, found.sources)
    assert item.moved_bytes == 11 * 8 * 4
    assert "sum" in item.calls
    assert "test_raising.py" in item.source


def test_a_vector_for_every_head_is_no_matrix() -> None:
    assert not unmatched_of(raised(Step(lambda step, x: x * step.weight.view(2, 4).exp().view(8))).graph, {})


def test_a_matrix_times_a_column_is_a_linear() -> None:
    def body(step: nn.Module, x: Tensor) -> Tensor:
        return torch.matmul(step.square, x.transpose(1, 2)).transpose(1, 2)

    step = Step(body)
    step.square = nn.Parameter(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))
    assert_same_logits(step, OpKind.LINEAR)


@pytest.mark.parametrize("shape", [(6, 4, 8), (24, 8)])
def test_a_stack_of_matrices_may_be_stored_as_one(shape: tuple[int, ...]) -> None:
    def body(step: nn.Module, x: Tensor) -> Tensor:
        ids = torch.topk(x.squeeze(1)[:, :6], 2).indices
        return marks.routed_linear(x, ids, step.stack.view(6, 4, 8), None, False).view(-1, 1, 8)

    step = Step(body)
    step.stack = nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    assert_same_logits(step, OpKind.ROUTED_LINEAR)


@pytest.mark.parametrize("shape", [(2, 4, 4), (8, 4)])
def test_matrices_of_heads_may_be_stored_as_a_stack(shape: tuple[int, ...]) -> None:
    def body(step: nn.Module, x: Tensor) -> Tensor:
        return marks.head_linear(x.view(-1, 2, 1, 4), step.stack.view(8, 4), 0, 4, False).view(-1, 1, 8)

    step = Step(body)
    step.stack = nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    assert_same_logits(step, OpKind.HEAD_LINEAR)


def assert_same_logits(step: Step, kind: OpKind) -> None:
    """Assert that a step has an operator of a kind, leaves nothing unmatched and computes what the module does."""
    graph = raised(step).graph
    assert kind in [op.kind for op in graph.ops[1:-2]]
    assert not unmatched_of(graph, {})
    ids = torch.tensor([1, 5, 7])
    values = execute(graph, {"ids": ids}, dict(step.named_parameters()), torch.float32)
    expected = nn.functional.linear(step.body(step, step.table(ids).unsqueeze(1)).squeeze(1), step.table.weight)
    torch.testing.assert_close(values[graph.ops[-1].inputs[0]], expected, rtol=1e-4, atol=1e-4)


def test_a_cache_write_that_no_attention_reads_is_counted() -> None:
    class Writes(Step):
        def forward(self, ids: Tensor, position: Tensor, cache: Tensor) -> Tensor:
            cache.index_copy_(2, position, self.table(ids).view(-1, 1, 1, 8))
            return super().forward(ids)

    found = raised(Writes(lambda step, x: x), torch.zeros(1, dtype=torch.int64), torch.zeros(3, 1, 4, 8))
    (item,) = unmatched_of(found.graph, found.sources)
    assert item.moved_bytes == 3 * 4 * 8 * 4


def test_a_choice_within_parts_of_the_vocabulary_is_no_sample() -> None:
    class Splits(Step):
        def forward(self, ids: Tensor) -> Tensor:
            return self.table(ids).view(6, 4).argmax(-1)

    assert OpKind.SAMPLE not in {op.kind for op in raised(Splits(lambda step, x: x)).graph.ops}


def test_the_window_is_read_from_the_mask() -> None:
    graph = import_model(tiny_config("mistral"), 1, CONTEXT)
    assert {op.integer("window") for op in graph.ops if op.kind is OpKind.ATTENTION} == {6}


def test_the_frequency_scaling_is_read_from_the_program() -> None:
    graph = import_model(replace(load_model_config("llama"), layers=1), 1, CONTEXT)
    rotary = next(op for op in graph.ops if op.kind is OpKind.ROTARY)
    assert rotary.attributes[2:] == (
        ("theta", 500000.0),
        ("scaling", "llama3"),
        ("factor", 8.0),
        ("low_frequency_factor", 1.0),
        ("high_frequency_factor", 4.0),
        ("original_context", 8192),
    )


def test_tied_embeddings_are_one_weight_read_by_two_operators() -> None:
    graph = import_model(tiny_config("llama-tied"), 1, CONTEXT)
    readers = [op.kind for op in graph.ops if "lm_head.weight" in op.inputs]
    assert readers == [OpKind.EMBEDDING, OpKind.LINEAR]
    assert "model.embed_tokens.weight" not in graph.types()


def test_capture_allocates_no_weights() -> None:
    program = capture(tiny_config("llama"), 1, CONTEXT)
    assert {parameter.device.type for parameter in program.parameters()} == {"meta"}


@pytest.mark.parametrize(
    ("batch", "context", "dtype", "where"),
    [(0, 4, "bf16", "batch"), (1, 0, "bf16", "context"), (1, 65, "bf16", "context"), (1, 4, "int3", "dtype")],
)
def test_a_scenario_that_cannot_be_is_refused(batch: int, context: int, dtype: str, where: str) -> None:
    with pytest.raises(UserError) as caught:
        import_model(tiny_config("llama"), batch, context, dtype)
    assert caught.value.where == where


BUFFER_GRAPH = """graph buffers
input %token_ids : i64[1]
input %position : i64[1]
input %state : bf16[1,8]
weight %kernel : bf16[16,16]
constant %table : bf16[64,64]
constant %rows : bf16[64,64]
%state2 : bf16[1,8] = recurrence(%state, %kernel) {role="state_space", states=1, body="RECURRENCE"}
%x : bf16[1,64] = compute(%position, %table) {role="other", body="PRODUCT"}
%y : bf16[1,64] = compute(%position, %rows) {role="other", body="LOOKUP"}
output %state2
"""
BODIES = {
    "RECURRENCE": "t0 = aten.sum.default($1); t1 = aten.mul.Tensor($0, t0); return t1",
    "PRODUCT": "t0 = aten.unsqueeze.default($0, 0); t1 = aten._to_copy.default(t0, dtype=bf16); "
    "t2 = aten.expand.default(t1, [1, 64]); t3 = aten.mm.default(t2, $1); return t3",
    "LOOKUP": "t0 = aten.index.Tensor($1, [$0]); return t0",
}


def test_matrices_inside_of_recurrences_and_buffers_are_counted_unless_a_row_is_looked_up() -> None:
    text = BUFFER_GRAPH
    for name, body in BODIES.items():
        text = text.replace(name, body)
    found = {item.op: item.moved_bytes for item in unmatched_of(parse_graph(text), {})}
    assert found == {"state2": 2 * 16 * 16, "x": 2 * 64 * 64}
