"""Does each operator mean what its one-line definition says, on cases small enough to check by hand?"""

import math

import pytest
import torch
from torch import Tensor

from compiler.graph import Attribute, DType, Graph, Op, OpKind, TensorType, Value, make_attributes
from compiler.interpreter import execute

PLAIN = (100.0, "none", 1.0, 1.0, 1.0, 0)


def run(kind: OpKind, operands: list[Tensor], *attributes: Attribute, results: int = 1) -> list[Tensor]:
    """Execute one operator on given operands; the types of a graph do not matter to its interpreter."""
    any_type = TensorType(DType.F64, (1,))
    names = [f"operand{index}" for index in range(len(operands))]
    values = tuple(Value(f"result{index}", any_type) for index in range(results))
    op = Op(kind, tuple(names), values, make_attributes(kind, *attributes))
    graph = Graph("one", tuple(Value(name, any_type) for name in names), (), (op,), ())
    found = execute(graph, dict(zip(names, operands, strict=True)), {})
    return [found[value.name] for value in values]


def test_a_rotation_at_position_zero_changes_nothing() -> None:
    x = torch.arange(8.0, dtype=torch.float64).reshape(1, 8)
    assert torch.equal(run(OpKind.ROTARY, [x, torch.tensor([0])], 2, 4, *PLAIN)[0], x)


def test_the_first_pair_turns_by_one_radian_a_token() -> None:
    x = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    found = run(OpKind.ROTARY, [x, torch.tensor([3])], 1, 4, *PLAIN)[0]
    assert found[0].tolist() == pytest.approx([math.cos(3), 0.0, math.sin(3), 0.0])


def test_long_wavelengths_turn_slower_by_the_factor_and_short_ones_do_not() -> None:
    x, scaling = torch.tensor([[1.0, 1.0, 0.0, 0.0]]), (1e6, "llama3", 8.0, 1.0, 4.0, 64)
    found = run(OpKind.ROTARY, [x, torch.tensor([2])], 1, 4, *scaling)[0][0]
    # The pairs turn by 1 and 1e-3 radians a token: wavelengths of 6.3 and 6283 tokens against 64 / 4 and 64 / 1.
    assert found.tolist() == pytest.approx([math.cos(2), math.cos(2e-3 / 8), math.sin(2), math.sin(2e-3 / 8)])


@pytest.mark.parametrize(("window", "mean"), [(0, 2.0), (2, 3.0), (9, 2.0)])
def test_equal_scores_average_the_values_inside_the_window(window: int, mean: float) -> None:
    values = torch.tensor([0.0, 2.0, 2.0, 4.0, 100.0]).reshape(1, 1, 5, 1)
    operands = [torch.zeros(1, 1), torch.zeros(1, 1, 5, 1), values, torch.tensor([3])]
    assert run(OpKind.ATTENTION, operands, 1, 1, 1, 5, window, 1.0)[0].item() == pytest.approx(mean)


@pytest.mark.parametrize(("normalise", "total"), [(True, 1.0), (False, 2 / 3)])
def test_routing_weights_sum_to_one_only_when_normalised(normalise: bool, total: float) -> None:
    ids, weights = run(OpKind.ROUTE, [torch.zeros(1, 3)], 3, 2, normalise, results=2)
    assert ids.shape == (1, 2)
    assert weights.sum().item() == pytest.approx(total)


def test_an_append_leaves_the_caches_before_it_unchanged() -> None:
    caches = [torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2)]
    tokens = [torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])]
    keys, values = run(OpKind.KV_APPEND, [*tokens, *caches, torch.tensor([1])], 1, 2, 3, results=2)
    assert keys[0, 0].tolist() == [[0, 0], [1, 2], [0, 0]]
    assert values[0, 0].tolist() == [[0, 0], [3, 4], [0, 0]]
    assert not any(cache.any() for cache in caches)
