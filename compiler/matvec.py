"""Code generation of the matrix-vector kernel that linear, score and context share: geometry -> commands.

Between segments the channel is in register mode; each segment writes its part of the input, changes to memory mode,
visits its rows and changes back:

    ACT16 first                          (when rows are pre-activated)
    TMOD
    per vector group, output group:      WRMAC16 group
      per segment:                       WAIT, WRGB segment, TMOD, per row: MAC16 columns, PREA, ACT16 next; TMOD
                                         RDMAC16 group, SIGNAL
    TMOD

When partial sums spill, segments are outside and groups inside, and every group's accumulators go in and out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from compiler.geometry import Geometry
from simulator.isa import ZERO, Affine, Command, Instruction, Kind, Loop

Block = tuple[Instruction, ...]
TO_OTHER_MODE = Command(Kind.TMOD)
CLOSE_ROWS = Command(Kind.PREA)


@dataclass(frozen=True, slots=True)
class Operands:
    """Where a kernel's data is: first row, first input column and first output entry, as seen inside `depth` loops.

    `wait_event` and `signal_event` number the first of the events; a kernel waits for one event per vector group and
    segment, and signals one per vector group and output group.
    """

    row: Affine
    input_column: Affine
    output: Affine
    depth: int = 0
    wait_event: Affine = ZERO
    signal_event: Affine = ZERO


def plus(left: Affine, right: Affine) -> Affine:
    """Return the sum of two affine operands."""
    terms = dict(left.terms)
    for depth, coefficient in right.terms:
        terms[depth] = terms.get(depth, 0) + coefficient
    return Affine(left.constant + right.constant, tuple(sorted((d, c) for d, c in terms.items() if c)))


def times(operand: Affine, factor: int) -> Affine:
    """Return an affine operand scaled by an int."""
    terms = tuple((depth, coefficient * factor) for depth, coefficient in operand.terms if factor)
    return Affine(operand.constant * factor, terms)


def variable(depth: int) -> Affine:
    """Return the loop variable of the loop at a depth."""
    return Affine(0, ((depth, 1),))


def repeat(count: int, depth: int, body: Callable[[Affine, int], Block]) -> Block:
    """Emit `count` repetitions of body(index, depth inside): nothing, the body itself, or a loop."""
    if count <= 0:
        return ()
    if count == 1:
        return body(Affine(0), depth)
    return (Loop(count, body(variable(depth), depth + 1)),)


def repeat_peeled(count: int, depth: int, body: Callable[[Affine, int, bool], Block]) -> Block:
    """Emit repetitions whose last one is told that it is the last."""
    if count <= 0:
        return ()
    head = repeat(count - 1, depth, lambda index, inside: body(index, inside, False))
    return (*head, *body(Affine(count - 1), depth, True))


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
            segments = self._segments(vector, index, slots, inside, following)
            init = self._registers(Kind.WRMAC16, vector, index, slots, inside)
            result = self._registers(Kind.RDMAC16, vector, index, slots, inside)
            return (*init, *segments, *result, self._signal(vector, index))

        return self._over_groups(depth, group, lambda index: self._row(Affine(0), index, tail=False), after)

    def _segments_outside(self, vector: Affine, depth: int, after: Affine | None) -> Block:
        """Inputs are written once; every group's partial sums go in and out per segment."""
        shape = self.shape
        full = shape.segments - 1

        def segment(index: Affine, inside: int, tail: bool, following: Affine | None) -> Block:
            def group(group_index: Affine, deeper: int, slots: int, next_row: Affine | None) -> Block:
                moved_in = self._registers(Kind.WRMAC16, vector, group_index, slots, deeper)
                rows = self._rows(index, group_index, slots, deeper, tail, next_row)
                moved_out = self._registers(Kind.RDMAC16, vector, group_index, slots, deeper)
                told = (self._signal(vector, group_index),) if tail else ()
                return (*moved_in, TO_OTHER_MODE, *rows, TO_OTHER_MODE, *moved_out, *told)

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
        def segment(index: Affine, inside: int, tail: bool, following: Affine | None) -> Block:
            rows = self._rows(index, group, slots, inside, tail, following)
            return (*self._load(vector, index, inside, tail), TO_OTHER_MODE, *rows, TO_OTHER_MODE)

        full = self.shape.segments - 1
        head = repeat_peeled(
            full,
            depth,
            lambda index, inside, last: segment(
                index, inside, False, self._row(plus(index, Affine(1)), group, tail=last)
            ),
        )
        return (*head, *segment(Affine(full), depth, True, after))

    def _load(self, vector: Affine, segment: Affine, depth: int, tail: bool) -> Block:
        """Write one segment of the vectors that share open rows into the global buffer, one after the other."""
        shape = self.shape
        columns = shape.tail_columns if tail else shape.segment_columns
        first = plus(self.at.input_column, times(segment, shape.segment_columns))
        first = plus(first, times(vector, shape.reuse * shape.total_columns))

        def of_vector(index: Affine, inside: int) -> Block:
            start = plus(first, times(index, shape.total_columns))
            buffer = times(index, shape.segment_columns)
            return repeat(
                columns,
                inside,
                lambda column, _: (Command(Kind.WRGB, buffer=plus(buffer, column), data=plus(start, column)),),
            )

        event = plus(self.at.wait_event, plus(times(vector, shape.segments), segment))
        return (Command(Kind.WAIT, event=event), *repeat(shape.reuse, depth, of_vector))

    def _rows(self, segment: Affine, group: Affine, slots: int, depth: int, tail: bool, after: Affine | None) -> Block:
        """Visit the rows of one segment of one group: full rows, then a ragged one; open the row that comes after."""
        per_row = self.shape.tail_slots_per_row if tail else self.shape.slots_per_row
        full, ragged = divmod(slots, per_row)
        first = self._row(segment, group, tail)

        def visit(index: Affine, inside: int, last: bool) -> Block:
            row = plus(first, index)
            following = after if last and not ragged else plus(row, Affine(1))
            return self._visit(row, times(index, per_row), per_row, inside, tail, following)

        if not ragged:
            return repeat_peeled(full, depth, visit)
        head = repeat(full, depth, lambda index, inside: visit(index, inside, False))
        row = plus(first, Affine(full))
        return (*head, *self._visit(row, Affine(full * per_row), ragged, depth, tail, after))

    def _visit(self, row: Affine, slot: Affine, slots: int, depth: int, tail: bool, after: Affine | None) -> Block:
        """Multiply the slots of one row with every vector of the group; `slot` counts within the group."""
        shape = self.shape
        columns = shape.tail_columns if tail else shape.segment_columns
        stride = shape.tail_stride if tail else shape.segment_columns

        def of_slot(index: Affine, inside: int) -> Block:
            def of_vector(vector: Affine, deeper: int) -> Block:
                register = plus(times(plus(slot, index), shape.reuse), vector)
                return repeat(
                    columns,
                    deeper,
                    lambda column, _: (
                        Command(
                            Kind.MAC16,
                            row=row,
                            column=plus(times(index, stride), column),
                            buffer=plus(times(vector, shape.segment_columns), column),
                            register=register,
                        ),
                    ),
                )

            return repeat(shape.reuse, inside, of_vector)

        opened = () if self.preactivate else self._activate(row)
        following = self._activate(after) if self.preactivate and after is not None else ()
        return (*opened, *repeat(slots, depth, of_slot), CLOSE_ROWS, *following)

    def _registers(self, kind: Kind, vector: Affine, group: Affine, slots: int, depth: int) -> Block:
        """Move one group's accumulators in or out; entry (vector, slot) lies at vector*slots+slot of the output."""
        shape = self.shape
        first = plus(self.at.output, times(vector, shape.reuse * shape.slots))
        first = plus(first, times(group, shape.group_slots))

        def of_slot(slot: Affine, inside: int) -> Block:
            return repeat(
                shape.reuse,
                inside,
                lambda index, _: (
                    Command(
                        kind,
                        register=plus(times(slot, shape.reuse), index),
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
