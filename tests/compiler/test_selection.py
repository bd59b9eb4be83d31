"""Sparse attention: which tokens an indexer selects, what attention to them means and what it reads."""

import torch
from torch import Tensor, nn

from compiler.graph import Attribute, Graph, Op, OpKind, make_attributes
from compiler.graph_text import parse_graph, print_graph
from compiler.interpreter import execute, next_states
from compiler.raising import marks, selection_marks
from compiler.raising.assemble import raise_program
from compiler.raising.exporting import export_step
from compiler.signatures import SIGNATURES
from compiler.traffic import attended_tokens, traffic_of
from compiler.unmatched import unmatched_of
from compiler.verify import verify
from tests.compiler.test_interpreter import run

HEADS, WIDTH, CONTEXT, SELECTED = 2, 4, 12, 3

TEXT = """graph sparse
input %token_ids : i64[1]
input %position : i64[1]
input %index : bf16[1,1,64,8]
input %latents : bf16[1,1,64,16]
input %keys : bf16[1,1,64,4]
input %q : bf16[1,16]
input %w : bf16[1,2]
input %k : bf16[1,8]
input %x : bf16[1,32]
input %r : bf16[1,8]
input %c : bf16[1,16]
input %e : bf16[1,4]
%index2 : bf16[1,1,64,8] = index_append(%k, %index, %position) {width=8, context=64}
%ids : i64[1,1,6] = select(%q, %w, %index2, %position) {SELECT}
%latents2 : bf16[1,1,64,16], %keys2 : bf16[1,1,64,4] = kv_append(%c, %e, %latents, %keys, %position) {APPEND}
%a : bf16[1,32] = latent_attention(%x, %r, %latents2, %keys2, %position, %ids) {ATTENTION}
output %a
"""
TEXT = TEXT.replace("SELECT", "heads=2, width=8, context=64, selected=6, block=1, local=0, scale=0.5, weighted=true")
TEXT = TEXT.replace("APPEND", "kv_heads=1, head_dim=16, context=64, value_dim=4")
TEXT = TEXT.replace("ATTENTION", "heads=2, latent=16, rotary=4, context=64, window=0, scale=0.5, selected=6")


