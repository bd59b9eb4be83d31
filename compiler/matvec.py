"""Code generation of the matrix-vector kernel that linear, score and context share: geometry -> commands.

Between segments the channel is in register mode; each segment writes its part of the input, changes to memory mode,
visits its rows and changes back:

    ACT16 first                          (when rows are pre-activated)
    TMOD
    per vector group, output group:      WRMAC16 group
      per segment:                       per piece: WAIT, WRGB columns;
                                         TMOD, per row: MAC16 columns, PREA, ACT16 next; TMOD
                                         RDMAC16 group, SIGNAL
    TMOD

The very last group's sums are read in parts, each behind some of the rows of its last segment.

Where banks have two row buffers, a visit opens the next row beside its multiplies:

    row:  LATCH16 row, MACL16 half of the columns, ACT16 next, MACL16 the others

Where values share scales, a slot's multiplies come chunk by chunk, each behind the SCALE16 of its scales. When partial
sums spill, segments are outside and groups inside, and every group's accumulators go in and out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from compiler.emission import Block, plus, repeat, repeat_peeled, times
from compiler.geometry import Geometry
from compiler.kernel_events import PIECE_COLUMNS, last_parts, pieces, written_columns
from compiler.slot_multiplies import SlotMultiplies
from simulator.isa import ZERO, Affine, Command, Instruction, Kind

TO_OTHER_MODE = Command(Kind.TMOD)
CLOSE_ROWS = Command(Kind.PREA)


@dataclass(frozen=True, slots=True)
class Operands:
    """Where a kernel's data is: first row, first input column and first output entry, as seen inside `depth` loops.

    `wait_event` and `signal_event` number the first of the events that `compiler.kernel_events` counts.
    """

    row: Affine
    input_column: Affine
    output: Affine
    depth: int = 0
    wait_event: Affine = ZERO
    signal_event: Affine = ZERO


def _write_column(to: Affine, data: Affine, column: Affine, _: int) -> Block:
    return (Command(Kind.WRGB, buffer=plus(to, column), data=plus(data, column)),)


class MatVecKernel:
    """Emits one kernel; the methods mirror the loops of the module's docstring, from the outside in."""

    def __init__(self, shape: Geometry, operands: Operands, preactivate: bool) -> None:
        """Keep what every loop level reads."""
        self.shape = shape
        self.at = operands
        self.preactivate = preactivate

    def emit(self) -> Block:
        """Return the whole kernel; the channel starts and ends in memory mode with all rows closed."""
        first = self._activate(self.at.row) if self.preactivate else ()
        passes = repeat_peeled(self.shape.vector_groups, self.at.depth, self._vector_group)
        return (*first, TO_OTHER_MODE, *passes, TO_OTHER_MODE)

    def _vector_group(self, vector: Affine, depth: int, last: bool) -> Block:
        after = None if last else self.at.row
        if self.shape.spills or self.shape.segments == 1:
            return self._segments_outside(vector, depth, after)
        return self._groups_outside(vector, depth, after)

    def _groups_outside(self, vector: Affine, depth: int, after: Affine | None) -> Block:
        """Accumulators stay with a group of outputs over all segments; inputs are written again per group."""

        def group(index: Affine, inside: int, slots: int, following: Affine | None) -> Block:
            init = self._registers(Kind.WRMAC16, vector, index, slots, inside)
            segments = self._segments(vector, index, slots, inside, following)
            return (*init, *segments)

        return self._over_groups(depth, group, lambda index: self._row(Affine(0), index, tail=False), after)

    def _segments_outside(self, vector: Affine, depth: int, after: Affine | None) -> Block:
        """Inputs are written once; every group's partial sums go in and out per segment."""
        shape = self.shape
        full = shape.segments - 1

        def segment(index: Affine, inside: int, tail: bool, following: Affine | None) -> Block:
            def group(group_index: Affine, deeper: int, slots: int, next_row: Affine | None) -> Block:
                moved_in = self._registers(Kind.WRMAC16, vector, group_index, slots, deeper)
                if tail:
                    return (*moved_in, *self._finish(vector, index, group_index, slots, deeper, next_row))
                rows = self._rows(index, group_index, slots, deeper, tail, next_row)
                moved_out = self._registers(Kind.RDMAC16, vector, group_index, slots, deeper)
                return (*moved_in, TO_OTHER_MODE, *rows, TO_OTHER_MODE, *moved_out)

            groups = self._over_groups(inside, group, lambda g: self._row(index, g, tail), following)
            return (*self._load(vector, index, inside, tail), *groups)

        head = repeat_peeled(
            full,
            depth,
            lambda index, inside, last: segment(
                index, inside, False, self._row(plus(index, Affine(1)), Affine(0), tail=last)
            ),
        )
        return (*head, *segment(Affine(full), depth, True, after))

    def _over_groups(
        self,
        depth: int,
        body: Callable[[Affine, int, int, Affine | None], Block],
        first_row: Callable[[Affine], Affine],
        after: Affine | None,
    ) -> Block:
        """Emit full groups and the ragged last one; each is told the row that is visited after its own."""
        shape = self.shape
        last_slots = shape.slots - (shape.groups - 1) * shape.group_slots
        head = repeat(
            shape.groups - 1,
            depth,
            lambda index, inside: body(index, inside, shape.group_slots, first_row(plus(index, Affine(1)))),
        )
        return (*head, *body(Affine(shape.groups - 1), depth, last_slots, after))

    def _segments(self, vector: Affine, group: Affine, slots: int, depth: int, after: Affine | None) -> Block:
        def segment(index: Affine, inside: int, last: bool) -> Block:
            following = self._row(plus(index, Affine(1)), group, tail=last)
            rows = self._rows(index, group, slots, inside, False, following)
            return (*self._load(vector, index, inside, False), TO_OTHER_MODE, *rows, TO_OTHER_MODE)

        tail = Affine(self.shape.segments - 1)
        head = repeat_peeled(self.shape.segments - 1, depth, segment)
        return (
            *head,
            *self._load(vector, tail, depth, True),
            *self._finish(vector, tail, group, slots, depth, after),
        )

    def _finish(
        self, vector: Affine, segment: Affine, group: Affine, slots: int, depth: int, after: Affine | None
    ) -> Block:
        """Visit the rows of the last segment of a group and read its sums: those of the very last group in parts."""
        parts = last_parts(self.shape) if after is None else (slots,)
        first_row = self._row(segment, group, tail=True)
        body: list[Instruction] = []
        done = 0
        for number, part in enumerate(parts):
            row_behind = first_row.plus((done + part) // self.shape.tail_slots_per_row)
            following = row_behind if number + 1 < len(parts) else after
            body += [
                TO_OTHER_MODE,
                *self._rows(segment, group, part, depth, True, following, done),
                TO_OTHER_MODE,
                *self._registers(Kind.RDMAC16, vector, group, part, depth, done),
                self._signal(vector, group.plus(number)),
            ]
            done += part
        return tuple(body)

    def _load(self, vector: Affine, segment: Affine, depth: int, tail: bool) -> Block:
        """Write one segment of the vectors that share open rows into the global buffer, one after the other."""
        shape = self.shape
        columns = shape.tail_columns if tail else shape.segment_columns
        first = plus(self.at.input_column, times(segment, shape.segment_columns))
        first = plus(first, times(vector, shape.reuse * shape.total_columns))
        of_full, of_this = (len(pieces(number)) for number in (shape.segment_columns, columns))
        before = times(vector, len(written_columns(shape)) // shape.vector_groups)
        event = plus(plus(self.at.wait_event, before), times(segment, shape.reuse * of_full))

        def of_vector(index: Affine, inside: int) -> Block:
            start = plus(first, times(index, shape.total_columns))
            buffer = times(index, shape.segment_columns)

            def piece(number: Affine, deeper: int, length: int) -> Block:
                done = times(number, PIECE_COLUMNS)
                to, data = plus(buffer, done), plus(start, done)
                arrived = Command(Kind.WAIT, event=plus(event, plus(times(index, of_this), number)))
                write = partial(_write_column, to, data)
                return (arrived, *repeat(length, deeper, write))

            full, ragged = divmod(columns, PIECE_COLUMNS)
            head = repeat(full, inside, lambda number, deeper: piece(number, deeper, PIECE_COLUMNS))
            return (*head, *(piece(Affine(full), inside, ragged) if ragged else ()))

        return repeat(shape.reuse, depth, of_vector)

    def _rows(
        self,
        segment: Affine,
        group: Affine,
        slots: int,
        depth: int,
        tail: bool,
        after: Affine | None,
        done: int = 0,
    ) -> Block:
        """Visit the rows of one segment of one group, but those of the first `done` slots; open the row that follows.

        Full rows come first, then a ragged one.
        """
        per_row = self.shape.tail_slots_per_row if tail else self.shape.slots_per_row
        full, ragged = divmod(slots, per_row)
        first = self._row(segment, group, tail).plus(done // per_row)

        def visit(index: Affine, inside: int, last: bool) -> Block:
            row = plus(first, index)
            following = after if last and not ragged else plus(row, Affine(1))
            return self._visit(row, times(index, per_row).plus(done), per_row, inside, tail, following)

        if not ragged:
            return repeat_peeled(full, depth, visit)
        head = repeat(full, depth, lambda index, inside: visit(index, inside, False))
        row = plus(first, Affine(full))
        return (*head, *self._visit(row, Affine(done + full * per_row), ragged, depth, tail, after))

    def _visit(self, row: Affine, slot: Affine, slots: int, depth: int, tail: bool, after: Affine | None) -> Block:
        """Multiply the slots of one row with every vector of the group; `slot` counts within the group."""
        shape = self.shape
        columns = shape.tail_columns if tail else shape.segment_columns
        stride = shape.tail_stride if tail else shape.segment_stride
        multiplies = SlotMultiplies(shape)
        opened = () if self.preactivate else self._activate(row)
        following = self._activate(after) if self.preactivate and after is not None else ()
        if shape.latched and following:
            register = times(slot, shape.reuse)
            first, second = multiplies.halves(row, slots, columns, stride, register, depth)
            return (Command(Kind.LATCH16, row=row), *first, *following, *second)

        def of_slot(index: Affine, inside: int) -> Block:
            register = times(plus(slot, index), shape.reuse)
            return multiplies.of(row, times(index, stride), columns, register, inside)

        products = repeat(slots, depth, of_slot)
        if shape.latched:
            return (*opened, Command(Kind.LATCH16, row=row), *products)
        return (*opened, *products, CLOSE_ROWS, *following)

    def _registers(self, kind: Kind, vector: Affine, group: Affine, slots: int, depth: int, done: int = 0) -> Block:
        """Move one group's accumulators in or out, but those of the first `done` slots.

        Entry (vector, slot) lies at vector*slots+slot of the output.
        """
        shape = self.shape
        first = plus(self.at.output, times(vector, shape.reuse * shape.slots))
        first = plus(first, times(group, shape.group_slots)).plus(done)

        def of_slot(slot: Affine, inside: int) -> Block:
            return repeat(
                shape.reuse,
                inside,
                lambda index, _: (
                    Command(
                        kind,
                        register=plus(times(slot.plus(done), shape.reuse), index),
                        data=plus(plus(first, slot), times(index, shape.slots)),
                    ),
                ),
            )

        return repeat(slots, depth, of_slot)

    def _row(self, segment: Affine, group: Affine, tail: bool) -> Affine:
        """Return the first row of a segment of a group."""
        shape = self.shape
        per_row = shape.tail_slots_per_row if tail else shape.slots_per_row
        offset = plus(times(segment, shape.rows_per_segment), times(group, shape.group_slots // per_row))
        return plus(self.at.row, offset)

    def _signal(self, vector: Affine, group: Affine) -> Command:
        return Command(Kind.SIGNAL, event=plus(self.at.signal_event, plus(times(vector, self.shape.groups), group)))

    @staticmethod
    def _activate(row: Affine) -> Block:
        return (Command(Kind.ACT16, row=row),)
