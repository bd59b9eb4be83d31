"""Are operations and bytes of a body counted from the types of its operands as one would by hand?"""

import pytest

from compiler.body_cost import BodyCost, body_cost
from compiler.graph import DType, TensorType

ROW = TensorType(DType.BF16, (1, 8))
WIDE = TensorType(DType.F32, (1, 8))
MATRIX = TensorType(DType.BF16, (8, 3))
TABLE = TensorType(DType.BF16, (100, 8))
ID = TensorType(DType.I64, (1,))

BODIES = {
    "a product of elements": ("t0 = aten.mul.Tensor($0, $1); return t0", (ROW, ROW), BodyCost(8, 0, (16, 16), 16)),
    "views are free": ("t0 = aten.reshape.default($0, [8, 1]); return t0", (ROW,), BodyCost(0, 0, (0,), 0)),
    "a cast is a view": ("t0 = aten._to_copy.default($0, dtype=f32); return t0", (ROW,), BodyCost(0, 0, (0,), 0)),
    "a sum reads all": ("t0 = aten.sum.dim_IntList($0, [1]); return t0", (WIDE,), BodyCost(8, 0, (32,), 4)),
    "a matrix product": ("t0 = aten.mm.default($0, $1); return t0", (ROW, MATRIX), BodyCost(0, 48, (16, 48), 6)),
    "rows of a table": (
        "t0 = aten.embedding.default($0, $1); return t0",
        (TABLE, ID),
        BodyCost(0, 0, (16, 8), 16),
    ),
    "a part is read in part": (
        "t0 = aten.slice.Tensor($0, 1, 0, 2); t1 = aten.exp.default(t0); return t1",
        (ROW,),
        BodyCost(2, 0, (4,), 4),
    ),
    "values move without operations": (
        "t0 = aten.cat.default([$0, $0], 1); return t0",
        (ROW,),
        BodyCost(0, 0, (16,), 32),
    ),
    "an einsum counts all of its indices": (
        "t0 = aten.einsum.default('bk,kn->bn', [$0, $1]); return t0",
        (ROW, MATRIX),
        BodyCost(0, 48, (16, 48), 6),
    ),
    "an ellipsis stands for axes that are broadcast": (
        "t0 = aten.einsum.default('...k,...kn->...n', [$0, $1]); return t0",
        (TensorType(DType.BF16, (5, 1, 8)), TensorType(DType.BF16, (2, 8, 3))),
        BodyCost(0, 2 * 5 * 2 * 8 * 3, (80, 96), 60),
    ),
    "an attention left as one call counts both of its products": (
        "t0 = aten.scaled_dot_product_attention.default($0, $1, $2); return t0",
        (TensorType(DType.BF16, (1, 4, 1, 8)), *[TensorType(DType.BF16, (1, 4, 10, 8))] * 2),
        BodyCost(0, 2 * 4 * 10 * (8 + 8), (64, 640, 640), 64),
    ),
    "a state that is replaced is not read": (
        "t0 = aten.exp.default($1); t1 = aten.copy.default($0, t0); return t1",
        (ROW, ROW),
        BodyCost(8, 0, (0, 16), 16),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_cost_what_they_do(name: str) -> None:
    text, operands, expected = BODIES[name]
    assert body_cost(text, operands) == expected


def test_a_convolution_counts_two_operations_per_weight_and_position() -> None:
    state, weight = TensorType(DType.BF16, (1, 6, 5)), TensorType(DType.BF16, (6, 1, 4))
    text = "t0 = aten.conv1d.default($0, $1, none, [1], [0], [1], 6); return t0"
    assert body_cost(text, (state, weight)).matrix_operations == 2 * 6 * 2 * 4
