"""Attention of one decode step: append, score and context on the units, softmax and cross-channel sums on the host.

K rows hold tokens: a token's head_dim values lie in one slot of one bank, so that scores are a kernel whose outputs are
tokens. V rows hold dimensions along the tokens, so that the context is a kernel whose inputs are tokens. Token t lives
in channel t mod token_split of its unit; a unit is one KV head of one sequence.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.geometry import Geometry, ceil_div, geometry
from compiler.host_cost import host_work_ns
from compiler.matvec import Block, MatVecKernel, Operands, plus, repeat, times
from compiler.schedule import AttentionSchedule, LoopOrder, Place, PoolShape, schedule_text
from configs.device import Host
from simulator.isa import Affine, Command, Kind, Program
from simulator.step import HostPhase, Phase, PimPhase

# Exponential, sum, maximum, scale and division per score: host operations counted per score.
SOFTMAX_OPERATIONS = 10


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """One attention operator: `tokens` are attended by `heads` query heads of `batch` sequences.

    The cache has room for `capacity` tokens, or just for those attended where that is less: places depend on the room,
    so that a cache that grows within it stays where it is.
    """

    name: str
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    tokens: int
    value_bytes: int = 2
    capacity: int = 0

    @property
    def room(self) -> int:
        """Tokens that the cache has places for."""
        return max(self.tokens, self.capacity)

    @property
    def units(self) -> int:
        """KV heads of all sequences."""
        return self.batch * self.kv_heads

    @property
    def group(self) -> int:
        """Query heads that share one KV head."""
        return self.heads // self.kv_heads

    @property
    def kv_bytes(self) -> int:
        """Bytes of K and V that one step reads."""
        return 2 * self.units * self.tokens * self.head_dim * self.value_bytes


@dataclass(frozen=True, slots=True)
class AttentionGeometry:
    """Both kernels of one unit on one channel, rows of its K and V, how units lie over channels (ints or arrays)."""

    score: Geometry
    context: Geometry
    key_rows: Any
    value_rows: Any
    units_per_channel: Any
    active_channels: Any

    @property
    def rows(self) -> Any:
        """Rows of every bank that K and V of the channel's units occupy."""
        return self.units_per_channel * (self.key_rows + self.value_rows)


