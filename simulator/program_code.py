"""A `Program` as flat integer arrays that compiled code can walk without touching a Python object.

Instruction i is a command (its code), LOOP or END. A loop and its END point at each other; operands are a constant and
one coefficient per loop depth. Loops around nothing but one command on one bank become one loop, because columns and
registers do not matter to timing:

    loop 8 { loop 4 { MAC16 } }  -->  loop 32 { MAC16 }
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.channel import IllegalProgram
from simulator.isa import ACTIVATES, CODE_OF, EVENT_KINDS, KINDS, Affine, Command, Instruction, Kind, Loop, Program

LOOP, END = -1, -2
KIND, REPETITIONS, TARGET, TRAITS, ROW_STEP = range(5)
COLUMNS = 5
BANK, ROW, EVENT = range(3)
DEPTH_LIMIT = 16
# Bits of the traits: of a command, of a LOOP, of a LOOP.
ALONE, REPEATS, SHIFTS_ROWS = 1, 2, 4
# A loop this short ends before its repetitions are known to be alike.
SHORTEST_REPEAT = 6


class ProgramCode(NamedTuple):
    """The arrays of one program; a named tuple, because compiled functions take those as they are.

    `instructions` is int64[instructions, 5] with columns KIND, REPETITIONS (of a LOOP), TARGET (of LOOP and END),
    TRAITS and ROW_STEP. A command is ALONE if it is the whole body of a loop and addresses the same bank in every
    repetition. A loop REPEATS if each iteration issues the same commands (not one alone) to the same banks and minds no
    event, and SHIFTS_ROWS if all rows it opens move by the same amount, ROW_STEP, from one iteration to the next.
    `constant` is int64[instructions, 3] and `coefficient` int64[instructions, 3, depth], for bank, row and event. Every
    bank lies within `lowest_bank` and `highest_bank`; `signals` is one more than the highest event signalled; bit k of
    `kinds` is set if command code k occurs.
    """

    instructions: NDArray[np.int64]
    constant: NDArray[np.int64]
    coefficient: NDArray[np.int64]
    lowest_bank: int
    highest_bank: int
    signals: int
    kinds: int

    def occurring(self) -> Iterator[Kind]:
        """Yield the kinds of command that occur."""
        return (kind for code, kind in enumerate(KINDS) if self.kinds >> code & 1)


@dataclass(frozen=True, slots=True)
class _Body:
    """What an enclosing loop needs to know of a block: events, the loops its banks move with, how its rows move."""

    events: bool = False
    bank_depths: frozenset[int] = frozenset()
    row_terms: frozenset[tuple[tuple[int, int], ...]] = frozenset()

    def with_(self, other: "_Body") -> "_Body":
        return _Body(
            self.events or other.events, self.bank_depths | other.bank_depths, self.row_terms | other.row_terms
        )


@dataclass(slots=True)
class _Lists:
    """The growing rows of the arrays, and the ranges met so far."""

    rows: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    operands: list[tuple[Affine, Affine, Affine]] = field(default_factory=list)
    banks: list[int] = field(default_factory=lambda: [0])
    events: list[int] = field(default_factory=lambda: [-1])
    kinds: int = 0
    depth: int = 0

    def append(self, row: tuple[int, int, int, int, int], operands: tuple[Affine, Affine, Affine]) -> None:
        self.rows.append(row)
        self.operands.append(operands)


def flatten(program: Program) -> ProgramCode:
    """Return the arrays of a program.

    Raises ValueError for loops nested deeper than DEPTH_LIMIT, IllegalProgram for an operand that names a loop it is
    not in or for a negative event.
    """
    lists = _Lists()
    _flatten_block(program.body, (), lists)
    rows = np.array(lists.rows, dtype=np.int64).reshape(-1, COLUMNS)
    constant = np.zeros((len(rows), 3), dtype=np.int64)
    coefficient = np.zeros((len(rows), 3, lists.depth), dtype=np.int64)
    for index, operands in enumerate(lists.operands):
        for place, operand in enumerate(operands):
            constant[index, place] = operand.constant
            for depth, value in operand.terms:
                coefficient[index, place, depth] = value
    return ProgramCode(
        instructions=rows,
        constant=constant,
        coefficient=coefficient,
        lowest_bank=min(lists.banks),
        highest_bank=max(lists.banks),
        signals=max(lists.events) + 1,
        kinds=lists.kinds,
    )


def straight_line(kind: NDArray[np.int64], bank: NDArray[np.int64], row: NDArray[np.int64]) -> ProgramCode:
    """Return the arrays of a program without loops and events, as `flatten` would, from its columns."""
    count = len(kind)
    instructions = np.zeros((count, COLUMNS), dtype=np.int64)
    instructions[:, KIND] = kind
    constant = np.zeros((count, 3), dtype=np.int64)
    constant[:, BANK], constant[:, ROW] = bank, row
    return ProgramCode(
        instructions=instructions,
        constant=constant,
        coefficient=np.zeros((count, 3, 0), dtype=np.int64),
        lowest_bank=int(bank.min(initial=0)),
        highest_bank=int(bank.max(initial=0)),
        signals=0,
        kinds=sum(1 << int(code) for code in np.unique(kind)),
    )


def _flatten_block(body: tuple[Instruction, ...], counts: tuple[int, ...], lists: _Lists) -> _Body:
    found = _Body()
    for instruction in body:
        match instruction:
            case Loop():
                found = found.with_(_flatten_loop(instruction, counts, lists))
            case Command():
                found = found.with_(_flatten_command(instruction, counts, len(body) == 1, lists))
    return found


def _flatten_loop(loop: Loop, counts: tuple[int, ...], lists: _Lists) -> _Body:
    if len(counts) == DEPTH_LIMIT:
        raise ValueError(f"expected loops nested at most {DEPTH_LIMIT} deep, found deeper ones; unroll an inner loop")
    none = (Affine(), Affine(), Affine())
    start, depth = len(lists.rows), len(counts)
    lists.depth = max(lists.depth, depth + 1)
    count, block = _run(loop, depth) or (max(0, loop.count), loop.body)
    lists.append((LOOP, 0, 0, 0, 0), none)
    body = _flatten_block(block, (*counts, count), lists)
    end = len(lists.rows)
    lists.append((END, 0, start, 0, 0), none)
    traits, step, only = 0, 0, block[0] if len(block) == 1 else None
    one_run = isinstance(only, Command) and only.kind not in ACTIVATES
    if count >= SHORTEST_REPEAT and not (one_run or body.events or depth in body.bank_depths):
        moves = {dict(terms).get(depth, 0) for terms in body.row_terms}
        traits = REPEATS | (SHIFTS_ROWS if len(moves) <= 1 else 0)
        step = max(moves, default=0)
    lists.rows[start] = (LOOP, count, end, traits, step)
    return body


def _run(loop: Loop, depth: int) -> tuple[int, tuple[Command]] | None:
    """Return repetitions and command of a nest of loops around one command on one bank, None for any other loop."""
    count = 1
    inner: Instruction = loop
    while isinstance(inner, Loop) and len(inner.body) == 1:
        count, inner = count * max(0, inner.count), inner.body[0]
    if isinstance(inner, Loop) or inner.kind in ACTIVATES | EVENT_KINDS:
        return None
    if any(level >= depth for level, _ in inner.bank.terms):
        return None
    return count, (Command(inner.kind, inner.bank),)


def _flatten_command(command: Command, counts: tuple[int, ...], only: bool, lists: _Lists) -> _Body:
    operands = (command.bank, command.row, command.event)
    for operand in operands:
        if any(not 0 <= depth < len(counts) for depth, _ in operand.terms):
            raise IllegalProgram(f"{command.kind}: expected operands over {len(counts)} loops, found {operand.terms}")
    if 0 not in counts:
        lists.kinds |= 1 << CODE_OF[command.kind]
        lists.banks.extend(_range(command.bank, counts))
        if command.kind in EVENT_KINDS:
            lowest, highest = _range(command.event, counts)
            if lowest < 0:
                raise IllegalProgram(f"{command.kind}: expected an event number of at least 0, found event {lowest}")
            if command.kind is Kind.SIGNAL:
                lists.events.append(highest)
    bank_depths = frozenset(depth for depth, _ in command.bank.terms)
    alone = only and bool(counts) and len(counts) - 1 not in bank_depths
    lists.append((CODE_OF[command.kind], 0, 0, ALONE if alone else 0, 0), operands)
    rows = frozenset({command.row.terms}) if command.kind in ACTIVATES else frozenset()
    return _Body(command.kind in EVENT_KINDS, bank_depths, rows)


def _range(operand: Affine, counts: tuple[int, ...]) -> tuple[int, int]:
    """Return the lowest and highest value of an operand over the loops around it."""
    reaches = [coefficient * (counts[depth] - 1) for depth, coefficient in operand.terms]
    return (
        operand.constant + sum(min(0, reach) for reach in reaches),
        operand.constant + sum(max(0, reach) for reach in reaches),
    )
