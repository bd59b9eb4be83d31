"""The commands of a program, one after another, with the operands that their loops give them.

A loop around a single multiply whose column moves by one is one item, `times` columns from `column` on: units take
these at once where they can (`simulator.hbm_pim.execution`).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from simulator.functional_code import COLUMN, DEPTH_LIMIT, END, LOOP, FlatProgram
from simulator.functional_errors import OperandRangeError, UnwrittenValueError
from simulator.functional_state import Floats
from simulator.isa import CODE_OF, KINDS, OPERANDS, Kind


class Resolved(NamedTuple):
    """One command with its operands, which of the program it is, and its place in messages."""

    kind: Kind
    bank: int
    row: int
    column: int
    lane: int
    buffer: int
    register: int
    data: int
    event: int
    instruction: int
    number: int
    times: int = 1  # multiplies over columns that follow each other

    @property
    def where(self) -> str:
        """How messages name it."""
        return f"command {self.number}, {self.kind}"

    def require_range(self, name: str, value: int, limit: int) -> None:
        """Raise OperandRangeError for an operand that is not in 0..limit - 1."""
        if not 0 <= value < limit:
            raise OperandRangeError(f"{self.where}: expected {name} in 0..{limit - 1}, found {name} {value}")

    def require_written(self, values: Floats, place: str) -> None:
        """Raise UnwrittenValueError for values of which one was never written."""
        if np.isnan(values).any():
            raise UnwrittenValueError(f"{self.where}: expected values written before, found {place} that never was")


def resolved(flat: FlatProgram) -> Iterator[Resolved]:
    """Yield the commands of a program in order."""
    code, variables, number = flat.code, [0] * DEPTH_LIMIT, 0
    constant, terms = code.constant.tolist(), _terms(flat)
    kinds, targets, repetitions = code.kind.tolist(), code.target.tolist(), code.repetitions.tolist()
    rows = _loops_over_columns(flat, terms)
    at = depth = 0
    while at < len(kinds):
        if kinds[at] == LOOP:
            if (at, depth) in rows:
                values = _operands(constant[at + 1], terms[at + 1], variables, depth)
                yield Resolved._make((Kind.RD8, *values, at + 1, number, repetitions[at]))
                number += repetitions[at]
                at = targets[at]
            elif repetitions[at] <= 0:
                at = targets[at]
            else:
                variables[depth], depth = 0, depth + 1
        elif kinds[at] == END:
            variables[depth - 1] += 1
            if variables[depth - 1] < repetitions[targets[at]]:
                at = targets[at]
            else:
                depth -= 1
        else:
            values = _operands(constant[at], terms[at], variables, depth)
            yield Resolved._make((KINDS[kinds[at]], *values, at, number, 1))
            number += 1
        at += 1


def _operands(constant: list[int], terms: list[tuple[int, int, int]], variables: list[int], depth: int) -> list[int]:
    """Return a command's operands, for the first repetition of loops deeper than those around it."""
    values = constant.copy()
    for place, level, factor in terms:
        if level < depth:
            values[place] += factor * variables[level]
    return values


def _loops_over_columns(flat: FlatProgram, terms: list[list[tuple[int, int, int]]]) -> set[tuple[int, int]]:
    """Return (place, depth) of the loops around nothing but a multiply whose column alone moves, by one."""
    kinds, found, depth = flat.code.kind.tolist(), set(), 0
    for at, kind in enumerate(kinds):
        if kind == LOOP and kinds[at + 1] == CODE_OF[Kind.RD8] and kinds[at + 2] == END:
            own = [(place, factor) for place, level, factor in terms[at + 1] if level == depth]
            if own == [(COLUMN, 1)] and flat.code.repetitions[at] > 0:
                found.add((at, depth))
        depth += (kind == LOOP) - (kind == END)
    return found


def _terms(flat: FlatProgram) -> list[list[tuple[int, int, int]]]:
    """Return, for each instruction, (operand, loop depth, coefficient) of what its operands add to their constants."""
    code = flat.code
    found: list[list[tuple[int, int, int]]] = []
    for first in code.first.tolist():
        places = [(place, term) for place in range(len(OPERANDS)) for term in range(first[place], first[place + 1])]
        found.append([(place, int(code.depth[term]), int(code.coefficient[term])) for place, term in places])
    return found
