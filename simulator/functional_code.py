"""A `Program` with all eight operands of every command as flat integer arrays, for the functional engine.

Instruction i is a command (its code), LOOP or END; a loop and its END point at each other. Operand p of instruction i
is `constant[i, p]` plus the sum over its terms t in first[i, p]..first[i, p + 1] of
`coefficient[t] * variables[depth[t]]`.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.functional_errors import OperandRangeError
from simulator.isa import CODE_OF, OPERANDS, Command, Instruction, Loop, Program

LOOP, END = -1, -2
DEPTH_LIMIT = 32
BANK, ROW, COLUMN, LANE, BUFFER, REGISTER, DATA, EVENT = range(len(OPERANDS))


class FunctionalCode(NamedTuple):
    """The arrays of one program; a named tuple, because compiled functions take those as they are."""

    kind: NDArray[np.int64]
    repetitions: NDArray[np.int64]
    target: NDArray[np.int64]
    constant: NDArray[np.int64]
    first: NDArray[np.int64]
    depth: NDArray[np.int64]
    coefficient: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FlatProgram:
    """The arrays, the command behind each instruction (None for loops) for messages, and what a multiply serves."""

    code: FunctionalCode
    commands: tuple[Command | None, ...]
    vectors_per_multiply: int


@dataclass(slots=True)
class _Rows:
    """The growing rows of the arrays."""

    kind: list[int] = field(default_factory=list)
    repetitions: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    commands: list[Command | None] = field(default_factory=list)

    def append(self, kind: int, command: Command | None = None, target: int = 0) -> int:
        self.kind.append(kind)
        self.repetitions.append(0)
        self.target.append(target)
        self.commands.append(command)
        return len(self.kind) - 1


def flatten_functional(program: Program) -> FlatProgram:
    """Return the arrays of a program; raises OperandRangeError for an operand over a loop it is not in."""
    rows = _Rows()
    _flatten_block(program.body, 0, rows)
    constant = np.zeros((len(rows.kind), len(OPERANDS)), dtype=np.int64)
    first = np.zeros((len(rows.kind), len(OPERANDS) + 1), dtype=np.int64)
    depths: list[int] = []
    coefficients: list[int] = []
    for index, command in enumerate(rows.commands):
        for place, name in enumerate(OPERANDS):
            first[index, place] = len(depths)
            if command is None:
                continue
            operand = getattr(command, name)
            constant[index, place] = operand.constant
            depths.extend(depth for depth, _ in operand.terms)
            coefficients.extend(value for _, value in operand.terms)
        first[index, len(OPERANDS)] = len(depths)
    code = FunctionalCode(
        kind=np.array(rows.kind, dtype=np.int64),
        repetitions=np.array(rows.repetitions, dtype=np.int64),
        target=np.array(rows.target, dtype=np.int64),
        constant=constant,
        first=first,
        depth=np.array(depths, dtype=np.int64),
        coefficient=np.array(coefficients, dtype=np.int64),
    )
    return FlatProgram(code, tuple(rows.commands), program.vectors_per_multiply)


def _flatten_block(body: tuple[Instruction, ...], depth: int, rows: _Rows) -> None:
    for item in body:
        match item:
            case Loop(count, inner):
                if depth == DEPTH_LIMIT:
                    raise OperandRangeError(f"expected loops nested at most {DEPTH_LIMIT} deep, found deeper ones")
                start = rows.append(LOOP)
                _flatten_block(inner, depth + 1, rows)
                rows.repetitions[start] = count
                rows.target[start] = rows.append(END, target=start)
            case Command():
                deepest = max((at for name in OPERANDS for at, _ in getattr(item, name).terms), default=-1)
                if deepest >= depth:
                    raise OperandRangeError(f"{item.kind}: expected operands over {depth} loops, found %{deepest}")
                rows.append(CODE_OF[item.kind], item)
