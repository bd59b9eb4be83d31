"""What a body costs: operations and bytes, counted from the types of its operands without computing anything.

A call counts one operation per element of its largest tensor, a function such as an exponential or a softmax included;
a matrix product or a convolution counts two per multiply-accumulate. Views, casts and the writing of a state cost no
operation. Of an operand only what is looked up is read; a result that is a view of an operand is not written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler.bodies import Reference, Statement, references
from compiler.body_execution import TYPE_NAMED, call_statement, found_tensor, parsed
from compiler.graph import TensorType


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Another shape, another type or a part of the same values.
VIEWS = _names(
    "alias as_strided chunk contiguous detach diagonal expand expand_as flatten lift_fresh_copy movedim narrow permute "
    "reshape select slice split split_with_sizes squeeze t to transpose type_as unbind unflatten unfold unsqueeze "
    "view view_as view_as_complex view_as_real _reshape_alias _to_copy _unsafe_view"
)
# Values that move or are written down, without arithmetic.
MOVES = _names(
    "arange cat clone constant_pad_nd copy empty empty_like flip full full_like index_put index_copy new_full new_ones "
    "new_zeros ones ones_like repeat repeat_interleave roll scalar_tensor scatter slice_scatter select_scatter stack "
    "zeros zeros_like"
)
# Values that are looked up in a tensor: only they are read.
LOOKUPS = _names("embedding gather index index_select take")
PRODUCTS = _names("bmm dot linear matmul mm mv")
SUMMED_PRODUCTS = _names("addbmm addmm addmv baddbmm")
# Both products of an attention that is left as one call; its softmax counts for nothing beside them.
ATTENTIONS = _names("scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu")
CONVOLUTIONS = _names("conv1d conv2d convolution")


@dataclass(frozen=True, slots=True)
class BodyCost:
    """Operations, those of matrix products apart, the bytes read of each operand, and the bytes written."""

    operations: int
    matrix_operations: int
    read_bytes: tuple[int, ...]
    written_bytes: int

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        return sum(self.read_bytes) + self.written_bytes

    @property
    def is_view(self) -> bool:
        """Whether nothing is computed and nothing written: another name or shape for what is there."""
        return self.operations == self.matrix_operations == self.written_bytes == 0


@lru_cache(maxsize=4096)
def body_cost(text: str, operands: tuple[TensorType, ...]) -> BodyCost:
    """Return the cost of a body on operands of these types."""
    with FakeTensorMode(allow_non_fake_inputs=False):
        given = [torch.empty(one.shape, dtype=TYPE_NAMED[str(one.dtype)]) for one in operands]
        return _Count(given).of(text)


class _Count:
    """Walks over the statements of one body."""

    def __init__(self, operands: Sequence[Tensor]) -> None:
        self.operands = operands
        self.done: list[Any] = []
        self.operand_of: dict[int, int] = {}  # statements that are views of an operand, by their place
        self.touched = [0] * len(operands)

    def of(self, text: str) -> BodyCost:
        body, operations, products = parsed(text), 0, 0
        for statement in body.statements:
            self.done.append(call_statement(statement, self.operands, self.done))
            name = statement.target.split(".")[1]
            self._touch(name, references((*statement.arguments, *(value for _, value in statement.keywords))))
            own = self._product(name, statement)
            products += own
            if not own and name not in VIEWS | MOVES | LOOKUPS:
                operations += self._elements(statement)
        written = {reference for reference in body.returned if self._operand(reference) is None}
        sizes = (min(one.nbytes, touched) for one, touched in zip(self.operands, self.touched, strict=True))
        return BodyCost(operations, products, tuple(sizes), sum(self._tensor(one).nbytes for one in written))

    def _touch(self, name: str, read: Sequence[Reference]) -> None:
        """Note what a statement reads of the operands: all of their views, or what it looks up in the first."""
        if name in VIEWS:
            source = self._operand(read[0])
            if source is not None:
                self.operand_of[len(self.done) - 1] = source
            return
        for place, reference in enumerate(read):
            source = self._operand(reference)
            if source is not None and not (name == "copy" and place == 0):
                looked_up = name in LOOKUPS and place == 0
                self.touched[source] += self.done[-1].nbytes if looked_up else self._tensor(reference).nbytes

    def _operand(self, reference: Reference) -> int | None:
        return reference.number if reference.operand else self.operand_of.get(reference.number)

    def _tensor(self, reference: Reference) -> Tensor:
        return found_tensor(reference, self.operands, self.done)

    def _arguments(self, statement: Statement) -> list[Tensor]:
        values = (*statement.arguments, *(value for _, value in statement.keywords))
        return [self._tensor(reference) for reference in references(values)]

    def _product(self, name: str, statement: Statement) -> int:
        """Return the operations of a matrix product or a convolution, 0 for other calls."""
        if name in PRODUCTS or name in SUMMED_PRODUCTS:
            left = self._arguments(statement)[int(name in SUMMED_PRODUCTS)]
            return 2 * int(self.done[-1].numel()) * left.shape[-1]
        if name in CONVOLUTIONS:
            _, weight, *_ = self._arguments(statement)
            return 2 * int(self.done[-1].numel()) * prod(weight.shape[1:])
        if name in ATTENTIONS:
            query, keys, values = self._arguments(statement)[:3]
            scores = int(query.numel()) // query.shape[-1] * keys.shape[-2]
            return 2 * scores * (query.shape[-1] + values.shape[-1])
        if name == "einsum":
            return 2 * _einsum_terms(str(statement.arguments[0]), self._arguments(statement))
        return 0

    def _elements(self, statement: Statement) -> int:
        tensors = (*self._arguments(statement), *_tensors(self.done[-1]))
        return max((int(one.numel()) for one in tensors), default=0)


def _tensors(result: Any) -> Iterable[Tensor]:
    return (result,) if isinstance(result, Tensor) else [one for one in result if isinstance(one, Tensor)]


def _einsum_terms(equation: str, operands: Sequence[Tensor]) -> int:
    """Return the product of the sizes of all indices; axes under an ellipsis are broadcast."""
    letters = equation.replace(" ", "").split("->")[0].split(",")
    sizes: dict[str | int, int] = {}
    for names, one in zip(letters, operands, strict=True):
        before, _, after = names.partition("...")
        hidden = range(len(one.shape) - len(before) - len(after), 0, -1)
        for index, size in zip((*before, *hidden, *after), one.shape, strict=True):
            sizes[index] = max(sizes.get(index, 1), int(size))
    return prod(sizes.values())
