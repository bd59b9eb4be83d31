"""The least time of a channel of HBM-PIM units over all schedules, from its first input to its last read: a theorem.

With M products of every unit, G columns of inputs, W sums, A registers of sums and B of inputs, u units:

* Column accesses of any kind follow each other by nCCDL, a read of results by nCCDS: M multiplies, at least G writes of
  inputs, W stores of sums and u W reads of results are in series.
* Of two stays in registers that meet, one begins while the other lasts, so that M <= B W + A G as for units in
  lock-step (`compiler.channel_bound`): inputs come again or sums go again, whichever is cheaper.
* Between two writes, of inputs or of sums, lie at most A B multiplies; each change of direction waits for the bus.
* Before the first multiply comes a write, behind the last one a store, a change of modes and a read of its result.
* A refresh keeps every bank closed for nRFC, in which no column access falls: of T cycles each nREFI brings one.

Rows cost nothing here: one bank may change its row while the other is read.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from compiler.channel_bound import ChannelBound, Traffic, Work
from compiler.device_table import REFRESH_INTERVAL, REFRESH_STOP
from compiler.geometry import ceil_div
from compiler.schedule import PoolShape


def microkernel_bound(work: Work, pool: PoolShape, timing: Mapping[str, Any]) -> ChannelBound:
    """Return the bound of one kernel."""
    cadence = timing["nCCDL"]
    to_write = timing["nCL"] + timing["nBL"] + timing["nRTRS"] - timing["nCWL"]
    to_read = timing["nCWL"] + timing["nBL"] + timing["nWTRL"]
    to_close = timing["nCWL"] + timing["nBL"] + timing["nWR"]
    sums, columns = pool.accumulators, pool.buffer_columns
    traffic = _traffic(work, pool, timing)
    between = np.maximum(ceil_div(work.products, sums * columns) - 1, 0)
    turned = to_write + to_read - 2 * cadence
    multiply = (work.multiplies - 1) * cadence
    ends = turned + to_close + timing["nRP"] + timing["nRCDRD"]
    nothing = 0 * multiply
    return ChannelBound(
        traffic=traffic,
        multiply=multiply,
        rows=nothing,
        registers=np.maximum(traffic.cycles - traffic.column - traffic.entry, 0) + between * turned,
        ends=ends,
        activates=nothing,
        visit=turned + nothing,
        switch=cadence + nothing,
        pace=cadence + nothing,
        first_output=ends + (work.inputs - 1) * cadence,
        commands=work.multiplies + traffic.commands,
        instructions=nothing,
    )


def _traffic(work: Work, pool: PoolShape, timing: Mapping[str, Any]) -> Traffic:
    """Return the fewest writes and stores; what is written or stored again counts as a column."""
    column = timing["nCCDL"]
    entry = column + pool.banks * timing["nCCDS"]
    again = ceil_div(np.maximum(work.products - pool.buffer_columns * work.sums, 0), pool.accumulators) - work.columns
    spilled = ceil_div(np.maximum(work.products - pool.accumulators * work.columns, 0), pool.buffer_columns) - work.sums
    more = np.maximum(np.minimum(again, spilled), 0)
    return Traffic(work.columns + more, work.sums, 0 * work.sums, column, entry)


def microkernel_refresh_cycles(bound: ChannelBound, timing: Mapping[str, Any]) -> Any:
    """Return the cycles that refreshes add at least."""
    if REFRESH_INTERVAL not in timing:
        return 0 * bound.busy
    return bound.busy // timing[REFRESH_INTERVAL] * timing[REFRESH_STOP]
