"""How long weights take to load and a prefill's K and V to reach their places: links against channels.

A link carries what is stored, without padding, in equal shares for the devices. The channels write whole slots, zeros
in the padding: one activate of all banks, or one of each where no command opens all, then columns to the banks of all
groups in turn, then a precharge. Programs
are simulated whole, with refresh; link and channels overlap, so that the slower one is the time. Prefill hands over K
and V token by token:

    K    a token's values are columns of one bank: rows of tokens are written like weights
    V    a token's values are one lane of many columns: written one by one as decoding does (WRA16), or like weights
         once the host has gathered as many tokens as a column has lanes
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from compiler.attention import AttentionGeometry, AttentionShape, attention_geometry
from compiler.emission import Block, plus, repeat, times
from compiler.geometry import ceil_div
from compiler.lowering import System
from compiler.memory.plan import Loading
from compiler.schedule import AttentionSchedule
from configs.device import Organisation
from configs.microkernel_units import REGISTERS
from simulator.engine import Engine
from simulator.isa import Affine, Command, Kind, Program
from simulator.program_code import flatten

NO_EVENTS = np.zeros(0, dtype=np.int64)


class Loader:
    """Times loads on one system; raises ValueError for a device without link."""

    def __init__(self, system: System) -> None:
        """Make the engine once."""
        if system.device.link is None:
            raise ValueError(f"{system.device.name} has no link section")
        self.system, self.link = system, system.device.link
        self.engine = Engine(system.device)

    def weights(self, size: int, rows: int) -> Loading:
        """Return the time of so many bytes that take so many whole rows of every bank."""
        organisation = self.system.device.organisation
        writes = row_writes(organisation, rows, organisation.columns, one_by_one=self.system.pool.runs_microkernels)
        return self._loading("weights", size, writes)

    def prefill(self, shape: AttentionShape, schedule: AttentionSchedule, copies: int) -> Iterator[Loading]:
        """Yield the times of K, of V written as it comes and of V gathered by the host, for the tokens there are."""
        organisation = self.system.device.organisation
        sizes = attention_geometry(shape, schedule, self.system.pool)
        units = copies * int(sizes.units_per_channel)
        key_size, value_size = copies * shape.k_bytes, copies * shape.v_bytes
        tokens, lanes = ceil_div(shape.tokens, schedule.token_split), self.system.pool.lanes
        if self.system.pool.runs_microkernels:
            rows = ceil_div(tokens, sizes.score.slots_per_row * sizes.score.banks)
            keys = row_writes(organisation, units * rows, organisation.columns, one_by_one=True)
            values = repeat(units * tokens * sizes.context.groups * sizes.context.banks, 0, _column)
            rows = ceil_div(tokens, lanes * sizes.context.segment_columns) * sizes.context.groups
            gathered = row_writes(organisation, units * rows, organisation.columns, one_by_one=True)
        else:
            keys = repeat(units, 0, lambda _, depth: _key_rows(sizes, organisation, tokens, depth))
            values = repeat(units * tokens * sizes.context.slots, 0, lambda index, _: _write_by_value(index))
            gathered = repeat(units, 0, lambda _, depth: _value_rows(sizes, organisation, tokens, lanes, depth))
        yield self._loading(f"{shape.name}.prefill_key", key_size, keys)
        yield self._loading(f"{shape.name}.prefill_value_by_token", value_size, values)
        yield self._loading(f"{shape.name}.prefill_value_gathered", value_size, gathered)

    def _loading(self, name: str, size: int, body: Block) -> Loading:
        link_ns = size / self.system.devices / self.link.bandwidth_gb_per_s + self.link.latency_ns
        cycles = self._cycles(body)
        return Loading(name, size, link_ns if size else 0.0, cycles, self.system.device.nanoseconds(cycles))

    def _cycles(self, body: Block) -> int:
        if not body:
            return 0
        return int(self.engine.run(flatten(Program(body)), self.engine.fresh_state(), NO_EVENTS).completed)


def row_writes(
    organisation: Organisation, rows: int, columns: int, depth: int = 0, *, one_by_one: bool = False
) -> Block:
    """Return the writing of so many columns of so many rows of every bank: neighbours in time differ in bank group."""
    groups = organisation.banks // organisation.banks_per_group

    def row(number: Affine, inside: int) -> Block:
        def write(column: Affine, bank: Affine, group: Affine) -> Block:
            bank = plus(bank, times(group, organisation.banks_per_group))
            return (Command(Kind.WR, bank=bank, row=number, column=column),)

        writes = repeat(
            columns,
            inside,
            lambda column, deeper: repeat(
                organisation.banks_per_group,
                deeper,
                lambda bank, deepest: repeat(groups, deepest, lambda group, _: write(column, bank, group)),
            ),
        )
        return (*opened(number, inside), *writes, Command(Kind.PREA))

    def opened(number: Affine, inside: int) -> Block:
        if not one_by_one:
            return (Command(Kind.ACT16, row=number),)
        return repeat(organisation.banks, inside, lambda bank, _: (Command(Kind.ACT, bank=bank, row=number),))

    return repeat(rows, depth, row)


def _key_rows(sizes: AttentionGeometry, organisation: Organisation, tokens: int, depth: int) -> Block:
    """Return the writing of one unit's K: full rows of slots, then a ragged one."""
    columns = sizes.score.segment_stride // sizes.score.packing.per_column
    full, ragged = divmod(ceil_div(tokens, organisation.banks), sizes.score.slots_per_row)
    rows = row_writes(organisation, full, sizes.score.slots_per_row * columns, depth)
    return (*rows, *row_writes(organisation, 1 if ragged else 0, ragged * columns, depth))


def _value_rows(sizes: AttentionGeometry, organisation: Organisation, tokens: int, lanes: int, depth: int) -> Block:
    """Return the writing of one unit's V: full segments, then a ragged one."""
    context = sizes.context
    full, ragged = divmod(ceil_div(tokens, lanes), context.segment_columns)
    columns, tail = (
        context.slots_per_row * ceil_div(count, context.packing.per_column)
        for count in (context.segment_columns, ragged)
    )
    rows = row_writes(organisation, full * context.rows_per_segment, columns, depth)
    return (*rows, *row_writes(organisation, context.rows_per_segment if ragged else 0, tail, depth))


def _write_by_value(row: Affine) -> Block:
    return (Command(Kind.ACT16, row=row), Command(Kind.WRA16, row=row))


def _column(row: Affine, depth: int) -> Block:
    """Return the writing of a token's values in one bank of a unit: a column for each output of a tile."""
    opened, written = Command(Kind.ACT, row=row), Command(Kind.WR, row=row)
    return (opened, *repeat(REGISTERS, depth, lambda column, _: (replace(written, column=column),)), Command(Kind.PRE))
