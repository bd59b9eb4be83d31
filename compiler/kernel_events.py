"""What a kernel waits for and signals: how its input comes in pieces, and its results go out in parts.

An input column is written while later ones are still on the link: a kernel waits for short pieces. Results cross the
link while other outputs are multiplied: the sums of every group of outputs are read as soon as the group is done, and
those of the last group in parts, so that behind the very last row only its own sums are left to go.
"""

from compiler.geometry import FEWER_ROWS, Geometry, ceil_div

PIECE_COLUMNS = 16  # the first is on the link for a quarter of the time that a full row of input takes


def pieces(columns: int) -> tuple[int, ...]:
    """Return the columns of each piece of one vector's input: full pieces, then a ragged one."""
    full, ragged = divmod(columns, PIECE_COLUMNS)
    return (PIECE_COLUMNS,) * full + ((ragged,) if ragged else ())


def written_columns(shape: Geometry) -> tuple[int, ...]:
    """Return the columns that a kernel writes behind each event it waits for, in order of the events."""
    full, tail = pieces(shape.segment_columns) * shape.reuse, pieces(shape.tail_columns) * shape.reuse
    vector_groups: int = shape.vector_groups
    return (*full * (shape.segments - 1), *tail) * vector_groups


def last_parts(shape: Geometry) -> tuple[int, ...]:
    """Return the slots of each part of the very last group: whole rows, with 1, 4, 16, ... rows left behind it."""
    slots = shape.slots - (shape.groups - 1) * shape.group_slots
    if shape.whole_reads:
        return (int(slots),)
    rows = int(ceil_div(slots, shape.tail_slots_per_row))
    ends, left = [int(slots)], 1
    while left < rows:
        ends.insert(0, (rows - left) * shape.tail_slots_per_row)
        left *= FEWER_ROWS
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


def read_slots(shape: Geometry) -> tuple[int, ...]:
    """Return the slots whose sums a kernel has read at each signal, in order of the signals."""
    last = shape.slots - (shape.groups - 1) * shape.group_slots
    full = (shape.group_slots,) * (shape.groups - 1)
    return (*(*full, last) * (shape.vector_groups - 1), *full, *last_parts(shape))
