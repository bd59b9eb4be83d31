"""The room of one copy of every stored tensor: rows of every bank, how it lies over the channels, and what is padding.

The arithmetic that `compiler.memory.capacity` sums up and `compiler.memory.planner` lays out; sizes are those of the
kernels' own closed form. Rows are taken in every channel of the pool, whether or not it holds part of the tensor.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from compiler.attention import AttentionShape, attention_geometry
from compiler.geometry import Geometry, ceil_div
from compiler.linear import LinearShape, kernel_outputs, linear_geometry
from compiler.lowering import embedding_columns
from compiler.schedule import AttentionSchedule, LinearSchedule, PoolShape
from compiler.workload import VALUE_BYTES, EmbeddingShape
from configs.device import Organisation

NO_ROOM = 1 << 40


class Tensor(StrEnum):
    """What a region holds: a matrix, K or V of a cache, the table of embeddings."""

    WEIGHT = "weight"
    KEY = "key"
    VALUE = "value"
    TABLE = "table"


CACHES = (Tensor.KEY, Tensor.VALUE)


@dataclass(frozen=True, slots=True)
class RoomBytes:
    """Where the bytes of a room go, over all channels; they add up to its rows exactly.

    `growth` is kept for tokens to come. The rest is padding, from the outside in: `channels` is what ragged blocks and
    idle channels leave; `slots` what rounding to banks, to columns of lanes and to columns of scales leaves; `rows` are
    the columns at the end of rows.
    """

    stored: int
    growth: int
    channels: int
    slots: int
    rows: int

    def __add__(self, other: "RoomBytes") -> "RoomBytes":
        """Return the sums."""
        return RoomBytes(*(getattr(self, name) + getattr(other, name) for name in RoomBytes.__slots__))

    @property
    def padding(self) -> int:
        """Bytes that will never hold anything."""
        return self.channels + self.slots + self.rows

    @property
    def total(self) -> int:
        """Bytes of the rows."""
        return self.stored + self.growth + self.padding


@dataclass(frozen=True, slots=True)
class Room:
    """One copy of one tensor: `groups` of outputs, or of KV heads, times `parts` of the reduction, or of the tokens.

    Channels 0 to groups x parts - 1 of the pool hold it, channel = group x parts + part. `matrix` counts the matrices
    of an operator that do not share a pass.
    """

    tensor: Tensor
    matrix: int
    rows: int
    groups: int
    parts: int
    size: RoomBytes


@dataclass(frozen=True, slots=True)
class PageSize:
    """What a cache grows by, alike in every copy and unit (KV head of a sequence): `rows` hold `tokens` more tokens."""

    tensor: Tensor
    rows: int
    tokens: int


def embedding_rows(shape: EmbeddingShape, pool: PoolShape) -> Any:
    """Return the rows per bank of the embedding table (records may hold arrays)."""
    tokens_per_row = pool.columns // embedding_columns(shape, pool)
    rows = ceil_div(shape.vocabulary, pool.banks * np.maximum(tokens_per_row, 1))
    # A table row wider than a bank row has no layout: more rows than any bank has make it illegal.
    return np.where(tokens_per_row > 0, rows, NO_ROOM)


def linear_rooms(
    shape: LinearShape, schedule: LinearSchedule, pool: PoolShape, organisation: Organisation
) -> tuple[Room, ...]:
    """Return the rooms of a linear operator's passes, in the order of their rows; heads lie one after the other."""
    rooms = []
    head = replace(shape, heads=1)
    parts = schedule.reduction_split
    for matrix, outputs in enumerate(kernel_outputs(shape, schedule.merged)):
        sizes = linear_geometry(shape, outputs, schedule, pool)
        share = ceil_div(outputs, max(pool.channels // parts, 1))
        stored = replace(head, parts=(outputs,)).weight_bytes
        block = replace(head, parts=(share,), inputs=ceil_div(shape.inputs, parts)).weight_bytes
        accesses = (sizes.segments - 1) * sizes.segment_stride + sizes.packing.stored(sizes.tail_columns)
        filled = pool.banks * sizes.slots * accesses * _access_bytes(sizes, organisation)
        rows, channels = int(sizes.rows), pool.channels
        size = _bytes(stored, stored, channels * block, channels * filled, _row_bytes(rows, pool, organisation))
        of_heads = RoomBytes(*(shape.heads * getattr(size, name) for name in RoomBytes.__slots__))
        rooms.append(Room(Tensor.WEIGHT, matrix, shape.heads * rows, ceil_div(outputs, share), parts, of_heads))
    return tuple(rooms)


def attention_rooms(
    shape: AttentionShape, schedule: AttentionSchedule, pool: PoolShape, organisation: Organisation
) -> tuple[Room, ...]:
    """Return the rooms of K and of V, for as many tokens as the cache has room for; those to come are growth."""
    sizes = attention_geometry(shape, schedule, pool)
    per_channel, parts = int(sizes.units_per_channel), schedule.token_split
    tokens = ceil_div(shape.room, parts)
    kept_batch = pool.channels * per_channel
    held = replace(shape, batch=kept_batch, heads=1, kv_heads=1, queries=1, tokens=tokens, capacity=0)
    key_columns = ceil_div(tokens, pool.banks) * sizes.score.segment_stride
    value_columns = sizes.context.slots * sizes.context.packing.stored(ceil_div(tokens, pool.lanes))
    banks = pool.channels * per_channel * pool.banks

    def room(tensor: Tensor, unit_rows: Any, bank_bytes: int) -> Room:
        rows = int(per_channel * unit_rows)
        kept = (shape, replace(shape, tokens=shape.room), held)
        stored, reserved, blocks = (item.k_bytes if tensor is Tensor.KEY else item.v_bytes for item in kept)
        size = _bytes(stored, reserved, blocks, banks * bank_bytes, _row_bytes(rows, pool, organisation))
        return Room(tensor, 0, rows, ceil_div(shape.units, per_channel), parts, size)

    return (
        room(Tensor.KEY, sizes.key_rows, key_columns * _access_bytes(sizes.score, organisation)),
        room(Tensor.VALUE, sizes.value_rows, value_columns * _access_bytes(sizes.context, organisation)),
    )


def page_sizes(shape: AttentionShape, schedule: AttentionSchedule, pool: PoolShape) -> tuple[PageSize, PageSize]:
    """Return what K and V grow by: a row of slots in every bank, and a segment of all dimensions."""
    sizes = attention_geometry(shape, schedule, pool)
    key_tokens = pool.banks * sizes.score.slots_per_row * schedule.token_split
    value_tokens = sizes.context.segment_columns * pool.lanes * schedule.token_split
    return (
        PageSize(Tensor.KEY, 1, int(key_tokens)),
        PageSize(Tensor.VALUE, int(sizes.context.rows_per_segment), int(value_tokens)),
    )


def embedding_room(shape: EmbeddingShape, pool: PoolShape, organisation: Organisation) -> Room:
    """Return the room of an embedding table; each channel holds a part of its every row."""
    rows, stored = int(embedding_rows(shape, pool)), shape.vocabulary * shape.width * VALUE_BYTES
    blocks = pool.channels * ceil_div(shape.width, pool.channels) * shape.vocabulary * VALUE_BYTES
    filled = pool.channels * shape.vocabulary * int(embedding_columns(shape, pool)) * organisation.column_bytes
    size = _bytes(stored, stored, blocks, filled, _row_bytes(rows, pool, organisation))
    return Room(Tensor.TABLE, 0, rows, 1, pool.channels, size)


def _access_bytes(sizes: Geometry, organisation: Organisation) -> int:
    return int(organisation.column_bytes // sizes.packing.per_column)


def _row_bytes(rows: int, pool: PoolShape, organisation: Organisation) -> int:
    return int(pool.channels * pool.banks * rows * pool.columns * organisation.column_bytes)


def _bytes(stored: int, reserved: int, blocks: int, filled: int, total: int) -> RoomBytes:
    """Return the differences: values now, values later, blocks of all channels, their slots, all rows."""
    return RoomBytes(stored, reserved - stored, blocks - reserved, int(filled) - blocks, total - int(filled))
