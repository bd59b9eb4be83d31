"""The reference kernels of Samsung's public PIMSimulator, access by access, for any shape: what its cycles are for.

Every kernel parks all banks, changes from single-bank to all-bank mode, writes its microkernel, switches execution on,
works, switches it off, changes back and parks again. Read-back of results and loading of operands are not part of it.

    matrix-vector   per batch and 64 outputs: per 128 inputs, first those in even banks, then those in odd banks: write
                    8 registers, read 64 columns (2 rows), every eighth a barrier; store 8 registers in the odd bank
    with a tree     the matrix-vector kernel for units whose sums a tree of adders is to add: before it, zeros to a row
                    of every bank; per 64 outputs and 128 inputs, in even and odd banks by turns, as above, the results
                    of every tile stored and the registers reset by reading 8 zeros
    two operands    per 8 columns, even banks then odd: read 8 of one, 8 of the other, store 8
    one operand     per 8 columns, even banks then odd: read 8, store 8

Facts (rows, columns, order) are from that simulator and its command streams.
"""

from enum import StrEnum

from simulator.hbm_pim.transactions import Access, Accesses, columns_of, fenced
from simulator.isa import Kind

PARK_ROW, ENTER_ROW, LEAVE_ROW, WINDOW_ROW = 0x1000, 0x17FF, 0x1FFF, 0x3FFF
MODE_COLUMN = 0x1F  # of the accesses that change between single-bank and all-bank mode
EXECUTION_COLUMN, MICROKERNEL_COLUMN, INPUT_COLUMN = 0, 4, 8
EVEN, ODD = 0, 1
BANK_GROUPS, BANKS_PER_GROUP = 4, 4
ENTER_BANKS = (0, 8, 1, 9)
UNITS, LANES, REGISTERS, ROW_COLUMNS = 8, 16, 8, 32
TILE_INPUTS = REGISTERS * LANES
GROUP_OUTPUTS = UNITS * REGISTERS
ROWS_OF_TILE = REGISTERS * REGISTERS // ROW_COLUMNS
SECOND_OPERAND_ROW, RESULT_ROW, ZERO_ROW = 128, 256, 1000


class Elementwise(StrEnum):
    """The kernels on vectors that lie in banks; equal numbers of operands take equal cycles."""

    ADD = "ADD"
    MUL = "MUL"
    RELU = "RELU"


def gemv_accesses(outputs: int, inputs: int, batch: int = 1) -> Accesses:
    """Return y = W x on one channel, for a matrix of so many outputs and inputs and so many vectors."""
    groups, tiles = -(-outputs // GROUP_OUTPUTS), -(-inputs // TILE_INPUTS)
    passes = [group for _ in range(batch) for group in range(groups)]
    body: list[Access] = []
    for group in passes:
        body += _execution()
        for bank, own in ((EVEN, -(-tiles // 2)), (ODD, tiles // 2)):
            for tile in range(own):
                body += _tile(bank, (group * own + tile) * ROWS_OF_TILE)
        row, column = divmod(group * REGISTERS, ROW_COLUMNS)
        behind = groups * -(-tiles // 2) * ROWS_OF_TILE
        body += columns_of(Kind.ST8, ODD, behind + row, column, REGISTERS)
        body += _execution()
    return (*_begin(), *body, *_end())


def gemv_tree_accesses(outputs: int, inputs: int, batch: int = 1) -> Accesses:
    """Return y = W x on one channel whose partial sums leave after every tile, to be added by a tree."""
    groups, tiles = -(-outputs // GROUP_OUTPUTS), -(-inputs // TILE_INPUTS)
    per_parity = -(-tiles // 2)
    result, body = groups * per_parity * ROWS_OF_TILE, _execution()
    for _ in range(batch):
        for group in range(groups):
            for tile in range(tiles):
                first_row = (group * per_parity + tile // 2) * ROWS_OF_TILE
                row, column = divmod((group * tiles + tile) * REGISTERS, ROW_COLUMNS)
                body += _tile((EVEN, ODD)[tile % 2], first_row)
                body += columns_of(Kind.ST8, ODD, result + row, column, REGISTERS)
                body += columns_of(Kind.RD8, EVEN, ZERO_ROW, 0, REGISTERS)
    return (*_zeros(), *_begin(microkernel_columns=2), *body, *_execution(), *_end())


def elementwise_accesses(kernel: Elementwise, elements: int) -> Accesses:
    """Return an element-wise kernel on so many values of one channel."""
    values = 2 * UNITS * REGISTERS * LANES  # of eight columns of all banks
    body: list[Access] = []
    for part in range(-(-elements // values)):
        row, column = divmod(part * REGISTERS, ROW_COLUMNS)
        for bank in (EVEN, ODD):
            body += columns_of(Kind.RD8, bank, row, column, REGISTERS)
            if kernel is not Elementwise.RELU:
                body += columns_of(Kind.RD8, bank, SECOND_OPERAND_ROW + row, column, REGISTERS)
            body += columns_of(Kind.ST8, bank, RESULT_ROW + row, column, REGISTERS)
    return (*_begin(), *_execution(), *body, *_execution(), *_end())


def _tile(bank: int, first_row: int) -> Accesses:
    """Write eight registers of inputs, then read the tile's columns, eight at a time."""
    reads: list[Access] = []
    for row in range(first_row, first_row + ROWS_OF_TILE):
        for column in range(0, ROW_COLUMNS, REGISTERS):
            reads += columns_of(Kind.RD8, bank, row, column, REGISTERS)
    return (*columns_of(Kind.WR8, ODD, WINDOW_ROW, INPUT_COLUMN, REGISTERS), *reads)


def _execution() -> Accesses:
    """Switch execution on or off; the program counter is reset."""
    return (Access(Kind.WR8, EVEN, WINDOW_ROW, EXECUTION_COLUMN, barrier=True),)


def _zeros() -> Accesses:
    """Write zeros to a row of every bank, bank after bank."""
    banks = range(BANK_GROUPS * BANKS_PER_GROUP)
    return fenced(tuple(Access(Kind.WR, bank, ZERO_ROW, column) for bank in banks for column in range(REGISTERS)))


def _begin(microkernel_columns: int = 1) -> Accesses:
    enter = fenced(tuple(Access(Kind.WR, bank, ENTER_ROW, MODE_COLUMN) for bank in ENTER_BANKS))
    microkernel = columns_of(Kind.WR8, ODD, WINDOW_ROW, MICROKERNEL_COLUMN, microkernel_columns)
    return (*_park(), *enter, *microkernel)


def _end() -> Accesses:
    leave = fenced(tuple(Access(Kind.WR8, bank, LEAVE_ROW, MODE_COLUMN) for bank in (EVEN, ODD)))
    return (*leave, *_park())


def _park() -> Accesses:
    """Read a column of every bank, bank groups in turn, so that all banks end with a row that is known."""
    banks = [group * BANKS_PER_GROUP + bank for bank in range(BANKS_PER_GROUP) for group in range(BANK_GROUPS)]
    return fenced(tuple(Access(Kind.RD, bank, PARK_ROW, 0) for bank in banks))
