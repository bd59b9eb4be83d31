"""Where values lie: matrices and caches in the cells of a channel, vectors and results in its host memories.

Which channel holds what, in a pool of C channels:

    linear      channel = output group * reduction_split + part; outputs are cut into C / reduction_split contiguous
                blocks of ceil(N / groups), inputs into reduction_split contiguous blocks of ceil(K / split), padded
                with zeros
    attention   channel = unit group * token_split + part; units (KV heads of all sequences) are cut into contiguous
                blocks of units_per_channel; token t of a unit is token t div token_split of part t mod token_split

Loading a matrix writes every place that its kernel reads, zeros where there is no value; the regions of K and V caches
are cleared once for all the tokens they have room for. Nothing else is written.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.geometry import PLAIN, Geometry, Packing, ceil_div
from compiler.hbm_pim.values import added_lanes, place_microkernel_matrix
from compiler.kernel_events import PIECE_COLUMNS, last_parts, pieces, read_slots, written_columns
from compiler.schedule import PoolShape
from simulator.functional import Channel, ChannelSizes, FunctionalChannel
from simulator.hbm_pim.state import MicrokernelChannel

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Block:
    """The part of a matrix or of a cache that one channel holds: `outer` and `inner` number its group and part."""

    outer: int
    inner: int


def block_of(channel: int, split: int) -> Block:
    """Return which group and which part of a split reduction (or of the tokens) a channel holds."""
    return Block(channel // split, channel % split)


def matrix_block(weights: Floats, block: Block, groups: int, split: int) -> Floats:
    """Return the block's part of weights[n, k]; ragged parts are shorter, and may be empty."""
    outputs, inputs = (ceil_div(size, count) for size, count in zip(weights.shape, (groups, split), strict=True))
    rows = slice(block.outer * outputs, (block.outer + 1) * outputs)
    return weights[rows, block.inner * inputs : (block.inner + 1) * inputs]


def token_block(values: Floats, part: int, split: int) -> Floats:
    """Return the tokens (axis 0) that a part holds, in its own order."""
    return values[part::split]


def padded(values: Floats, rows: int, width: int) -> Floats:
    """Return a matrix with zeros below and to the right."""
    result = np.zeros((rows, width), dtype=np.float32)
    result[: values.shape[0], : values.shape[1]] = values
    return result


