"""Attention in parts: is a softmax over two caches that over each, joined by the sums that come with them?"""

import torch
from torch import Tensor, nn

from compiler.graph import OpKind
from compiler.interpreter import execute, next_states
from compiler.raising import marks
from compiler.raising.assemble import raise_program
from compiler.raising.exporting import export_step
from compiler.raising.partial_marks import partial_attention, select_entries
from compiler.unmatched import unmatched_of
from compiler.verify import verify

HEADS, WIDTH, CONTEXT, RATE, WINDOW, SELECTED = 4, 8, 12, 3, 2, 2


class TwoCaches(nn.Module):
    """Attends to a window of tokens, and to two of the entries that stand for three tokens each; there is one sink."""

    def __init__(self) -> None:
        super().__init__()
        self.sinks = nn.Parameter(torch.linspace(-1, 1, HEADS, dtype=torch.float64))

    def forward(
        self,
        ids: Tensor,
        position: Tensor,
        keys: Tensor,
        values: Tensor,
        entries: Tensor,
        others: Tensor,
        index: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        token = ((ids.view(-1, 1) + torch.arange(HEADS * WIDTH)) * 0.7).to(torch.float64).sin()
        query, one = token.view(-1, HEADS, 1, WIDTH), token[:, :WIDTH].reshape(-1, 1, 1, WIDTH)
        keys, values = marks.append(keys, one, position), marks.append(values, -one, position)
        place, last = position // RATE, (position + 1) // RATE - 1
        entries, others = marks.append(entries, one, place), marks.append(others, 2 * one, place)
        index = marks.append(index, one, place)
        chosen = select_entries(query.transpose(1, 2), query[:, :, :, 0].transpose(1, 2), index, last, SELECTED, 0.5)
        near, near_sum = partial_attention(query, keys, values, position, None, None, WINDOW, 0.5)
        far, far_sum = partial_attention(query, entries, others, last, chosen, self.sinks, 0, 0.5)
        share = torch.sigmoid(near_sum - far_sum).unsqueeze(-1)
        return (share * near + (1 - share) * far).flatten(1), keys, values, entries, others, index


def joint(module: TwoCaches, ids: Tensor, step: int, held: list[Tensor]) -> Tensor:
    """Return what one softmax over the window, the chosen entries and the sink gives, row by row."""
    keys, values, entries, others, index = held
    token = ((ids.view(-1, 1) + torch.arange(HEADS * WIDTH)) * 0.7).to(torch.float64).sin().view(-1, HEADS, WIDTH)
    ready, rows = (step + 1) // RATE, []
    for row, query in enumerate(token):
        scores = (0.5 * query @ index[row, 0, :ready].T).relu()
        chosen = (query[:, 0] @ scores).topk(min(SELECTED, ready)).indices
        tokens = slice(max(0, step + 1 - WINDOW), step + 1)
        all_keys = torch.cat((keys[row, 0, tokens], entries[row, 0, chosen]))
        all_values = torch.cat((values[row, 0, tokens], others[row, 0, chosen]))
        weights = torch.cat((0.5 * query @ all_keys.T, module.sinks.unsqueeze(-1)), dim=-1).softmax(-1)
        rows.append((weights[:, :-1] @ all_values).flatten())
    return torch.stack(rows)


def test_parts_joined_by_their_sums_are_one_softmax_even_where_no_entry_is_seen_yet() -> None:
    module, batch = TwoCaches().requires_grad_(False), 2
    sizes = (CONTEXT, CONTEXT, *[CONTEXT // RATE] * 3)
    caches = [torch.zeros(batch, 1, size, WIDTH, dtype=torch.float64) for size in sizes]
    arguments = (torch.zeros(batch, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), *caches)
    raised = raise_program(export_step(module, arguments), "parts")
    graph = raised.graph
    verify(graph)
    assert unmatched_of(graph, raised.sources) == ()
    kinds = [op.kind for op in graph.ops]
    expected = {OpKind.ATTENTION: 2, OpKind.KV_APPEND: 2, OpKind.INDEX_APPEND: 1, OpKind.SELECT: 1}
    assert {kind: kinds.count(kind) for kind in expected} == expected
    names = [value.name for value in graph.inputs]
    states = dict(zip(names[2:], caches, strict=True))
    for step in range(CONTEXT):
        ids, position = torch.tensor([step, 3 * step + 1]), torch.tensor([step])
        values = execute(graph, {names[0]: ids, names[1]: position, **states}, {"sinks": module.sinks.data})
        states = next_states(graph, values)
        found = values[graph.outputs[0]]
        torch.testing.assert_close(found, joint(module, ids, step, [states[name] for name in names[2:]]))
