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

from compiler.geometry import Geometry, ceil_div
from compiler.schedule import PoolShape
from simulator.functional import ChannelSizes, FunctionalChannel

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


def place_matrix(channel: FunctionalChannel, first_row: int, weights: Floats, shape: Geometry) -> None:
    """Write weights[n, k] of one channel where its kernel reads them, zeros in all padding."""
    sizes = channel.sizes
    whole = padded(weights, shape.slots * sizes.banks, shape.total_columns * sizes.lanes)
    values = whole.reshape(shape.slots, sizes.banks, shape.total_columns, sizes.lanes)
    slots = np.arange(shape.slots)[:, None]
    for segment in range(shape.segments):
        tail = segment == shape.segments - 1
        per_row = shape.tail_slots_per_row if tail else shape.slots_per_row
        count = shape.tail_columns if tail else shape.segment_columns
        stride = shape.tail_stride if tail else shape.segment_columns
        rows = first_row + segment * shape.rows_per_segment + slots // per_row
        columns = (slots % per_row) * stride + np.arange(count)[None, :]
        start = segment * shape.segment_columns
        channel.cells[rows, columns] = values[:, :, start : start + count].transpose(0, 2, 3, 1)


def vector_columns(vectors: Floats, shape: Geometry, lanes: int) -> Floats:
    """Return host input entries of vectors[v, k]: total_columns columns per vector, zeros behind the last value."""
    return padded(vectors, len(vectors), shape.total_columns * lanes).reshape(-1, lanes)


def values_by_bank(values: Floats, shape: Geometry, banks: int) -> Floats:
    """Return host entries with one value of each bank per slot, for values[n] of one token."""
    return padded(values[None, :], 1, shape.slots * banks).reshape(-1, banks)


def read_outputs(entries: Floats, shape: Geometry, outputs: int) -> Floats:
    """Return y[v, n] from host output entries (vector * slots + slot) of one kernel."""
    return entries.reshape(shape.vectors, -1)[:, :outputs]


def output_entry(vector: int, output: int, shape: Geometry) -> tuple[int, int]:
    """Return entry and bank of one output of one kernel."""
    slot, bank = divmod(output, shape.banks)
    return vector * shape.slots + slot, bank


def channel_sizes(pool: PoolShape, rows: int) -> ChannelSizes:
    """Return the sizes of a functional channel of a pool with so many rows in use."""
    return ChannelSizes(pool.banks, rows, pool.columns, pool.lanes, pool.buffer_columns, pool.accumulators)
