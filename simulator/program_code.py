"""A `Program` as flat integer arrays that compiled code can walk without touching a Python object.

Instruction i is a command (its code), LOOP or END. A loop and its END point at each other; operands are a constant and
one coefficient per loop depth.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.channel import IllegalProgram
from simulator.isa import CODE_OF, EVENT_KINDS, Affine, Command, Instruction, Kind, Loop, Program, Scope, scope_of

LOOP, END = -1, -2
BANK, ROW, EVENT = range(3)
DEPTH_LIMIT = 16


class ProgramCode(NamedTuple):
    """The arrays of one program; a named tuple, because compiled functions take those as they are.

    `kind`, `repetitions` (of a LOOP), `target` (of LOOP and END) and `alone` are int64[instructions]; `alone` is 1 for
    a command that is the whole body of a loop and addresses the same node in every repetition. `constant` is
    int64[instructions, 3] and `coefficient` int64[instructions, 3, depth], for bank, row and event. Every bank lies
    within `lowest_bank` and `highest_bank`; `signals` is one more than the highest event signalled.
    """

    kind: NDArray[np.int64]
    repetitions: NDArray[np.int64]
    target: NDArray[np.int64]
    alone: NDArray[np.int64]
    constant: NDArray[np.int64]
    coefficient: NDArray[np.int64]
    lowest_bank: int
    highest_bank: int
    signals: int


@dataclass(slots=True)
class _Lists:
    """The growing rows of the arrays, and the ranges met so far."""

    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    operands: list[tuple[Affine, Affine, Affine]] = field(default_factory=list)
    banks: list[int] = field(default_factory=lambda: [0])
    events: list[int] = field(default_factory=lambda: [-1])

    def append(self, row: tuple[int, int, int, int], operands: tuple[Affine, Affine, Affine]) -> None:
        self.rows.append(row)
        self.operands.append(operands)


def flatten(program: Program) -> ProgramCode:
    """Return the arrays of a program.

    Raises ValueError for loops nested deeper than DEPTH_LIMIT, IllegalProgram for an operand that names a loop it is
    not in or for a negative event.
    """
    lists = _Lists()
    _flatten_block(program.body, (), lists)
    rows = np.array(lists.rows, dtype=np.int64).reshape(-1, 4)
    constant = np.zeros((len(rows), 3), dtype=np.int64)
    coefficient = np.zeros((len(rows), 3, DEPTH_LIMIT), dtype=np.int64)
    for index, operands in enumerate(lists.operands):
        for place, operand in enumerate(operands):
            constant[index, place] = operand.constant
            for depth, value in operand.terms:
                coefficient[index, place, depth] = value
    kind, repetitions, target, alone = (np.ascontiguousarray(rows[:, column]) for column in range(4))
    return ProgramCode(
        kind=kind,
        repetitions=repetitions,
        target=target,
        alone=alone,
        constant=constant,
        coefficient=coefficient,
        lowest_bank=min(lists.banks),
        highest_bank=max(lists.banks),
        signals=max(lists.events) + 1,
    )


def _flatten_block(body: tuple[Instruction, ...], counts: tuple[int, ...], lists: _Lists) -> None:
    for instruction in body:
        match instruction:
            case Loop():
                _flatten_loop(instruction, counts, lists)
            case Command():
                _flatten_command(instruction, counts, len(body) == 1, lists)


def _flatten_loop(loop: Loop, counts: tuple[int, ...], lists: _Lists) -> None:
    if len(counts) == DEPTH_LIMIT:
        raise ValueError(f"expected loops nested at most {DEPTH_LIMIT} deep, found deeper ones; unroll an inner loop")
    none = (Affine(), Affine(), Affine())
    start = len(lists.rows)
    lists.append((LOOP, 0, 0, 0), none)
    _flatten_block(loop.body, (*counts, max(0, loop.count)), lists)
    end = len(lists.rows)
    lists.append((END, 0, start, 0), none)
    lists.rows[start] = (LOOP, max(0, loop.count), end, 0)


def _flatten_command(command: Command, counts: tuple[int, ...], only: bool, lists: _Lists) -> None:
    operands = (command.bank, command.row, command.event)
    for operand in operands:
        if any(not 0 <= depth < len(counts) for depth, _ in operand.terms):
            raise IllegalProgram(f"{command.kind}: expected operands over {len(counts)} loops, found {operand.terms}")
    addressed = scope_of(command.kind) is not Scope.CHANNEL
    if 0 not in counts:
        if command.kind in EVENT_KINDS:
            lowest, highest = _range(command.event, counts)
            if lowest < 0:
                raise IllegalProgram(f"{command.kind}: expected an event number of at least 0, found event {lowest}")
            if command.kind is Kind.SIGNAL:
                lists.events.append(highest)
        if addressed:
            lists.banks.extend(_range(command.bank, counts))
    own_depth = len(counts) - 1
    moves = addressed and any(depth == own_depth for depth, _ in command.bank.terms)
    alone = only and bool(counts) and not moves
    lists.append((CODE_OF[command.kind], 0, 0, int(alone)), operands)


def _range(operand: Affine, counts: tuple[int, ...]) -> tuple[int, int]:
    """Return the lowest and highest value of an operand over the loops around it."""
    reaches = [coefficient * (counts[depth] - 1) for depth, coefficient in operand.terms]
    return (
        operand.constant + sum(min(0, reach) for reach in reaches),
        operand.constant + sum(max(0, reach) for reach in reaches),
    )
