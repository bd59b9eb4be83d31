"""Element-wise addition, multiplication and rectification on HBM-PIM: vectors in banks in, a vector in banks out.

A block is eight columns of the even and of the odd banks of every unit; the registers of inputs work for even banks,
those of sums for odd ones. Four blocks share a row. Value v of a channel lies in

    block = v div (2 units 8 lanes), then parity, register, unit, lane; column 8 (block mod 4) + register

The reference kernel finishes the even bank's part of a block before it turns to the odd one, and waits for every row.
Here the banks take turns, so that one changes rows while the other is accessed:

    read the first operand, even, odd; the second, even, odd (each opens the other bank's next row); store, even, odd
"""

from dataclasses import dataclass

from compiler.emission import Block, plus, repeat
from compiler.geometry import ceil_div
from compiler.hbm_pim.mode import CLOSE_ALL, AllBankMode
from compiler.schedule import PoolShape
from configs.microkernel_units import BANKS_OF_UNIT, REGISTERS, ROW_COLUMNS
from simulator.hbm_pim.microkernel import STORE_ALL, MicroInstruction, Opcode, Place, jump
from simulator.hbm_pim.reference_kernels import Elementwise
from simulator.hbm_pim.registers import EVEN, ODD
from simulator.isa import Affine, Command, Kind, Program

BLOCKS_OF_ROW = ROW_COLUMNS // REGISTERS
PARITIES = ((EVEN, Place.INPUTS, Place.EVEN_BANK), (ODD, Place.SUMS, Place.ODD_BANK))
# After how many of its eight accesses the other bank's row closes, behind reads and behind stores, and the next opens.
CLOSES_BEHIND, CLOSES_BEHIND_STORES, OPENS_AFTER = 0, 7, 4


@dataclass(frozen=True, slots=True)
class OperandRows:
    """The first rows of both operands and of the result; a kernel with one operand does not use the second."""

    first: int
    second: int
    result: int


def blocks_of(elements: int, pool: PoolShape) -> int:
    """Return the blocks of so many values of a channel."""
    return int(ceil_div(elements, BANKS_OF_UNIT * pool.banks * REGISTERS * pool.lanes))


def elementwise_program(kernel: Elementwise, elements: int, pool: PoolShape, rows: OperandRows) -> Program:
    """Return the program of one channel for so many values, padded to whole blocks."""
    blocks = blocks_of(elements, pool)
    mode = AllBankMode(int(pool.banks), int(pool.rows))
    full, ragged = divmod(blocks, BLOCKS_OF_ROW)
    turns = _turns(kernel, rows)

    def row_of(index: Affine, depth: int, count: int) -> Block:
        steps = [(turn, number * REGISTERS) for number in range(count) for turn in turns]
        first = (mode.activate(EVEN, plus(Affine(turns[0].row), index)),)
        return (*first, *(item for place in range(len(steps)) for item in _accesses(steps, place, index, mode)))

    whole = repeat(full, 0, lambda index, depth: row_of(index, depth, BLOCKS_OF_ROW))
    rest = row_of(Affine(full), 0, ragged) if ragged else ()
    body = (*mode.enter(instructions(kernel, blocks)), mode.close(ODD), *whole, *rest, *mode.leave())
    return Program(body, f"{kernel} of {elements} values")


def instructions(kernel: Elementwise, blocks: int) -> tuple[MicroInstruction, ...]:
    """Return the microkernel: what each turn of a block does, as often as there are blocks."""
    one_operand = kernel is Elementwise.RELU
    fills = [MicroInstruction(Opcode.FILL, to, bank, aligned=True, relu=one_operand) for _, to, bank in PARITIES]
    opcode = Opcode.MUL if kernel is Elementwise.MUL else Opcode.ADD
    works = [MicroInstruction(opcode, to, to, bank, aligned=True) for _, to, bank in PARITIES]
    block = (*fills, *(() if one_operand else works), STORE_ALL, STORE_ALL)
    return (*block, *((jump(blocks - 1, len(block)),) if blocks > 1 else ()))


@dataclass(frozen=True, slots=True)
class _Turn:
    """Eight accesses of one bank to one operand."""

    kind: Kind
    bank: int
    row: int


def _turns(kernel: Elementwise, rows: OperandRows) -> tuple[_Turn, ...]:
    operands = [(Kind.RD8, rows.first), (Kind.RD8, rows.second), (Kind.ST8, rows.result)]
    if kernel is Elementwise.RELU:
        del operands[1]
    return tuple(_Turn(kind, bank, row) for kind, row in operands for bank in (EVEN, ODD))


def _accesses(steps: list[tuple[_Turn, int]], place: int, index: Affine, mode: AllBankMode) -> Block:
    """Return one turn, among its accesses the other bank's change to the row of the next turn."""
    turn, column = steps[place]
    row = plus(Affine(turn.row), index)
    body: list[Command] = [
        Command(turn.kind, Affine(turn.bank), row, Affine(column + number)) for number in range(REGISTERS)
    ]
    if place + 1 == len(steps):
        return (*body, CLOSE_ALL)
    following, _ = steps[place + 1]
    opened = mode.activate(following.bank, plus(Affine(following.row), index))
    if place == 0:
        return (*body[:OPENS_AFTER], opened, *body[OPENS_AFTER:])
    stored = steps[place - 1][0].kind is Kind.ST8
    closes = CLOSES_BEHIND_STORES if stored else CLOSES_BEHIND
    opens = REGISTERS if stored else OPENS_AFTER
    closed = mode.close(following.bank)
    return (*body[:closes], closed, *body[closes:opens], opened, *body[opens:])
