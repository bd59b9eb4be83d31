"""The closed form of a matrix-vector kernel on one channel: tiles, rows and command counts, for ints or arrays.

The kernel computes y[v, n] = sum_k W[n, k] x[v, k] for `outputs` n, `inputs` k and `vectors` v. Outputs are dealt to
the banks in turn, so that output n lives in bank n mod banks, slot n // banks. The K values of a slot fill columns of
`lanes` values, cut into segments of `segment_columns` columns; a row holds one segment of `slots_per_row` slots:

    row(segment, slot) = segment * rows_per_segment + slot // slots_per_row    column = (slot mod slots_per_row) * g + c

The last segment may be shorter and then packs more slots into a row. Slots are worked on in groups of `group_slots`,
as many as the accumulators in use hold for the `reuse` vectors that share an open row.

A column here is one access of `lanes` stored values, of which a column of the device holds one or more in a 16-bit
format, twice or four times as many in a narrower one (`Packing`). Where values share scales, a slot's columns stand in
chunks, each behind a column of the device that holds the chunk's scales and zero points, and g counts those too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.schedule import LoopOrder, PoolShape
from configs.number_format import INPUT_BITS, Storage, accesses_per_column

NO_SCALES = 0
FEWER_ROWS = 4  # behind each early read of the last group's sums come so many times fewer rows than behind another
MOST_EARLY_READS = 8


@dataclass(frozen=True, slots=True)
class Packing:
    """How stored values lie in a row, counted in accesses of `lanes` values; ints or arrays.

    `per_column` accesses make a column of the device. `group` accesses share a scale; `chunk` accesses have their
    scales in one column of the device. Both are NO_SCALES where no scales lie in rows.
    """

    per_column: Any = 1
    group: Any = NO_SCALES
    chunk: Any = NO_SCALES

    def stored(self, columns: Any) -> Any:
        """Return the accesses' worth of row that so many accesses take with their scales."""
        if not self.has_scales:
            return columns
        return (ceil_div(columns, self.per_column) + ceil_div(columns, self.chunk)) * self.per_column

    @property
    def has_scales(self) -> bool:
        """Whether scales lie in rows."""
        return not (isinstance(self.chunk, int) and self.chunk == NO_SCALES)


PLAIN = Packing()


