"""Refresh as the controller of a channel does it, compiled.

Of all banks: when due, close what is open, refresh, and open the same rows again before the program goes on. Of single
banks: close and refresh the next bank as soon as the table allows it without keeping the program waiting, unless the
program asks for that bank; the row is owed to the program and opened again when it needs it.
"""

from simulator.channel import CLOSED, HOLD, NEXT_REFRESH, OVERTAKEN_LIMIT, OWED_ROWS, REFRESH_BANK
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
from simulator.engine_timing import CLOSES, EFFECT, NO_ARRAYS, NO_KIND, OPEN_ROWS, REACH, ROWS, EngineTiming
from simulator.isa import CODE_OF, Kind
from simulator.jit import kernel, spliced

PRE, PREA = variable(CODE_OF[Kind.PRE]), variable(CODE_OF[Kind.PREA])
REFAB, REFPB = variable(CODE_OF[Kind.REFab]), variable(CODE_OF[Kind.REFpb])
STARTS, OPENS_ONE, OPENS_ALL = range(3)  # places in `EngineTiming.open_kinds`


@spliced
def _open(timing: EngineTiming, channel: Channel, bank: int, row: int) -> None:
    """Open a row in one bank."""
    if timing.open_kinds[STARTS] != NO_KIND:
        issue_own(timing, channel, timing.open_kinds[STARTS], bank, row, NO_CYCLE)
    issue_own(timing, channel, timing.open_kinds[OPENS_ONE], bank, row, NO_CYCLE)


@kernel
def _refresh_all(timing: EngineTiming, channel: Channel) -> None:
    """Close and refresh all banks, as many at a time as one command addresses."""
    due = channel.scalars[NEXT_REFRESH]
    below = timing.banks_below[timing.kinds[REFAB, REACH] - 1]
    for first in range(0, len(channel.open_row), below):
        for bank in range(first, first + below):
            if channel.open_row[bank] != CLOSED:
                issue_own(timing, channel, PREA, first, NO_ROW, due)
                break
        for _ in range(timing.refresh_burst):
            issue_own(timing, channel, REFAB, first, NO_ROW, due)
        channel.summary[REFRESHES] += timing.refresh_burst
    channel.scalars[NEXT_REFRESH] += timing.refresh_interval


@kernel
def _reopen_all(timing: EngineTiming, channel: Channel) -> None:
    """Open the noted rows again, with one command where that is possible."""
    alike = timing.open_kinds[OPENS_ALL] != NO_KIND and channel.rows[0] != CLOSED
    for bank in range(len(channel.rows)):
        alike = alike and channel.rows[bank] == channel.rows[0]
    if alike:
        issue_own(timing, channel, timing.open_kinds[OPENS_ALL], NO_BANK, channel.rows[0], NO_CYCLE)
        return
    for bank in range(len(channel.rows)):
        if channel.rows[bank] != CLOSED:
            _open(timing, channel, bank, channel.rows[bank])


@spliced
def _after_refreshes_of_all(timing: EngineTiming, channel: Channel, kind: int, bank: int) -> int:
    for _ in range(OVERTAKEN_LIMIT):
        cycle = max(earliest_cycle(timing, channel, kind, bank), channel.scalars[HOLD])
        if cycle < channel.scalars[NEXT_REFRESH]:
            return cycle  # type: ignore[no-any-return]
        for place in range(len(channel.rows)):
            channel.rows[place] = channel.open_row[place]
        while cycle >= channel.scalars[NEXT_REFRESH]:
            _refresh_all(timing, channel)
            cycle = max(earliest_cycle(timing, channel, kind, bank), channel.scalars[HOLD])
        if kind != PREA:
            _reopen_all(timing, channel)
    return -1


@kernel
def _refresh_one(timing: EngineTiming, channel: Channel, due: int) -> None:
    """Take the next step towards refreshing the bank whose turn it is: close its row, or refresh it."""
    bank = channel.scalars[REFRESH_BANK]
    if channel.open_row[bank] != CLOSED:
        if channel.owed_row[bank] == CLOSED:
            channel.scalars[OWED_ROWS] += 1
        channel.owed_row[bank] = channel.open_row[bank]
        issue_own(timing, channel, PRE, bank, NO_ROW, due)
        return
    issue_own(timing, channel, REFPB, bank, NO_ROW, due)
    channel.summary[REFRESHES] += 1
    channel.scalars[REFRESH_BANK] = (bank + 1) % len(channel.open_row)
    channel.scalars[NEXT_REFRESH] += timing.refresh_interval


@kernel
def _settle(timing: EngineTiming, channel: Channel, kind: int, bank: int) -> bool:
    """Open one row again that a command needs, or forget those it closes; return whether nothing was left to do."""
    below = timing.banks_below[timing.kinds[kind, REACH] - 1]
    first = bank - bank % below
    for addressed in range(first, first + below):
        row = channel.owed_row[addressed]
        if row == CLOSED:
            continue
        if timing.kinds[kind, ROWS] == OPEN_ROWS:
            channel.owed_row[addressed] = CLOSED
            channel.scalars[OWED_ROWS] -= 1
            _open(timing, channel, addressed, row)
            return False
        if timing.kinds[kind, EFFECT] == CLOSES:
            channel.owed_row[addressed] = CLOSED
            channel.scalars[OWED_ROWS] -= 1
    return True


@spliced
def _after_refreshes_of_one(timing: EngineTiming, channel: Channel, kind: int, bank: int) -> int:
    below = timing.banks_below[timing.kinds[kind, REACH] - 1]
    left, latest = OVERTAKEN_LIMIT * len(channel.open_row), NO_CYCLE
    while left > 0:
        cycle = max(earliest_cycle(timing, channel, kind, bank), channel.scalars[HOLD])
        # Refreshes that a command lets pass while it waits for something else do not overtake it.
        if cycle > latest:
            left, latest = left - 1, cycle
        due, turn = channel.scalars[NEXT_REFRESH], channel.scalars[REFRESH_BANK]
        if cycle >= due:
            step = PRE if channel.open_row[turn] != CLOSED else REFPB
            own = max(earliest_cycle(timing, channel, step, turn), due)
            asks = timing.kinds[kind, ROWS] != NO_ARRAYS and turn // below == bank // below
            if own <= cycle or asks:
                _refresh_one(timing, channel, due)
                continue
        if channel.scalars[OWED_ROWS] == 0 or _settle(timing, channel, kind, bank):
            return cycle  # type: ignore[no-any-return]
    return -1


@kernel
def cycle_after_refreshes(timing: EngineTiming, channel: Channel, kind: int, bank: int) -> int:
    """Issue the refreshes due before a command and return its cycle, -1 if refreshes leave it no room."""
    alone = max(earliest_cycle(timing, channel, kind, bank), channel.scalars[HOLD])
    if timing.refresh_per_bank:
        cycle = _after_refreshes_of_one(timing, channel, kind, bank)
    else:
        cycle = _after_refreshes_of_all(timing, channel, kind, bank)
    if cycle >= 0:
        channel.summary[REFRESH_CYCLES] += cycle - alone
    return cycle
