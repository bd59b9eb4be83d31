"""Where a matrix lies in the banks of HBM-PIM units, and which register holds which input while it is multiplied.

A tile is what the registers of a unit hold at once: eight columns of inputs, a *segment*, times eight outputs of each
unit, a *group*. It takes one row of the even bank and one of the odd. The address says which registers a multiply
takes: sums by the three low bits of the column, inputs by the lowest bit of the row and the next two of the column. So
the two rows of a tile have different lowest bits; tile t lies in even row t and odd row t xor 1. Counted from an even
first row, with G groups, the tile of segment s and group g is t = s G + g.

Multiplies visit half of the even row, the odd row, the other half of the even row, so that one bank changes rows while
the other is read. The i-th column of a segment is kept in the register that is visited i-th: sums add up in the order
of the columns, whichever row is which.
"""

from typing import Any

from configs.microkernel_units import REGISTERS

__all__ = ["HALF_ROW", "VISITED", "bank_parity", "first_column", "other_row", "whole_pairs"]

HALF_ROW = REGISTERS // 4  # registers that half of a row is multiplied with
VISITED = ((0, 1, 4, 5, 6, 7, 2, 3), (4, 5, 0, 1, 2, 3, 6, 7))  # by the lowest bit of the tile


def whole_pairs(rows: Any, microkernel_words: Any) -> Any:
    """Return rows rounded up to pairs where units run microkernels: tiles count from even rows (ints or arrays)."""
    return rows + (rows % 2) * (microkernel_words > 0)


def other_row(tile: int) -> int:
    """Return how far from its even row a tile's odd row is, for the lowest bit of the tile."""
    return -1 if tile % 2 else 1


def bank_parity(tile: int, column: int) -> int:
    """Return in which of a unit's banks a column of the segment lies: 0 even, 1 odd."""
    return int(VISITED[tile % 2][column] // 4 != tile % 2)


def first_column(tile: int, column: int) -> int:
    """Return where the eight outputs of a column of the segment begin in its row."""
    return VISITED[tile % 2][column] % 4 * REGISTERS
