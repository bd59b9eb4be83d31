"""The refreshes that certainly stop a kernel: point 5 of the theorem in `compiler.channel_bound`.

A refresh of all banks that falls due between two multiplies of a bank is issued between them, with the row closed
before and opened after: p + nRFC. That adds nRFC, less what commands are further apart (`hidden_in_gap`). The channel
may go to register mode meanwhile, so that a refresh hides a visit, but no more than its own length and B
columns; and all n refreshes together no more than all visits take. With `end` the cycle of the last multiply, counted
from a refresh that fell due before the first:

    end >= started + busy + n nRFC - hidden      n = floor(end / nREFI)

A column is good for one product of every output. So the products before refresh j needed their share of columns, of
which the j - 1 refreshes before hid at most B each, and the rest was not hidden: said of the first and of the last one.

Where units multiply from second row buffers, multiplies go on during a refresh, and none is sure to cost them anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.chain import hidden_in_gap
from compiler.channel_bound import ChannelBound, Work
from compiler.device_table import REFRESH_INTERVAL, REFRESH_STOP
from compiler.schedule import PoolShape

ROUNDS = 8


def refresh_cycles(work: Work, bound: ChannelBound, pool: PoolShape, timing: Mapping[str, Any], started: Any) -> Any:
    """Return the cycles that refreshes add to a kernel at least.

    `started` is how many cycles after a refresh fell due the first buffer write comes at the earliest; None where
    this is not known: then D cycles between multiplies meet at least floor(D / nREFI) refreshes.
    """
    if REFRESH_INTERVAL not in timing or np.all(pool.latched):
        return np.zeros_like(bound.busy)
    return np.where(pool.latched, 0, _stops(work, bound, pool, timing, started))


def _stops(work: Work, bound: ChannelBound, pool: PoolShape, timing: Mapping[str, Any], started: Any) -> Any:
    traffic = bound.traffic
    columns = np.minimum(traffic.columns, pool.buffer_columns) * traffic.column
    stop = timing[REFRESH_STOP]
    case = _Case(work, bound, timing[REFRESH_INTERVAL], stop - np.minimum(hidden_in_gap(timing), stop), columns)
    last_reads = np.minimum(traffic.reads, pool.accumulators) * traffic.entry
    # The visits before the first and behind the last multiply may be of any size.
    origin = -columns if started is None else started + timing["nMODCH"] + 1
    refreshes = np.zeros_like(bound.busy)
    for _ in range(ROUNDS):
        end = origin + bound.busy - last_reads + case.added(refreshes)
        refreshes = np.maximum(end, 0) // case.interval
    least = case.added(refreshes)
    if started is None:
        return least
    for _ in range(2):  # With later ends more can hide: up to beyond the solution, and down to below it.
        late = case.added_until(refreshes, origin + bound.busy + least)
        early = case.added_until(refreshes, origin + bound.busy + late)
        least = np.maximum(least, np.minimum(early, (refreshes + 1) * case.interval - origin - bound.busy))
    # Where the first refresh is so near that it pays to wait for it, the start says nothing.
    far = origin <= case.interval - stop
    return np.where(far, least, _stops(work, bound, pool, timing, None))


@dataclass(frozen=True, slots=True)
class _Case:
    """One kernel on devices that refresh all banks, which adds at least `stop` between multiplies.

    `columns` is the time of the columns that one visit can bring.
    """

    work: Work
    bound: ChannelBound
    interval: Any
    stop: Any
    columns: Any

    def added(self, refreshes: Any) -> Any:
        """Return the least that so many refreshes add."""
        return self._added(refreshes, refreshes * np.minimum(self.columns + self.bound.visit, self.stop))

    def added_until(self, refreshes: Any, end: Any) -> Any:
        """Return the same for a last multiply no later than `end`."""
        first, last = (self._columns_after(end - number * self.interval) for number in (1, refreshes))
        before_last = np.maximum(refreshes - 1, 0) * self.columns
        hidden = np.minimum(np.minimum(before_last + np.minimum(last, self.columns), first), refreshes * self.columns)
        visits = np.minimum(hidden + refreshes * self.bound.visit, refreshes * self.stop)
        return self._added(refreshes, visits)

    def _added(self, refreshes: Any, hidden: Any) -> Any:
        """Hidden beside columns may be everything that moves sums."""
        most = np.minimum(self.bound.registers, refreshes * self.stop)
        return refreshes * self.stop - np.minimum(hidden + self.bound.traffic.sums_cycles, most)

    def _columns_after(self, left: Any) -> Any:
        """Return the time of all columns that are not needed before a refresh due `left` cycles before the end."""
        between = np.maximum(left - self.stop, 0) + self.bound.switch
        before = np.maximum(self.work.products - np.ceil(between / self.bound.pace), 0)
        return np.maximum(self.bound.traffic.columns - before // self.work.outputs, 0) * self.bound.traffic.column
