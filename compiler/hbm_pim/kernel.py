"""Code generation of the matrix-vector kernel for HBM-PIM: geometry -> commands; `compiler.hbm_pim.tiles` says where.

Like that of `compiler.matvec`, the kernel begins and ends in single-bank mode with all rows closed, waits for its
inputs segment by segment, and signals group by group:

    enter all-bank mode, write the microkernel, switch execution on
    per vector, group of outputs:  per segment:  WAIT; write 8 inputs; 64 multiplies over an even and an odd row
                                   store 8 sums in a row of results of the odd bank; off and on, which clears the sums
    switch off, leave
    per row of results:            read it from the odd bank of every unit; SIGNAL its groups

With `preactivate` rows open while the other bank is read; without, each where it is needed:

    write 8 inputs (ACT8 even row behind the first); 16 even (PRE8 window, ACT8 odd row among them); 32 odd; PRE8;
    16 even (ACT8 window among them); PRE8

Results stay until all vectors are done, or as many as there are rows for.
"""

from compiler.emission import Block, plus, repeat, times
from compiler.geometry import Geometry, ceil_div
from compiler.hbm_pim.mode import CLOSE_ALL, AllBankMode
from compiler.hbm_pim.tiles import HALF_ROW, VISITED, other_row
from compiler.matvec import Operands
from configs.microkernel_units import BANKS_OF_UNIT, REGISTERS, ROW_COLUMNS
from simulator.hbm_pim.microkernel import STORE_ALL, MicroInstruction, Place, jump, multiply_accumulate
from simulator.hbm_pim.registers import EVEN, INPUTS_COLUMN, ODD, RESULT_ROWS
from simulator.isa import Affine, Command, Kind

GROUPS_OF_ROW = ROW_COLUMNS // REGISTERS  # whose results a row holds
# Where, among the multiplies behind a write, the odd bank's window may close and its row may open.
CLOSES_BEHIND, OPENS_BEHIND, WINDOW_BEHIND = 2, 6, 4


def microkernel(segments: int) -> tuple[MicroInstruction, ...]:
    """Return the program of a group: the multiplies of a tile for every segment, then the stores."""
    even, odd = multiply_accumulate(Place.EVEN_BANK), multiply_accumulate(Place.ODD_BANK)
    tile = (*(even,) * HALF_ROW, *(odd,) * (REGISTERS - 2 * HALF_ROW), *(even,) * HALF_ROW)
    return (*tile, *((jump(segments - 1, len(tile)),) if segments > 1 else ()), STORE_ALL)


def result_rows(groups: int) -> int:
    """Return the rows of results of one vector."""
    return int(ceil_div(groups, GROUPS_OF_ROW))


