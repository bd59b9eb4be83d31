"""Is a program cleaned without a change of what it computes, and are products by head found in it?"""

import torch
from torch import Tensor, nn

from compiler.graph import Graph, OpKind
from compiler.interpreter import execute
from compiler.raising.assemble import raise_program
from compiler.raising.exporting import export_step
from compiler.unmatched import unmatched_of
from compiler.verify import verify

HEADS, WIDTH = 2, 4


class Delayed(nn.Module):
    """Joins a value with all tokens but the last, which are none for one token."""

    def forward(self, ids: Tensor, position: Tensor) -> Tensor:
        x = (ids.reshape(-1, 1, 1) + torch.arange(HEADS * WIDTH)).to(torch.float64).sin() + position
        return torch.cat([x, x[:, :-1]], dim=1).cos()


class ByHead(nn.Module):
    """Multiplies every head with a matrix of its own, as the gates of recurrent_gemma do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(HEADS, WIDTH, WIDTH, dtype=torch.float64))
        self.bias = nn.Parameter(torch.randn(HEADS, WIDTH, dtype=torch.float64))
        self.out = nn.Parameter(torch.randn(HEADS * WIDTH, HEADS * WIDTH, dtype=torch.float64))

    def forward(self, ids: Tensor, position: Tensor) -> Tensor:
        x = (ids.unsqueeze(1) + torch.arange(HEADS * WIDTH)).to(torch.float64).sin() + position
        heads = nn.functional.linear(x, self.out).reshape(len(x), HEADS, WIDTH).permute(1, 0, 2)
        gates = torch.baddbmm(self.bias[:, None, :], heads, self.weight).transpose(0, 1)
        return torch.sigmoid(gates.reshape(len(x), HEADS * WIDTH))


def raised(module: nn.Module, batch: int) -> Graph:
    arguments = (torch.zeros(batch, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    found = raise_program(export_step(module, arguments), "small")
    verify(found.graph)
    assert unmatched_of(found.graph, found.sources) == ()
    return found.graph


def assert_same(module: nn.Module, graph: Graph) -> None:
    ids = torch.arange(graph.inputs[0].type.shape[0]) * 3
    position = torch.tensor([2])
    given = dict(zip((one.name for one in graph.inputs), (ids, position), strict=True))
    found = execute(graph, given, dict(module.named_parameters()))[graph.outputs[0]]
    assert torch.allclose(found, module(ids, position).reshape(found.shape), rtol=1e-12)


def test_a_part_without_tokens_is_left_out_of_a_concatenation() -> None:
    module = Delayed()
    graph = raised(module, batch=3)
    assert all("aten.cat" not in op.text("body") for op in graph.ops if op.kind is OpKind.COMPUTE)
    assert_same(module, graph)


def test_matrices_stacked_by_head_become_one_product_by_head() -> None:
    torch.manual_seed(0)
    module = ByHead().requires_grad_(False)
    graph = raised(module, batch=3)
    (product,) = [op for op in graph.ops if op.kind is OpKind.HEAD_LINEAR]
    assert product.flag("stacked")
    assert product.inputs[1] == "weight"
    assert_same(module, graph)
