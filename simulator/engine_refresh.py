"""Refresh as the controller of a channel does it, compiled: close what is in the way, refresh, open again."""

from simulator.channel import CLOSED, HOLD, NEXT_REFRESH, OVERTAKEN_LIMIT, REFRESH_BANK
from simulator.engine_channel import (
    NO_BANK,
    NO_CYCLE,
    NO_ROW,
    REFRESH_CYCLES,
    REFRESHES,
    Channel,
    earliest_cycle,
    issue_own,
    variable,
)
from simulator.engine_timing import NO_KIND, REACH, EngineTiming
from simulator.isa import CODE_OF, Kind
from simulator.jit import kernel, spliced

PRE, PREA = variable(CODE_OF[Kind.PRE]), variable(CODE_OF[Kind.PREA])
REFAB, REFPB = variable(CODE_OF[Kind.REFab]), variable(CODE_OF[Kind.REFpb])
STARTS, OPENS_ONE, OPENS_ALL = range(3)  # places in `EngineTiming.open_kinds`


@spliced
def _refresh_banks(timing: EngineTiming, channel: Channel, close: int, refresh: int, bank: int) -> None:
    """Close the banks that one refresh command addresses if any is open, then refresh them."""
    due = channel.scalars[NEXT_REFRESH]
    for addressed in range(bank, bank + timing.banks_below[timing.kinds[refresh, REACH] - 1]):
        if channel.open_row[addressed] != CLOSED:
            issue_own(timing, channel, close, bank, NO_ROW, due)
            break
    for _ in range(timing.refresh_burst):
        issue_own(timing, channel, refresh, bank, NO_ROW, due)
    channel.summary[REFRESHES] += timing.refresh_burst


@spliced
def _refresh(timing: EngineTiming, channel: Channel) -> None:
    """Issue what falls due at the next refresh."""
    banks = len(channel.open_row)
    if timing.refresh_per_bank:
        bank = channel.scalars[REFRESH_BANK]
        _refresh_banks(timing, channel, PRE, REFPB, bank)
        channel.scalars[REFRESH_BANK] = (bank + 1) % banks
    else:
        for bank in range(0, banks, timing.banks_below[timing.kinds[REFAB, REACH] - 1]):
            _refresh_banks(timing, channel, PREA, REFAB, bank)
    channel.scalars[NEXT_REFRESH] += timing.refresh_interval


@spliced
def _reopen(timing: EngineTiming, channel: Channel) -> None:
    """Open the rows again that the refreshes closed, with one command where that is possible."""
    alike = timing.open_kinds[OPENS_ALL] != NO_KIND and channel.rows[0] != CLOSED
    for bank in range(len(channel.rows)):
        alike = alike and channel.rows[bank] == channel.rows[0] and channel.open_row[bank] == CLOSED
    if alike:
        issue_own(timing, channel, timing.open_kinds[OPENS_ALL], NO_BANK, channel.rows[0], NO_CYCLE)
        return
    for bank in range(len(channel.rows)):
        if channel.rows[bank] != CLOSED and channel.open_row[bank] == CLOSED:
            if timing.open_kinds[STARTS] != NO_KIND:
                issue_own(timing, channel, timing.open_kinds[STARTS], bank, channel.rows[bank], NO_CYCLE)
            issue_own(timing, channel, timing.open_kinds[OPENS_ONE], bank, channel.rows[bank], NO_CYCLE)


@kernel
def cycle_after_refreshes(timing: EngineTiming, channel: Channel, kind: int, bank: int) -> int:
    """Issue the refreshes due before a command and return its cycle, -1 if refreshes leave it no room."""
    alone = max(earliest_cycle(timing, channel, kind, bank), channel.scalars[HOLD])
    for _ in range(OVERTAKEN_LIMIT):
        cycle = max(earliest_cycle(timing, channel, kind, bank), channel.scalars[HOLD])
        if cycle < channel.scalars[NEXT_REFRESH]:
            channel.summary[REFRESH_CYCLES] += cycle - alone
            return cycle  # type: ignore[no-any-return]
        for place in range(len(channel.rows)):
            channel.rows[place] = channel.open_row[place]
        while cycle >= channel.scalars[NEXT_REFRESH]:
            _refresh(timing, channel)
            cycle = max(earliest_cycle(timing, channel, kind, bank), channel.scalars[HOLD])
        if kind != PREA:
            _reopen(timing, channel)
    return -1