def vectors_at_once(shape: Geometry) -> int:
    """Return the vectors whose results there are rows for."""
    return int(max(1, min(shape.vectors, RESULT_ROWS // result_rows(shape.groups))))


class MicrokernelKernel:
    """Emits one kernel; the methods mirror the loops of the module's docstring, from the outside in."""

    def __init__(self, shape: Geometry, operands: Operands, preactivate: bool) -> None:
        """Keep what every loop level reads."""
        self.shape = shape
        self.at = operands
        self.preactivate = preactivate
        self.units = int(shape.banks)
        self.mode = AllBankMode(self.units, int(shape.reserved_row))

    def emit(self) -> Block:
        """Return the whole kernel."""
        at_once = vectors_at_once(self.shape)
        full, ragged = divmod(self.shape.vectors, at_once)
        visits = repeat(full, self.at.depth, lambda index, depth: self._visit(times(index, at_once), at_once, depth))
        return (*visits, *(self._visit(Affine(full * at_once), ragged, self.at.depth) if ragged else ()))

    def _visit(self, first: Affine, vectors: int, depth: int) -> Block:
        """Work on some vectors in all-bank mode, then read their results."""
        return (*self.all_bank_part(first, vectors, depth), *self.read_back(first, vectors, depth))

    def all_bank_part(self, first: Affine, vectors: int, depth: int) -> Block:
        """Enter all-bank mode, multiply some vectors and leave; their results stay in rows of results."""
        work = repeat(vectors, depth, lambda index, inside: self._vector(plus(first, index), index, inside))
        return (*self.mode.enter(microkernel(self.shape.segments)), *work, *self.mode.leave())

    def read_back(self, first: Affine, vectors: int, depth: int) -> Block:
        """Read the results of some vectors and signal them."""
        return repeat(vectors, depth, lambda index, inside: self._read_back(plus(first, index), index, inside))

    def _vector(self, vector: Affine, place: Affine, depth: int) -> Block:
        """Work on all groups, as many in a turn as results share a row."""
        rows = result_rows(self.shape.groups)

        def turn(index: Affine, inside: int, groups: int) -> Block:
            row = plus(self.mode.reserved(0), plus(times(place, rows), index))
            first = times(index, GROUPS_OF_ROW)
            return tuple(
                command
                for number in range(groups)
                for command in self._group(vector, first.plus(number), number, row, inside)
            )

        full, ragged = divmod(self.shape.groups, GROUPS_OF_ROW)
        turns = repeat(full, depth, lambda index, inside: turn(index, inside, GROUPS_OF_ROW))
        return (*turns, *(turn(Affine(full), depth, ragged) if ragged else ()))

    def _group(self, vector: Affine, group: Affine, number: int, result: Affine, depth: int) -> Block:
        """Multiply all segments, the last one peeled, and store the sums; `number` has the parity of the group."""
        shape, last = self.shape, self.shape.segments - 1
        step = 2 if shape.groups % 2 else 1  # segments after which tiles have the same lowest bit again

        def segment(index: Affine, parity: int, inside: int) -> Block:
            return self._tile(vector, group, index, parity, self.mode.window, inside)

        def turn(index: Affine, inside: int) -> Block:
            first = times(index, step)
            blocks = (segment(first.plus(offset), number + offset, inside) for offset in range(step))
            return tuple(command for block in blocks for command in block)

        full, ragged = divmod(last, step)
        head = repeat(full, depth, turn)
        rest = segment(Affine(full * step), number, depth) if ragged else ()
        odd_segments = last if step == 2 else 0
        final = self._tile(vector, group, Affine(last), number + odd_segments, result, depth)
        return (*head, *rest, *final, *self._store(result, number, depth))

    def _tile(self, vector: Affine, group: Affine, segment: Affine, parity: int, after: Affine, depth: int) -> Block:
        """Write the inputs of a segment and multiply a tile; the odd bank goes on to the row `after`."""
        even_row = plus(plus(self.at.row, times(segment, self.shape.groups)), group)
        odd_row = even_row.plus(other_row(parity))
        open_even, open_odd = self.mode.activate(EVEN, even_row), self.mode.activate(ODD, odd_row)
        close_odd, open_after = self.mode.close(ODD), self.mode.activate(ODD, after)
        writes = self._inputs(vector, segment, parity, depth)
        half = HALF_ROW * REGISTERS

        def even(start: int, end: int) -> Block:
            return self._multiply(EVEN, even_row, start, end - start, depth)

        odd = self._multiply(ODD, odd_row, 0, ROW_COLUMNS, depth)
        if not self.preactivate:
            first = (*writes, open_even, *even(0, half), close_odd, open_odd, *odd)
            return (*first, *even(half, ROW_COLUMNS), CLOSE_ALL, open_after)
        return (
            *writes[:2],
            open_even,
            *writes[2:],
            *even(0, CLOSES_BEHIND),
            close_odd,
            *even(CLOSES_BEHIND, OPENS_BEHIND),
            open_odd,
            *even(OPENS_BEHIND, half),
            *odd,
            close_odd,
            *even(half, half + WINDOW_BEHIND),
            open_after,
            *even(half + WINDOW_BEHIND, ROW_COLUMNS),
            self.mode.close(EVEN),
        )

    def _inputs(self, vector: Affine, segment: Affine, parity: int, depth: int) -> Block:
        """Wait for a segment and write its columns to the registers in which they are visited."""
        shape = self.shape
        data = plus(self.at.input_column, times(vector, shape.total_columns))
        data = plus(data, times(segment, REGISTERS))
        event = plus(plus(self.at.wait_event, times(vector, shape.segments)), segment)
        registers = VISITED[parity % 2]
        writes = (self.mode.window_write(INPUTS_COLUMN + registers[i], data.plus(i)) for i in range(REGISTERS))
        return (Command(Kind.WAIT, event=event), *writes)

    def _store(self, result: Affine, number: int, depth: int) -> Block:
        """Store the sums, and switch off and on, whereupon the next group may begin."""
        first = number % GROUPS_OF_ROW * REGISTERS
        stores = [Command(Kind.ST8, Affine(ODD), result, Affine(first + index)) for index in range(REGISTERS)]
        switched = (self.mode.switch(False), self.mode.switch(True))
        closed = (self.mode.close(ODD), self.mode.close(EVEN), self.mode.activate(ODD, self.mode.window))
        return (stores[0], self.mode.activate(EVEN, self.mode.window), *stores[1:], *switched, *closed)

    def _read_back(self, vector: Affine, place: Affine, depth: int) -> Block:
        """Read the rows of results of a vector, bank groups in turn, and signal their groups."""
        shape, rows = self.shape, result_rows(self.shape.groups)
        order = [unit for start in range(BANKS_OF_UNIT) for unit in range(start, self.units, BANKS_OF_UNIT)]
        banks = {unit: Affine(BANKS_OF_UNIT * unit + ODD) for unit in order}
        entries = plus(self.at.output, times(vector, shape.slots * self.units))

        def row_of(index: Affine, inside: int, groups: int) -> Block:
            row = plus(self.mode.reserved(0), plus(times(place, rows), index))
            first = plus(entries, times(index, ROW_COLUMNS * self.units))

            def column_of(column: Affine, _: int) -> Block:
                data = plus(first, times(column, self.units))
                return tuple(
                    Command(Kind.RD, bank=banks[unit], row=row, column=column, data=data.plus(unit)) for unit in order
                )

            reads = repeat(groups * REGISTERS, inside, column_of)
            opened = (Command(Kind.ACT, bank=banks[unit], row=row) for unit in order)
            event = plus(self.at.signal_event, plus(times(vector, shape.groups), times(index, GROUPS_OF_ROW)))
            signals = (Command(Kind.SIGNAL, event=event.plus(number)) for number in range(groups))
            return (*opened, *reads, CLOSE_ALL, *signals)

        full, ragged = divmod(shape.groups, GROUPS_OF_ROW)
        whole = repeat(full, depth, lambda index, inside: row_of(index, inside, GROUPS_OF_ROW))
        return (*whole, *(row_of(Affine(full), depth, ragged) if ragged else ()))

    def _multiply(self, bank: int, row: Affine, first: int, count: int, depth: int) -> Block:
        def one(column: Affine, _: int) -> Block:
            return (Command(Kind.RD8, Affine(bank), row, column.plus(first)),)

        return repeat(count, depth, one)
