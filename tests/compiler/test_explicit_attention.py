"""Is attention that a model spells out with products raised to what it means, and nothing else?"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from compiler.graph import Op, OpKind
from compiler.interpreter import execute, next_states
from compiler.raising.assemble import Raised, raise_program
from compiler.raising.exporting import export_step
from compiler.unmatched import unmatched_of
from compiler.verify import verify

BATCH, HEADS, KV_HEADS, WIDTH, CONTEXT, WINDOW = 3, 4, 2, 8, 12, 5
LOWEST = torch.finfo(torch.float64).min

Spelling = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class Step(nn.Module):
    """A step that writes a token's key and value, attends by `spelling` and samples."""

    def __init__(self, spelling: Spelling) -> None:
        super().__init__()
        self.table = nn.Embedding(11, HEADS * WIDTH, dtype=torch.float64)
        self.project = nn.Linear(HEADS * WIDTH, 2 * KV_HEADS * WIDTH, dtype=torch.float64)
        self.spelling = spelling

    def logits(self, ids: Tensor, position: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        x = self.table(ids)
        key, value = self.project(x).view(len(ids), 2 * KV_HEADS, 1, WIDTH).chunk(2, dim=1)
        keys.index_copy_(2, position, key)
        values.index_copy_(2, position, value)
        attended = self.spelling(x.view(len(ids), HEADS, 1, WIDTH), keys, values, position)
        return nn.functional.linear(attended.reshape(len(ids), -1), self.table.weight)

    def forward(self, ids: Tensor, position: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return self.logits(ids, position, keys, values).argmax(-1)


def caches() -> list[Tensor]:
    return [torch.zeros((BATCH, KV_HEADS, CONTEXT, WIDTH), dtype=torch.float64) for _ in range(2)]


def raised(step: Step) -> Raised:
    arguments = (torch.zeros(BATCH, dtype=torch.int64), torch.zeros(1, dtype=torch.int64), *caches())
    found = raise_program(export_step(step, arguments), "step")
    verify(found.graph)
    return found


def attentions(found: Raised) -> list[Op]:
    return [op for op in found.graph.ops if op.kind is OpKind.ATTENTION]


def causal(position: Tensor) -> Tensor:
    return torch.arange(CONTEXT) <= position


def repeated(cache: Tensor) -> Tensor:
    whole = cache[:, :, None].expand(-1, -1, HEADS // KV_HEADS, -1, -1)
    return whole.reshape(len(cache), HEADS, CONTEXT, WIDTH)


def filled(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    """A window that is filled in, heads repeated."""
    visible = causal(position) & (torch.arange(CONTEXT) > position - WINDOW)
    scores = torch.matmul(query, repeated(keys).transpose(2, 3)) / 4
    return torch.matmul(scores.masked_fill(~visible, LOWEST).softmax(-1), repeated(values))


def slopes() -> Tensor:
    return torch.arange(1, HEADS + 1, dtype=torch.float64) / 8


def biased(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    """Linear biases added by the product itself, and a mask added behind it, heads folded into the batch."""
    rows = len(query) * HEADS
    bias = (slopes()[:, None, None] * torch.arange(CONTEXT)).repeat(len(query), 1, 1)
    turned = repeated(keys).reshape(rows, CONTEXT, WIDTH).transpose(1, 2)
    scores = bias.baddbmm(query.reshape(rows, 1, WIDTH), turned, beta=1.0, alpha=0.3)
    mask = torch.zeros(CONTEXT, dtype=torch.float64).masked_fill(~causal(position), LOWEST)
    weights = (scores.view(-1, HEADS, 1, CONTEXT) + mask).softmax(-1)
    return torch.bmm(weights.view(rows, 1, CONTEXT), repeated(values).reshape(rows, CONTEXT, WIDTH))


def grouped(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    """The queries of a key head as the rows of one product, scaled beforehand, with a bias."""
    queries = query.view(len(query), KV_HEADS, HEADS // KV_HEADS, WIDTH) * 0.5
    scores = torch.matmul(queries, keys.transpose(2, 3)) + slopes().view(2, 2, 1) * torch.arange(CONTEXT)
    return torch.matmul(torch.where(causal(position), scores, LOWEST).softmax(-1), values)


@pytest.mark.parametrize(
    ("spelling", "scale", "window", "bias"),
    [(filled, 0.25, WINDOW, False), (biased, 0.3, 0, True), (grouped, 1.0, 0, True)],
)
def test_attention_by_products_is_one_operator_with_the_same_logits(
    spelling: Spelling, scale: float, window: int, bias: bool
) -> None:
    torch.manual_seed(0)
    step = Step(spelling)
    found = raised(step)
    (attention,) = attentions(found)
    assert attention.number("scale") == pytest.approx(scale, rel=1e-12)
    assert (attention.integer("window"), attention.flag("bias")) == (window, bias)
    assert attention.integer("kv_heads") == KV_HEADS
    assert not unmatched_of(found.graph, found.sources)
    held, expected = dict(zip(("keys", "values"), caches(), strict=True)), caches()
    logits = next(op.inputs[0] for op in found.graph.ops if op.kind is OpKind.SAMPLE)
    weights = dict(step.named_parameters()) | found.constants
    for position in range(CONTEXT):
        ids, place = torch.arange(position, position + BATCH) % 11, torch.tensor([position])
        values = execute(found.graph, {"ids": ids, "position": place, **held}, weights)
        held = next_states(found.graph, values)
        torch.testing.assert_close(values[logits], step.logits(ids, place, *expected), rtol=1e-12, atol=1e-12)


def in_another_order(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    """Heads repeated one after the other, not each in its place."""
    keys, values = keys.repeat(1, 2, 1, 1), values.repeat(1, 2, 1, 1)
    scores = torch.matmul(query, keys.transpose(2, 3)).masked_fill(~causal(position), LOWEST)
    return torch.matmul(scores.softmax(-1), values)


def squared(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    scores = torch.matmul(query, repeated(keys).transpose(2, 3)).pow(2).masked_fill(~causal(position), LOWEST)
    return torch.matmul(scores.softmax(-1), repeated(values))


def scaled_by_position(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    scores = torch.matmul(query, repeated(keys).transpose(2, 3)) / (position + 1)
    return torch.matmul(scores.masked_fill(~causal(position), LOWEST).softmax(-1), repeated(values))


def masked_by_data(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    visible = causal(position) & (query.sum((1, 2, 3), keepdim=True) > 0)
    scores = torch.matmul(query, repeated(keys).transpose(2, 3)).masked_fill(~visible, LOWEST)
    return torch.matmul(scores.softmax(-1), repeated(values))


def swapped(query: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    """A softmax over heads."""
    scores = torch.matmul(query, repeated(keys).transpose(2, 3)).masked_fill(~causal(position), LOWEST)
    return torch.matmul(scores.softmax(1), repeated(values))


@pytest.mark.parametrize("spelling", [in_another_order, squared, scaled_by_position, masked_by_data, swapped])
def test_what_is_no_attention_is_counted_as_unmatched(spelling: Spelling) -> None:
    found = raised(Step(spelling))
    assert not attentions(found)
    assert unmatched_of(found.graph, found.sources)