def attention_geometry(shape: AttentionShape, schedule: AttentionSchedule, pool: PoolShape) -> AttentionGeometry:
    """Return the geometry of the operator on the units (records may hold arrays)."""
    tokens = ceil_div(shape.tokens, schedule.token_split)
    unit_groups = np.maximum(pool.channels // schedule.token_split, 1)
    units_per_channel = ceil_div(shape.units, unit_groups)
    score = geometry(
        pool,
        tokens,
        shape.head_dim,
        shape.group,
        segment_columns=ceil_div(shape.head_dim, pool.lanes),
        reuse=schedule.score_reuse,
        registers=schedule.registers,
        order=LoopOrder.RELOAD,
    )
    context = geometry(
        pool,
        shape.head_dim,
        tokens,
        shape.group,
        segment_columns=schedule.context_segment_columns,
        reuse=schedule.context_reuse,
        registers=schedule.registers,
        order=LoopOrder.RELOAD,
        growing=True,
    )
    room = ceil_div(shape.room, schedule.token_split)
    key_rows = ceil_div(ceil_div(room, pool.banks), score.slots_per_row)
    value_rows = ceil_div(ceil_div(room, pool.lanes), context.segment_columns) * context.rows_per_segment
    active = shape.units * schedule.token_split / units_per_channel
    return AttentionGeometry(score, context, key_rows, value_rows, units_per_channel, active)


@dataclass(frozen=True, slots=True)
class AttentionLowering:
    """Emits the phases of one operator; `position` is the index of the newest token."""

    shape: AttentionShape
    schedule: AttentionSchedule
    pool: PoolShape
    devices: int
    host: Host
    first_row: int = 0

    @property
    def sizes(self) -> AttentionGeometry:
        """The geometry of both kernels."""
        return attention_geometry(self.shape, self.schedule, self.pool)

    def append_phases(self) -> tuple[Phase, ...]:
        """Write the newest token's K: its columns in one bank of each unit, on the channel that holds the token."""
        if self.schedule.place is Place.HOST:
            moved = 2 * self.shape.units * self.shape.head_dim * self.shape.value_bytes * 2
            return (HostPhase("kv append on host", self.shape.name, host_work_ns(self.host, moved, 0), launch=False),)
        return (self._append_phase("k append", self.key_append()),)

    def attend_phases(self) -> tuple[Phase, ...]:
        """Scores, the newest V while the host does its softmax, then the context and sums over token splits."""
        if self.schedule.place is Place.HOST:
            return (HostPhase("attention on host", self.shape.name, self._host_attention_ns(), launch=True),)
        phases = (
            self._kernel_phase("score", self.score_program(), self.sizes.score),
            self._append_phase("v append", self.value_append()),
            HostPhase("softmax", self.shape.name, self._softmax_ns(), launch=True),
            self._kernel_phase("context", self.context_program(), self.sizes.context),
        )
        if self.schedule.token_split == 1:
            return phases
        sums_ns = context_sum_ns(self.shape, self.schedule.token_split, self.host)
        return (*phases, HostPhase("context sums", self.shape.name, sums_ns, launch=True))

    def score_program(self) -> Program:
        """Return the score kernel of every unit of a channel; K regions lie unit after unit from the first row."""
        return self._over_units("score", self.sizes.score, Affine(self.first_row), self.sizes.key_rows)

    def context_program(self) -> Program:
        """Return the context kernel of every unit of a channel; V regions lie behind all K regions."""
        first_row = Affine(self.first_value_row)
        return self._over_units("context", self.sizes.context, first_row, self.sizes.value_rows)

    def key_append(self) -> Program:
        """Return the write of the newest token's K."""
        score = self.sizes.score
        local = (self.shape.tokens - 1) // self.schedule.token_split
        slot, bank = divmod(local, self.pool.banks)
        row, place = divmod(slot, score.slots_per_row)

        def unit(index: Affine, depth: int) -> Block:
            bank_row = plus(Affine(self.first_row + row), times(index, self.sizes.key_rows))
            data = times(index, score.total_columns)
            writes = repeat(
                score.total_columns,
                depth,
                lambda column, _: (
                    Command(
                        Kind.WR,
                        bank=Affine(bank),
                        row=bank_row,
                        column=column.plus(place * score.segment_columns),
                        data=plus(data, column),
                    ),
                ),
            )
            opened = Command(Kind.ACT, bank=Affine(bank), row=bank_row)
            return (opened, *writes, Command(Kind.PRE, bank=Affine(bank), row=bank_row))

        body = repeat(self.sizes.units_per_channel, 0, unit)
        return Program((Command(Kind.WAIT), *body), f"{self.shape.name} k append {schedule_text(self.schedule)}")

    def value_append(self) -> Program:
        """Return the write of the newest token's V: one value of each dimension, every bank at once."""
        context = self.sizes.context
        local = (self.shape.tokens - 1) // self.schedule.token_split
        column, lane = divmod(local, self.pool.lanes)
        segment, inside = divmod(column, context.segment_columns)
        first = self.first_value_row + segment * context.rows_per_segment

        def unit(index: Affine, depth: int) -> Block:
            def row_of(number: Affine, deeper: int, slots: int) -> Block:
                row = plus(plus(Affine(first), times(index, self.sizes.value_rows)), number)
                data = plus(times(index, context.slots), times(number, context.slots_per_row))
                return repeat(
                    slots,
                    deeper,
                    lambda slot, _: (
                        Command(Kind.ACT16, row=row),
                        Command(
                            Kind.WRA16,
                            row=row,
                            column=times(slot, context.segment_columns).plus(inside),
                            lane=Affine(lane),
                            data=plus(data, slot),
                        ),
                    ),
                )

            full, ragged = divmod(context.slots, context.slots_per_row)
            rows = repeat(full, depth, lambda number, deeper: row_of(number, deeper, context.slots_per_row))
            return (*rows, *row_of(Affine(full), depth, ragged))

        body = repeat(self.sizes.units_per_channel, 0, unit)
        return Program((Command(Kind.WAIT), *body), f"{self.shape.name} v append {schedule_text(self.schedule)}")

    @property
    def first_value_row(self) -> int:
        """The row at which the V regions begin, behind all K regions."""
        sizes = self.sizes
        return int(self.first_row + sizes.units_per_channel * sizes.key_rows)

    def _over_units(self, name: str, kernel: Geometry, first_row: Affine, rows: int) -> Program:
        waits, signals = kernel.vector_groups * kernel.segments, kernel.vector_groups * kernel.groups

        def unit(index: Affine, depth: int) -> Block:
            operands = Operands(
                row=plus(first_row, times(index, rows)),
                input_column=times(index, kernel.vectors * kernel.total_columns),
                output=times(index, kernel.vectors * kernel.slots),
                depth=depth,
                wait_event=times(index, waits),
                signal_event=times(index, signals),
            )
            return MatVecKernel(kernel, operands, self.schedule.preactivate).emit()

        body = repeat(self.sizes.units_per_channel, 0, unit)
        return Program(body, f"{self.shape.name} {name} {schedule_text(self.schedule)}")

    def _kernel_phase(self, name: str, program: Program, kernel: Geometry) -> PimPhase:
        """Inputs go once to the channels that share a unit's tokens when scoring, to each its own for the context."""
        sizes, value = self.sizes, self.shape.value_bytes
        copies = sizes.active_channels / self.schedule.token_split if name == "score" else sizes.active_channels
        column = kernel.reuse * self.pool.lanes * value * copies / self.devices
        full, tail = int(kernel.segment_columns * column), int(kernel.tail_columns * column)
        down = (*(full,) * (kernel.segments - 1), tail) * (kernel.vector_groups * sizes.units_per_channel)
        entry = kernel.reuse * self.pool.banks * value * sizes.active_channels / self.devices
        last = kernel.slots - (kernel.groups - 1) * kernel.group_slots
        chunks = (*(int(kernel.group_slots * entry),) * (kernel.groups - 1), int(last * entry))
        up = chunks * (kernel.vector_groups * sizes.units_per_channel)
        return PimPhase(
            f"{self.shape.name} {name}", self.shape.name, program, down, up, active_channels=sizes.active_channels
        )

    def _append_phase(self, name: str, program: Program) -> PimPhase:
        moved = self.shape.units * self.shape.head_dim * self.shape.value_bytes
        active = self.sizes.active_channels / self.schedule.token_split
        return PimPhase(
            f"{self.shape.name} {name}", self.shape.name, program, (ceil_div(moved, self.devices),), (), active
        )

    def _softmax_ns(self) -> float:
        return float(softmax_ns(self.shape, self.host))

    def _host_attention_ns(self) -> float:
        return float(host_attention_ns(self.shape, self.host))


def softmax_ns(shape: AttentionShape, host: Host) -> Any:
    """Return the host's time for the softmax of all scores: read once, written once."""
    scores = shape.batch * shape.heads * shape.tokens
    return host_work_ns(host, 2 * scores * shape.value_bytes, SOFTMAX_OPERATIONS * scores)


def context_sum_ns(shape: AttentionShape, split: Any, host: Host) -> Any:
    """Return the host's time to add the context parts of the channels that share a unit's tokens."""
    values = shape.batch * shape.heads * shape.head_dim
    return host_work_ns(host, values * shape.value_bytes * (split + 1), values * (split - 1))


def host_attention_ns(shape: AttentionShape, host: Host) -> Any:
    """Return the host's time for the whole operator with K and V in its own memory."""
    operations = 4 * shape.batch * shape.heads * shape.tokens * shape.head_dim
    return host_work_ns(host, shape.kv_bytes, operations, matrix=True) + softmax_ns(shape, host)
