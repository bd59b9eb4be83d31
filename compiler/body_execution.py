"""What a body computes: its statements executed one by one by torch, on numbers or on types alone."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler.bodies import Body, ElementType, Reference, Statement, Value, parse_body
from compiler.graph import DType, TensorType
from configs.errors import UserError

TORCH_TYPES = {
    torch.bfloat16: DType.BF16,
    torch.float16: DType.F16,
    torch.float32: DType.F32,
    torch.float64: DType.F64,
    torch.int64: DType.I64,
    torch.int32: DType.I32,
    torch.bool: DType.BOOL,
    torch.complex64: DType.C64,
    torch.complex128: DType.C128,
}
TYPE_NAMED = {str(name): torch_type for torch_type, name in TORCH_TYPES.items()}
NAMESPACE = "aten"
REFUSED = ("from_file",)  # touches files
VIEWS, VIEW_THAT_COPIES = (("view", "default"), ("_unsafe_view", "default")), "reshape"


@lru_cache(maxsize=4096)
def parsed(text: str) -> Body:
    """Return the body of a text; equal texts are read once."""
    return parse_body(text)


def run_body(text: str, operands: Sequence[Tensor], precision: torch.dtype | None = None) -> list[Tensor]:
    """Return what a body returns; with a precision, casts to a floating type and new floating values have no less.

    What a body computes in float32 on purpose, such as angles and variances, stays so where the precision is bfloat16.
    """
    body = parsed(text)
    done: list[Any] = []
    for statement in body.statements:
        done.append(call_statement(statement, operands, done, precision))
    return [found_tensor(reference, operands, done) for reference in body.returned]


@lru_cache(maxsize=4096)
def result_types(text: str, operands: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    """Return the types of what a body returns, found without computing it."""
    with FakeTensorMode(allow_non_fake_inputs=False):
        given = [torch.empty(one.shape, dtype=TYPE_NAMED[str(one.dtype)]) for one in operands]
        results = run_body(text, given)
    return tuple(TensorType(TORCH_TYPES[result.dtype], tuple(result.shape)) for result in results)


def call_statement(
    statement: Statement, operands: Sequence[Tensor], done: Sequence[Any], precision: torch.dtype | None = None
) -> Any:
    """Return the result of one statement, after those `done`; raises ValueError for an operator that is not ATen's."""
    namespace, name, overload = statement.target.split(".")
    if namespace != NAMESPACE or name in REFUSED or not hasattr(torch.ops.aten, name):
        raise UserError(
            where="body",
            expected=f"operators of torch's {NAMESPACE} that compute",
            found=statement.target,
            way_out="see the grammar in compiler/bodies.py",
        )
    # A body says nothing of layouts, so that a view may have to copy.
    name = VIEW_THAT_COPIES if (name, overload) in VIEWS else name
    operator = getattr(getattr(torch.ops.aten, name), overload)
    arguments = [_argument(value, operands, done, precision) for value in statement.arguments]
    keywords: Mapping[str, Any] = {
        key: _argument(value, operands, done, precision) for key, value in statement.keywords
    }
    return operator(*arguments, **keywords)


def _argument(value: Value, operands: Sequence[Tensor], done: Sequence[Any], precision: torch.dtype | None) -> Any:
    match value:
        case Reference():
            return found_tensor(value, operands, done)
        case ElementType(name):
            return _with_precision(TYPE_NAMED[name], precision)
        case tuple():
            return [_argument(one, operands, done, precision) for one in value]
        case _:
            return value


def _with_precision(named: torch.dtype, precision: torch.dtype | None) -> torch.dtype:
    if precision is None:
        return named
    if named.is_complex:
        return torch.complex128 if precision == torch.float64 else torch.complex64
    return torch.promote_types(named, precision) if named.is_floating_point else named


def found_tensor(reference: Reference, operands: Sequence[Tensor], done: Sequence[Any]) -> Tensor:
    """Return the operand or the result that a reference names."""
    found = operands[reference.number] if reference.operand else done[reference.number]
    result: Tensor = found if reference.element is None else found[reference.element]
    return result
