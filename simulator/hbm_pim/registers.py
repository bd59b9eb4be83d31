"""Where an HBM-PIM channel keeps what is no data: the last rows of its banks, and the columns of its register windows.

Of the reserved rows the first are for results on their way to the host. Programs number rows without the holes that the
simulator's address map has: there, the three rows at the end are 0x17ff, 0x1fff and 0x3fff.
"""

RESULT_ROWS = 64
ENTER_ROW, LEAVE_ROW, WINDOW_ROW = 125, 126, 127  # counted from the first reserved one
MODE_COLUMN = 0x1F  # of the writes that enter and leave all-bank mode
EXECUTION_COLUMN, MICROKERNEL_COLUMN, INPUTS_COLUMN, SUMS_COLUMN = 0, 4, 8, 24
EVEN, ODD = 0, 1


def entry_banks(banks: int) -> tuple[int, ...]:
    """Return the banks whose entry row is written to enter all-bank mode: four, or both of a single unit."""
    return tuple(dict.fromkeys((0, banks // 2, 1, (banks // 2 + 1) % banks)))