def place_matrix(
    channel: Channel, first_row: int, weights: Floats, shape: Geometry, scales: Floats | None = None
) -> None:
    """Write weights[n, k] of one channel where its kernel reads them, zeros in all padding; scales[n, group] likewise.

    Scales of padding are 1.
    """
    if isinstance(channel, MicrokernelChannel):
        place_microkernel_matrix(channel, first_row, weights, shape)
        return
    sizes = channel.sizes
    whole = padded(weights, shape.slots * sizes.banks, shape.total_columns * sizes.lanes)
    values = whole.reshape(shape.slots, sizes.banks, shape.total_columns, sizes.lanes)
    slots = np.arange(shape.slots)[:, None]
    for segment in range(shape.segments):
        tail = segment == shape.segments - 1
        per_row = shape.tail_slots_per_row if tail else shape.slots_per_row
        count = shape.tail_columns if tail else shape.segment_columns
        stride = shape.tail_stride if tail else shape.segment_stride
        rows = first_row + segment * shape.rows_per_segment + slots // per_row
        start = segment * shape.segment_columns
        inside = np.arange(count)[None, :]
        if scales is not None:
            _place_scales(channel, rows, (slots % per_row) * stride, scales, shape, start, count)
            inside = inside + shape.packing.per_column * (inside // shape.packing.chunk + 1)
        columns = (slots % per_row) * stride + inside
        channel.cells[rows, columns] = values[:, :, start : start + count].transpose(0, 2, 3, 1)


def _place_scales(
    channel: FunctionalChannel,
    rows: NDArray[np.int64],
    firsts: NDArray[np.int64],
    scales: Floats,
    shape: Geometry,
    start: int,
    count: int,
) -> None:
    """Write the scales of one segment, which begins at column `start`: one column of the device before each chunk."""
    sizes, packed = channel.sizes, shape.packing
    first, groups = start // packed.group, ceil_div(count, packed.group)
    own = np.ones((shape.slots * sizes.banks, groups), dtype=np.float32)
    given = scales[:, first : first + groups]
    own[: given.shape[0], : given.shape[1]] = given
    own = own.reshape(shape.slots, sizes.banks, groups)
    per_chunk = packed.chunk // packed.group
    for group in range(groups):
        chunk, place = divmod(group, per_chunk)
        access, lane = divmod(place, sizes.lanes)
        columns = firsts + chunk * (packed.chunk + packed.per_column) + access
        channel.cells[rows, columns, lane] = own[:, :, group][:, None, :]


def vector_columns(vectors: Floats, shape: Geometry, lanes: int) -> Floats:
    """Return host input entries of vectors[v, k]: total_columns columns per vector, zeros behind the last value."""
    return padded(vectors, len(vectors), shape.total_columns * lanes).reshape(-1, lanes)


def values_by_bank(values: Floats, shape: Geometry, banks: int) -> Floats:
    """Return host entries with one value of each bank per slot, for values[n] of one token."""
    return padded(values[None, :], 1, shape.slots * banks).reshape(-1, banks)


def read_outputs(entries: Floats, shape: Geometry, outputs: int) -> Floats:
    """Return y[v, n] from host output entries (vector * slots + slot) of one kernel."""
    if shape.runs_microkernels:
        return added_lanes(entries, shape)[:, :outputs]
    return entries.reshape(shape.vectors, -1)[:, :outputs]


def output_entry(vector: int, output: int, shape: Geometry) -> tuple[int, int]:
    """Return entry and bank of one output of one kernel."""
    slot, bank = divmod(output, shape.banks)
    if shape.runs_microkernels:
        return (vector * shape.slots + slot) * shape.banks + bank, 0
    return vector * shape.slots + slot, bank


def input_events(shape: Geometry, units: int = 1) -> NDArray[np.int64]:
    """Return the event that delivers each host input of a kernel's units: a piece of one vector's segment."""
    vectors, columns = np.divmod(np.arange(shape.vectors * shape.total_columns), shape.total_columns)
    groups, own = np.divmod(vectors, shape.reuse)
    segments, inside = np.divmod(columns, shape.segment_columns)
    full, tail = len(pieces(shape.segment_columns)), len(pieces(shape.tail_columns))
    events = len(written_columns(shape))
    before = groups * (events // shape.vector_groups) + segments * shape.reuse * full
    of_vector = np.where(segments == shape.segments - 1, tail, full)
    return _of_units(before + own * of_vector + inside // PIECE_COLUMNS, events, units)


def output_events(shape: Geometry, units: int = 1) -> NDArray[np.int64]:
    """Return the event that hands over each host output of a kernel's units: one per vector and part of the outputs."""
    vectors, slots = np.divmod(np.arange(shape.vectors * shape.slots), shape.slots)
    own = vectors // shape.reuse * shape.groups + slots // shape.group_slots
    in_last = slots - (shape.groups - 1) * shape.group_slots
    part = np.searchsorted(np.cumsum(last_parts(shape)), in_last, side="right")
    last = own == shape.vector_groups * shape.groups - 1
    of_entry = np.repeat(own + np.where(last, part, 0), shape.results_of_slot)
    return _of_units(of_entry, len(read_slots(shape)), units)


def _of_units(events: NDArray[np.int64], per_unit: int, units: int) -> NDArray[np.int64]:
    return (np.arange(units)[:, None] * per_unit + events[None, :]).ravel()


def channel_sizes(pool: PoolShape, rows: int, packed: Packing = PLAIN) -> ChannelSizes:
    """Return the sizes of a functional channel of a pool with so many rows in use."""
    accesses = packed.per_column
    return ChannelSizes(
        banks=pool.banks,
        rows=rows,
        columns=pool.columns * accesses,
        lanes=pool.lanes,
        buffer_columns=pool.buffer_columns,
        accumulators=pool.accumulators,
        accesses_per_column=accesses,
        column_accesses=pool.column_accesses,
        microkernel_words=pool.microkernel_words,
    )
