"""How long a channel must be busy with a matrix-vector kernel, whatever its program: the theorem of the lower bounds.

In every bank a channel multiplies `outputs` rows of a matrix by `inputs` columns (accesses of `lanes` values) for
`vectors` vectors, and does so for `units` matrices. A program is any order of commands that computes this with all-bank
multiplies: tiling, layout in rows, order, what is written again and what is spilled are free. A product is what a
multiply command adds to one accumulator of a unit: it makes at most `together` of them, of one access. Letters:

    M = units x vectors x outputs x inputs   products                 c = nCCDMAC, p = nRTP + nRP + nRCDRDMAC
    G >= units x vectors x inputs            buffer columns written   A accumulators, B columns of buffer, C accesses
    W >= units x vectors x outputs           stays in accumulators    of a row, m = 2 nMODCH + 2

1. *Multiplies* are c apart; an access needs one for every `together` vectors. A product needs an input column in the
   buffer, written once a stay, and a partial sum in an accumulator, read once a stay; no two have both in common.
2. *Rows.* The matrices fill at least R rows of a bank; multiplies of different rows are max(p, c) apart. While a row is
   open and nothing is written or read between, vector v finds a_v of its sums and b_v of its columns there, good for at
   most sum_v min(C, a_v b_v) <= sum_v sqrt(C a_v b_v) <= sqrt(C A B) products (Cauchy-Schwarz), and vectors
   x C. M over the smaller one visits are needed; those beyond R open a row again or go to register mode inside one.
3. *Stays.* Of two stays that meet one begins while the other lasts, and finds at most B columns or A sums, so that
   M <= B W + A G. With the least W and G a linear program in two unknowns, cheapest in a corner.
4. *Register mode* excludes multiplies. A command keeps the next of the same visit off for its own time; a visit between
   multiplies takes m beside, and in a row switch leaves precharge and activate to memory mode: m + the two least terms
   of p in all. Between two visits lie at most A B products, one visit brings at most B useful columns and takes at
   most A sums, so that at least max(M / AB, G / B, W / A) - 1 lie between multiplies. Where m - c is less than the time
   of a command, each may be a visit of its own between two multiplies of a row, for m - c or for nothing.
5. *Refresh*: `compiler.refresh_bound`.
6. *Second row buffers.* Where units multiply from these, LATCH16 comes between multiplies of different rows: c before
   it, nLTMAC behind it, so that p = c + nLTMAC of two terms, and a register visit leaves LATCH16 to memory mode. Beside
   all this LATCH16 and LATCH16 are q = nRTP + nRP + max(nRCDRDMAC, nRAS - nRTP) apart, for the row is closed behind the
   one and opened before the other; all banks' refreshes between them take nRFC each on top. Of at least R the first may
   come before any input; of the time from the second to the last, (R - 2) q, every nREFI brings a refresh.
7. *Ends.* Before the first multiply come a buffer write and a mode change, behind the last one a mode change and a
   read-out. First activates and the first values of A accumulators may come before any input and do not count.

From the first buffer write to the last read-out these times are disjoint, so that they add up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.chain import buffer_gap, latch_period, register_gap
from compiler.device_table import REFRESH_INTERVAL, REFRESH_STOP
from compiler.geometry import ceil_div
from compiler.schedule import PoolShape


@dataclass(frozen=True, slots=True)
class Work:
    """What every bank does; `rows` is how many its matrices fill, `row_accesses` what one holds. Ints or arrays."""

    units: Any
    vectors: Any
    outputs: Any
    inputs: Any
    rows: Any
    row_accesses: Any
    together: Any = 1

    @property
    def products(self) -> Any:
        """M."""
        return self.units * self.vectors * self.outputs * self.inputs

    @property
    def multiplies(self) -> Any:
        """The least multiply commands."""
        return self.units * ceil_div(self.vectors, self.together) * self.outputs * self.inputs

    @property
    def most_together(self) -> Any:
        """The most products of one command."""
        return np.minimum(self.together, self.vectors)

    @property
    def columns(self) -> Any:
        """The least G."""
        return self.units * self.vectors * self.inputs

    @property
    def sums(self) -> Any:
        """The least W."""
        return self.units * self.vectors * self.outputs


@dataclass(frozen=True, slots=True)
class Traffic:
    """Commands of register mode: G columns, W read-outs, the writes that certainly count; what one of each takes."""

    columns: Any
    reads: Any
    writes: Any
    column: Any
    entry: Any

    @property
    def commands(self) -> Any:
        """All commands."""
        return self.columns + self.reads + self.writes

    @property
    def sums_cycles(self) -> Any:
        """The time of reads and writes of accumulators."""
        return (self.reads + self.writes) * self.entry

    @property
    def cycles(self) -> Any:
        """The time of all commands."""
        return self.columns * self.column + self.sums_cycles

    def each_at_most(self, most: Any) -> Any:
        """Return the time of all commands if none takes more than `most`."""
        sums = (self.reads + self.writes) * np.minimum(self.entry, most)
        return self.columns * np.minimum(self.column, most) + sums


@dataclass(frozen=True, slots=True)
class ChannelBound:
    """Cycles from the first buffer write to the last read-out by cause, without refresh; ints or arrays.

    `activates` holds beside their sum. `visit` is what a visit to register mode takes beside its commands, `switch`
    what lies between multiplies of different rows, `pace` what a product takes at least with its share of the rows.
    `first_output` is the time up to the read-out of the first output; `commands` and `instructions` are the fewest.
    """

    traffic: Traffic
    multiply: Any
    rows: Any
    registers: Any
    ends: Any
    activates: Any
    visit: Any
    switch: Any
    pace: Any
    first_output: Any
    commands: Any
    instructions: Any

    @property
    def busy(self) -> Any:
        """All causes in turn, but for the ends."""
        return self.multiply + self.rows + self.registers


def channel_bound(work: Work, pool: PoolShape, timing: Mapping[str, Any]) -> ChannelBound:
    """Return the bound of one kernel."""
    cadence, traffic = timing["nCCDMAC"], cheapest_traffic(work, pool, timing)
    sums, columns = pool.accumulators, pool.buffer_columns
    terms = np.sort(_switch_terms(pool, timing), axis=0)
    switch, mode = terms.sum(axis=0), 2 * timing["nMODCH"] + 2
    in_a_row = np.minimum(work.vectors * work.row_accesses, _root(work.row_accesses * sums * columns))
    whole_rows = in_a_row == work.vectors * work.row_accesses
    again = np.maximum(ceil_div(work.products, in_a_row) - work.rows, 0)
    in_switch, in_row = mode - terms[2], mode - cadence
    longer = np.maximum(switch - cadence, 0)
    opened_again = np.minimum(longer, np.maximum(in_row - in_switch, 0))
    gap = np.maximum(traffic.column, traffic.entry)
    beside = np.minimum(in_switch, in_row) - gap
    # Where a visit is shorter than the switch it hides in, there may be as many as there are switches.
    between = np.where(beside > 0, _visits(work, traffic, pool) - 1, work.rows - 1 + again)
    activates = _activates(work, pool, timing)
    multiply = (work.multiplies - 1) * cadence
    rows = (work.rows - 1) * longer + again * opened_again
    registers = np.maximum(traffic.cycles - 2 * gap + between * beside, 0)
    # A command alone between two multiplies of a row may cost less than behind another in a visit.
    alone = traffic.each_at_most(np.maximum(in_row, 0)) - 2 * gap
    registers = np.where(in_row < gap, np.minimum(registers, np.maximum(alone, 0)), registers)
    # Latches are spaced beside everything else: what that time is longer than the sum counts as due to rows.
    rows = np.where(pool.latched, np.maximum(rows, activates - multiply - registers), rows)
    return ChannelBound(
        traffic=traffic,
        multiply=multiply,
        rows=rows,
        registers=registers,
        ends=mode,
        activates=activates,
        visit=np.maximum(beside + gap, 0),
        switch=switch,
        pace=cadence / work.most_together + np.where(whole_rows, longer, np.minimum(longer, in_row)) / in_a_row,
        # Its inputs are written between its multiplies, or while its next row is opened.
        first_output=mode
        + (work.inputs - 1) * cadence
        + np.maximum(
            (work.inputs - 1) * np.minimum(traffic.column, np.maximum(in_row, 0)),
            (ceil_div(work.inputs, work.row_accesses) - 1) * longer,
        ),
        commands=work.multiplies + 2 * (work.rows - 1) + traffic.commands,
        instructions=2 * work.rows,
    )


def _switch_terms(pool: PoolShape, timing: Mapping[str, Any]) -> Any:
    """Return the three terms of p: int[3] or int[3, n]."""
    opened = np.array(np.broadcast_arrays(timing["nRTP"], timing["nRP"], timing["nRCDRDMAC"]))
    latched = np.array(np.broadcast_arrays(0 * timing["nCCDMAC"], timing["nCCDMAC"], timing.get("nLTMAC", 0)))
    return np.where(pool.latched, latched, opened)


def _activates(work: Work, pool: PoolShape, timing: Mapping[str, Any]) -> Any:
    """Return the time from the second activate of all banks to the last, or that of the latches where it is longer."""
    between = np.maximum(work.rows - 2, 0)
    spaced = between * np.maximum(timing["nRC"], timing["nACTALL"])
    rows = between * latch_period(timing)
    if REFRESH_INTERVAL in timing:
        rows = rows + rows // timing[REFRESH_INTERVAL] * timing[REFRESH_STOP]
    return np.where(pool.latched, np.maximum(spaced, rows), spaced)


def cheapest_traffic(work: Work, pool: PoolShape, timing: Mapping[str, Any]) -> Traffic:
    """Return the cheapest G and W of point 3."""
    column, entry = buffer_gap(timing), register_gap(timing)
    more_columns = ceil_div(np.maximum(work.products - pool.buffer_columns * work.sums, 0), pool.accumulators)
    more_sums = ceil_div(np.maximum(work.products - pool.accumulators * work.columns, 0), pool.buffer_columns)
    first, second = (
        Traffic(written, read, np.maximum(read - pool.accumulators, 0), column, entry)
        for written, read in (
            (np.maximum(work.columns, more_columns), work.sums),
            (work.columns, np.maximum(work.sums, more_sums)),
        )
    )
    cheaper = first.cycles <= second.cycles
    columns, reads, writes = (
        np.where(cheaper, getattr(first, name), getattr(second, name)) for name in ("columns", "reads", "writes")
    )
    return Traffic(columns, reads, writes, column, entry)


def _visits(work: Work, traffic: Traffic, pool: PoolShape) -> Any:
    """Return the least visits to register mode before the last multiply, or after the first."""
    by_pairs = ceil_div(work.products, pool.accumulators * pool.buffer_columns)
    by_columns = ceil_div(traffic.columns, pool.buffer_columns)
    return np.maximum(np.maximum(by_pairs, by_columns), ceil_div(traffic.reads, pool.accumulators))


def _root(square: Any) -> Any:
    """Return the largest whole number whose square is no larger."""
    root = np.floor(np.sqrt(square)).astype(np.int64)
    return np.where(root * root > square, root - 1, root)