class Indexer(nn.Module):
    """Scores an index cache as DeepSeek does and attends to the tokens it selects."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, HEADS * WIDTH, bias=False)
        self.weight = nn.Linear(8, HEADS, bias=False)
        self.key = nn.Linear(8, WIDTH, bias=False)

    def forward(
        self, ids: Tensor, position: Tensor, index: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x = (ids.unsqueeze(1) + torch.arange(8)).to(torch.float64).cos() + 2
        index = marks.append(index, self.key(x).reshape(-1, 1, 1, WIDTH), position)
        query = self.query(x).reshape(-1, 1, HEADS, WIDTH)
        scores = (torch.matmul(query, index.squeeze(1).transpose(-1, -2).unsqueeze(1)) * 0.5).relu()
        mask = torch.arange(CONTEXT).le(position).expand(len(x), 1, 1, CONTEXT)
        summed = torch.matmul(self.weight(x).unsqueeze(1).unsqueeze(-2), scores).squeeze(-2)
        chosen = summed.masked_fill(~mask[:, 0], -torch.inf).topk(SELECTED).indices.to(torch.int32)
        keys = marks.append(keys, x.reshape(-1, HEADS, 1, WIDTH), position)
        values = marks.append(values, x.reshape(-1, HEADS, 1, WIDTH), position)
        seen = selection_marks.chosen(mask, chosen.long(), 1)
        attended = marks.attention(query.transpose(1, 2), keys, values, seen, None, None, 0.5, 0.0)
        return attended.flatten(1), index, keys, values


def op(kind: OpKind, *attributes: Attribute) -> Op:
    return Op(kind, (), (), make_attributes(kind, *attributes))


def raised_indexer(module: Indexer, batch: int) -> Graph:
    caches = [torch.zeros(batch, heads, CONTEXT, WIDTH, dtype=torch.float64) for heads in (1, HEADS, HEADS)]
    arguments = (torch.zeros(batch, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), *caches)
    raised = raise_program(export_step(module, arguments), "indexer")
    verify(raised.graph)
    assert unmatched_of(raised.graph, raised.sources) == ()
    return raised.graph


def test_an_indexer_and_its_attention_are_raised_and_computed_as_the_module_does() -> None:
    torch.manual_seed(0)
    module = Indexer().double().requires_grad_(False)
    for parameter in module.parameters():
        parameter.abs_()  # scores above zero: among equal ones anything may be selected
    graph = raised_indexer(module, batch=2)
    assert [one.kind for one in graph.ops].count(OpKind.SELECT) == 1
    assert next(one for one in graph.ops if one.kind is OpKind.ATTENTION).integer("selected") == SELECTED
    weights = dict(module.named_parameters()) | dict.fromkeys(one.name for one in graph.constants)
    states = {one.name: torch.zeros(one.type.shape, dtype=torch.float64) for one in graph.inputs[2:]}
    held = list(states.values())
    for step in range(CONTEXT):
        ids, position = torch.tensor([step, 7 * step]), torch.tensor([step])
        expected, *held = module(ids, position, *held)
        values = execute(graph, {graph.inputs[0].name: ids, graph.inputs[1].name: position, **states}, weights)
        states |= next_states(graph, values)
        assert torch.allclose(values[graph.outputs[0]], expected, rtol=1e-12, atol=1e-12)


def test_weighted_heads_agree_on_the_tokens_with_the_largest_sums() -> None:
    keys = torch.tensor([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0], [-9.0, 0.0], [9.0, 9.0]]).reshape(1, 1, 5, 2)
    query, weights = torch.tensor([[1.0, 0.0, 0.0, 1.0]]), torch.tensor([[1.0, 2.0]])
    # The token at 3 scores 0, for a negative score counts as none; the one at 4 lies behind the position.
    (ids,) = run(OpKind.SELECT, [query, weights, keys, torch.tensor([3])], 2, 2, 5, 2, 1, 0, 1.0, True)
    assert sorted(ids.flatten().tolist()) == [1, 2]


def test_heads_choose_blocks_of_their_own_and_always_the_newest() -> None:
    keys = torch.tensor([5.0, 0.0, -7.0, 0.0, 1.0, 0.0, 0.0, 0.0]).reshape(1, 1, 8, 1)
    query = torch.tensor([[1.0, -1.0]])
    (ids,) = run(OpKind.SELECT, [query, keys, torch.tensor([6])], 2, 1, 8, 2, 2, 1, 1.0, False)
    assert [sorted(row) for row in ids[0].tolist()] == [[0, 3], [1, 3]]


def test_fewer_tokens_than_are_selected_leave_places_empty() -> None:
    operands = [torch.ones(1, 1), torch.ones(1, 1, 6, 1), torch.tensor([1])]
    (ids,) = run(OpKind.SELECT, operands, 1, 1, 6, 4, 1, 0, 1.0, False)
    assert sorted(ids.flatten().tolist()) == [-1, -1, 0, 1]


def test_attention_averages_over_the_chosen_tokens_only() -> None:
    values = torch.tensor([0.0, 2.0, 4.0, 8.0, 100.0]).reshape(1, 1, 5, 1)
    ids = torch.tensor([[[0, 2, 4]]])
    operands = [torch.zeros(1, 1), torch.zeros(1, 1, 5, 1), values, torch.tensor([3]), ids]
    more = (0, 0, 0.0, False, False, 3)
    assert run(OpKind.ATTENTION, operands, 1, 1, 1, 5, 0, 1.0, *more)[0].item() == 2.0


def test_a_sparse_step_reads_the_whole_index_and_the_chosen_latents() -> None:
    graph = parse_graph(TEXT)
    verify(graph)
    assert parse_graph(print_graph(graph)) == graph
    index, chosen = 64 * 8 * 2, 6 * (16 + 4) * 2
    assert traffic_of(graph).kv_read_bytes_per_token == index + chosen


def test_a_selection_of_the_whole_context_reads_it_once() -> None:
    attention = op(OpKind.LATENT_ATTENTION, 2, 16, 4, 64, 0, 0.5, False, 64, 1, 1)
    assert attended_tokens(attention) == 64


def test_ids_have_a_row_for_every_selector() -> None:
    select = op(OpKind.SELECT, 4, 16, 80, 2, 8, 1, 1.0, False)
    assert SIGNATURES[OpKind.SELECT](select, 3)[1][0].shape == (3, 4, 2)


def test_a_bias_of_each_sequence_is_added_to_its_own_scores() -> None:
    values = torch.tensor([1.0, 2.0, 3.0]).reshape(1, 1, 3, 1).expand(2, 1, 3, 1)
    bias = torch.tensor([[[100.0, 0.0, 0.0]], [[0.0, 0.0, 100.0]]])
    operands = [torch.zeros(2, 1), torch.zeros(2, 1, 3, 1), values, torch.tensor([2]), bias]
    more = (0, 0, 0.0, False, True, 0, 1, 1, True)
    assert run(OpKind.ATTENTION, operands, 1, 1, 1, 3, 0, 1.0, *more)[0].flatten().tolist() == [1.0, 3.0]