def packing(storage: Storage, pool: PoolShape) -> Packing:
    """Return how a format lies in rows; meaningful only where a group of values is whole accesses."""
    per_column = plain(pool.column_accesses * accesses_per_column(storage))
    if not storage.group:
        return Packing(per_column)
    lanes = np.asarray(pool.lanes)
    group = np.maximum(storage.group // lanes, 1)
    scales_per_column = np.maximum(lanes * pool.column_accesses * INPUT_BITS // storage.group_bits, 1)
    return Packing(per_column, plain(group), plain(scales_per_column * group))


@dataclass(frozen=True, slots=True)
class Geometry:
    """Every derived size of a kernel; ints or integer arrays.

    With `whole_reads` the sums of the last group are read at once, not in parts: nothing waits for them. With `latched`
    multiplies work on second row buffers; each serves `together` vectors of the `reuse` that share a row.

    Units that keep `microkernel_words` run them (`compiler.hbm_pim`); the rows from `reserved_row` on hold no data.
    """

    vectors: Any
    reuse: Any
    banks: Any
    total_columns: Any
    segment_columns: Any
    segments: Any
    tail_columns: Any
    slots: Any
    slots_per_row: Any
    tail_slots_per_row: Any
    tail_stride: Any
    group_slots: Any
    groups: Any
    rows_per_segment: Any
    tail_rows: Any
    spills: Any
    segment_stride: Any
    packing: Packing = PLAIN
    whole_reads: bool = False
    latched: Any = False
    together: Any = 1
    microkernel_words: Any = 0
    reserved_row: Any = 0

    @property
    def results_of_slot(self) -> Any:
        """Output entries of a slot: one with a value of each bank, or one of each unit's partial sums."""
        return self.banks if self.runs_microkernels else 1

    @property
    def runs_microkernels(self) -> bool:
        """Whether units run microkernels: all of them do, or none."""
        return bool(np.any(self.microkernel_words))

    @property
    def output_entries(self) -> Any:
        """Entries of the host's output memory."""
        return self.vectors * self.slots * self.results_of_slot

    @property
    def rows(self) -> Any:
        """Rows of every bank that the matrix occupies."""
        return (self.segments - 1) * self.rows_per_segment + self.tail_rows

    @property
    def vector_groups(self) -> Any:
        """Passes over the matrix."""
        return self.vectors // self.reuse

    @property
    def turns(self) -> Any:
        """Multiplies of one column for all vectors that share a row."""
        return self.reuse // self.together


@dataclass(frozen=True, slots=True)
class KernelCounts:
    """Commands of one kernel on one channel, by kind; ints or arrays.

    `latch` is 0 where multiplies work on open rows, which are then precharged as often as they are activated.
    """

    activate: Any
    latch: Any
    mac: Any
    buffer_write: Any
    register_write: Any
    register_read: Any
    mode_change: Any
    scale: Any


def ceil_div(dividend: Any, divisor: Any) -> Any:
    """Return ceil(dividend / divisor) for positive ints or arrays."""
    return -(-dividend // divisor)


def geometry(
    pool: PoolShape,
    outputs: Any,
    inputs: Any,
    vectors: Any,
    *,
    segment_columns: Any,
    reuse: Any,
    registers: Any,
    order: Any,
    growing: bool = False,
    packed: Packing = PLAIN,
) -> Geometry:
    """Return the geometry of a kernel; meaningful only where `compiler.legality` finds nothing.

    A `growing` matrix gains inputs at every step (the V cache): its places must not depend on how many there are, so
    that segments keep their length and the last one is not packed.
    """
    total_columns = ceil_div(inputs, pool.lanes)
    segment = segment_columns if growing else np.minimum(segment_columns, total_columns)
    segments = ceil_div(total_columns, segment)
    tail = total_columns - (segments - 1) * segment
    slots = ceil_div(outputs, pool.banks)
    row_columns = pool.columns * packed.per_column
    stride, tail_stride = packed.stored(segment), packed.stored(segment if growing else tail)
    per_row = np.maximum(np.minimum(row_columns // stride, registers // reuse), 1)
    rows_in_registers = np.maximum(registers // (reuse * per_row), 1)
    tail_fit = np.maximum(np.minimum(row_columns // (tail_stride * per_row), rows_in_registers), 1)
    tail_fit = np.where((segments > 1) & (not growing), tail_fit, 1)
    group = (rows_in_registers // tail_fit) * tail_fit * per_row
    groups = ceil_div(slots, group)
    spills = (order == LoopOrder.SPILL) & (groups > 1) & (segments > 1)
    return Geometry(
        vectors=plain(vectors),
        reuse=plain(reuse),
        banks=plain(pool.banks),
        total_columns=plain(total_columns),
        segment_columns=plain(segment),
        segments=plain(segments),
        tail_columns=plain(tail),
        slots=plain(slots),
        slots_per_row=plain(per_row),
        tail_slots_per_row=plain(tail_fit * per_row),
        tail_stride=plain(tail_stride),
        group_slots=plain(group),
        groups=plain(groups),
        rows_per_segment=plain(ceil_div(slots, per_row)),
        tail_rows=plain(ceil_div(slots, tail_fit * per_row)),
        spills=plain(spills),
        segment_stride=plain(stride),
        packing=packed,
        latched=plain(pool.latched),
        together=plain(vectors_together(reuse, pool.vectors_per_multiply)),
    )


def vectors_together(reuse: Any, most: Any) -> Any:
    """Return how many vectors a multiply serves: the largest divisor of the reuse that units can."""
    together: Any = 1
    for count in range(2, int(np.max(most)) + 1):
        together = np.where((count <= np.asarray(most)) & (np.asarray(reuse) % count == 0), count, together)
    return together


def kernel_counts(shape: Geometry) -> KernelCounts:
    """Return the command counts of the kernel that `compiler.matvec` emits."""
    visits = (shape.segments - 1) * shape.rows_per_segment + shape.tail_rows
    loads = np.where(shape.spills | (shape.segments == 1), 1, shape.groups)
    moves = np.where(shape.spills, shape.segments, 1) * shape.vectors * shape.slots
    return KernelCounts(
        activate=shape.vector_groups * visits,
        latch=np.where(shape.latched, shape.vector_groups * visits, 0),
        mac=shape.vector_groups * shape.turns * shape.slots * shape.total_columns,
        buffer_write=shape.vectors * shape.total_columns * loads,
        register_write=moves,
        register_read=moves,
        mode_change=2 + 2 * shape.vector_groups * shape.groups * shape.segments + 2 * early_reads(shape),
        scale=shape.vector_groups * shape.slots * _chunks(shape),
    )


def early_reads(shape: Geometry) -> Any:
    """Return how often sums of the last group are read before its last row: behind all but 1, 4, 16, ... rows."""
    if shape.whole_reads:
        return 0
    last = shape.slots - (shape.groups - 1) * shape.group_slots
    rows = ceil_div(last, shape.tail_slots_per_row)
    return sum((rows > FEWER_ROWS**power) * 1 for power in range(MOST_EARLY_READS))


def _chunks(shape: Geometry) -> Any:
    """Return the columns of scales that one slot has over all its segments."""
    if not shape.packing.has_scales:
        return 0
    chunk = shape.packing.chunk
    return (shape.segments - 1) * ceil_div(shape.segment_columns, chunk) + ceil_div(shape.tail_columns, chunk)


def plain(value: Any) -> Any:
    """Return Python scalars for zero-dimensional results, so that lowering works on ints."""
    return (
        value.item() if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0) else value
    )
