"""Exact skipping of repeated loop states, compiled.

The future of a channel depends only on how far its state lies ahead of the clock. So when a loop reaches the end of an
iteration in a state that it has met before, everything since then repeats, and whole repetitions are skipped by moving
all cycles on and multiplying all sums:

* between refreshes, as often as the next refresh leaves room for; nodes below those that the program's commands reach
  stay as they are;
* across refreshes, when the distance to the next refresh recurs as well. This is looked for at the first end of an
  iteration after a refresh only, where what follows is decided by the state alone.

A state is kept at iterations 1, 2, 4, ... and compared with the later ones, so that longer periods are found too: of
any length across refreshes, and up to 15 iterations between them, where few iterations fit.
"""

from typing import NamedTuple

import numpy as np

from simulator.channel import (
    BUS_FREE,
    CLOCK,
    CLOSED,
    COMPLETION,
    HOLD,
    NEXT_REFRESH,
    OWED_ROWS,
    REFRESH_BANK,
    REGISTER_MODE,
)
from simulator.engine_channel import OWN, REACHED, REFRESH_CYCLES, REFRESHES, REMEMBERS, SKIPPED, Channel, variable
from simulator.engine_timing import Array
from simulator.jit import kernel, spliced
from simulator.program_code import DEPTH_LIMIT
from simulator.timing_table import BUSES

# Places in `Saved.notes`: whether and at which iteration a state was kept, how many were compared with it, and after
# how many comparisons it is replaced.
KEPT, ITERATION, COMPARED, PATIENCE = range(4)
NOTES = 4
SNAPSHOTS = 2 * DEPTH_LIMIT  # per level of nesting one between refreshes, and one across them
# After this many comparisons a loop is left alone until the next refresh, and a comparison is only worth it if it can
# skip as many repetitions as this.
COMPARISONS = 24
FEWEST_REPETITIONS = 3
PATIENCE_AT_FIRST = variable(1)


class Saved(NamedTuple):
    """Snapshots of a channel and of the report's sums, one per first index, and notes about each."""

    ready: Array
    cause: Array
    history: Array
    open_row: Array
    scalars: Array
    counts: Array
    stalls: Array
    summary: Array
    notes: Array


def room_for(channel: Channel) -> Saved:
    """Return room for the snapshots of one channel."""

    def room(like: Array) -> Array:
        return np.zeros((SNAPSHOTS, *like.shape), dtype=np.int64)

    return Saved(
        ready=room(channel.ready),
        cause=room(channel.cause),
        history=room(channel.history),
        open_row=room(channel.open_row),
        scalars=room(channel.scalars),
        counts=room(channel.counts),
        stalls=room(channel.stalls),
        summary=room(channel.summary),
        notes=np.zeros((SNAPSHOTS, NOTES), dtype=np.int64),
    )


@kernel
def begin_loop(saved: Saved, level: int) -> None:
    """Forget the states of the loop that was at this level of nesting before."""
    saved.notes[level, KEPT] = 0
    saved.notes[level, COMPARED] = 0
    saved.notes[DEPTH_LIMIT + level, KEPT] = 0


@kernel
def skip_repetitions(
    channel: Channel,
    saved: Saved,
    variables: Array,
    longest_window: int,
    level: int,
    count: int,
    shifts_rows: bool,
    row_step: int,
) -> None:
    """Skip what is known to repeat of the loop at a level, which has just ended an iteration and has more to do."""
    if channel.scalars[HOLD] > channel.scalars[CLOCK] or channel.scalars[OWED_ROWS] > 0:
        return
    notes = saved.notes
    kept = notes[level, KEPT] == 1
    stale = kept and channel.summary[REFRESHES] != saved.summary[level, REFRESHES]
    if stale and shifts_rows:
        _compare(channel, saved, variables, longest_window, level, DEPTH_LIMIT + level, count, row_step)
    if stale or not kept:
        _keep(channel, saved, variables, level, level, PATIENCE_AT_FIRST)
    elif notes[level, COMPARED] < COMPARISONS:
        _compare(channel, saved, variables, longest_window, level, level, count, row_step)


@kernel
def _compare(
    channel: Channel,
    saved: Saved,
    variables: Array,
    longest_window: int,
    level: int,
    slot: int,
    count: int,
    row_step: int,
) -> None:
    """Compare with the state kept in a slot; skip if it recurs, keep this one instead if patience is at an end."""
    notes = saved.notes
    if notes[slot, KEPT] == 0:
        _keep(channel, saved, variables, level, slot, PATIENCE_AT_FIRST)
        return
    notes[slot, COMPARED] += 1
    iterations = variables[level] - notes[slot, ITERATION]
    cycles = channel.scalars[CLOCK] - saved.scalars[slot, CLOCK]
    times = (count - variables[level]) // iterations
    if not _spans_refreshes(slot) and cycles > 0:
        times = min(times, (channel.scalars[NEXT_REFRESH] - 1 - channel.scalars[CLOCK]) // cycles)
    if times < FEWEST_REPETITIONS:
        notes[slot, COMPARED] = COMPARISONS
    elif _recurs(channel, saved, longest_window, slot, iterations * row_step):
        _jump(channel, saved, slot, times, times * cycles)
        variables[level] += times * iterations
        notes[slot, COMPARED] = COMPARISONS
    elif notes[slot, COMPARED] == notes[slot, PATIENCE]:
        _keep(channel, saved, variables, level, slot, 2 * notes[slot, PATIENCE])


@spliced
def _spans_refreshes(slot: int) -> bool:
    """Return whether a slot is for states between which refreshes may lie."""
    return slot >= DEPTH_LIMIT


@spliced
def _nodes(channel: Channel, slot: int) -> int:
    """Return how many nodes a state kept in a slot tells of: refreshes may touch all of them."""
    return channel.ready.shape[0] if _spans_refreshes(slot) else channel.summary[REACHED]  # type: ignore[no-any-return]


@spliced
def _history_matters(channel: Channel, slot: int) -> bool:
    """Return whether past issues take part in what a state kept in a slot tells of."""
    return channel.summary[REMEMBERS] != 0 or _spans_refreshes(slot)


@kernel
def _keep(channel: Channel, saved: Saved, variables: Array, level: int, slot: int, patience: int) -> None:
    """Copy, element by element, because an assignment of slices would allocate."""
    explains = channel.stalls.shape[0] > 0
    for node in range(_nodes(channel, slot)):
        for column in range(channel.ready.shape[1]):
            saved.ready[slot, node, column] = channel.ready[node, column]
            if explains:
                saved.cause[slot, node, column] = channel.cause[node, column]
    if _history_matters(channel, slot):
        for index in range(channel.history.shape[0]):
            for node in range(channel.history.shape[1]):
                for place in range(channel.history.shape[2]):
                    saved.history[slot, index, node, place] = channel.history[index, node, place]
    for bank in range(channel.open_row.shape[0]):
        saved.open_row[slot, bank] = channel.open_row[bank]
    for place in range(channel.scalars.shape[0]):
        saved.scalars[slot, place] = channel.scalars[place]
    for kind in range(channel.counts.shape[0]):
        saved.counts[slot, kind] = channel.counts[kind]
    for cause in range(channel.stalls.shape[0]):
        saved.stalls[slot, cause] = channel.stalls[cause]
    for place in (REFRESHES, REFRESH_CYCLES, OWN):
        saved.summary[slot, place] = channel.summary[place]
    saved.notes[slot, KEPT] = 1
    saved.notes[slot, ITERATION] = variables[level]
    saved.notes[slot, COMPARED] = 0
    saved.notes[slot, PATIENCE] = patience


@spliced
def _recurs(channel: Channel, saved: Saved, longest_window: int, slot: int, moved: int) -> bool:
    """Return whether the state lies as far ahead of its clock as the kept one does of its own."""
    now, then = channel.scalars, saved.scalars[slot]
    cycles = now[CLOCK] - then[CLOCK]
    if cycles <= 0 or now[COMPLETION] - then[COMPLETION] != cycles or now[REGISTER_MODE] != then[REGISTER_MODE]:
        return False
    for bus in range(BUS_FREE, BUS_FREE + BUSES):
        if max(now[bus] - now[CLOCK], 0) != max(then[bus] - then[CLOCK], 0):
            return False
    if _spans_refreshes(slot):
        same_bank = now[REFRESH_BANK] == then[REFRESH_BANK]
        if now[NEXT_REFRESH] - then[NEXT_REFRESH] != cycles or not same_bank:
            return False
    return (
        _rows_recur(channel, saved, slot, moved)
        and _ready_recurs(channel, saved, slot)
        and (not _history_matters(channel, slot) or _history_recurs(channel, saved, longest_window, slot))
    )


@spliced
def _rows_recur(channel: Channel, saved: Saved, slot: int, moved: int) -> bool:
    """Return whether the same banks are open, and across refreshes, whether all open rows moved like those of the loop.

    Rows that are alike are opened by one command after a refresh. Which ones are alike stays as it is if all move by
    the same amount; a row that stayed, while others moved, could be met by one of them once.
    """
    for bank in range(len(channel.open_row)):
        now, then = channel.open_row[bank], saved.open_row[slot, bank]
        if (now == CLOSED) != (then == CLOSED):
            return False
        if now != CLOSED and _spans_refreshes(slot) and now - then != moved:
            return False
    return True


@spliced
def _ready_recurs(channel: Channel, saved: Saved, slot: int) -> bool:
    explains = channel.stalls.shape[0] > 0
    now_clock, then_clock = channel.scalars[CLOCK], saved.scalars[slot, CLOCK]
    then_ready = saved.ready[slot]
    for node in range(_nodes(channel, slot)):
        different = 0
        for column in range(channel.ready.shape[1]):
            ahead = max(channel.ready[node, column] - now_clock, 0)
            different |= ahead ^ max(then_ready[node, column] - then_clock, 0)
            if explains and ahead > 0:
                different |= channel.cause[node, column] ^ saved.cause[slot, node, column]
        if different != 0:
            return False
    return True


@spliced
def _history_recurs(channel: Channel, saved: Saved, longest_window: int, slot: int) -> bool:
    now_clock, then_clock = channel.scalars[CLOCK], saved.scalars[slot, CLOCK]
    oldest = -longest_window
    for index in range(channel.history.shape[0]):
        for node in range(channel.history.shape[1]):
            for place in range(channel.history.shape[2]):
                now = channel.history[index, node, place] - now_clock
                then = saved.history[slot, index, node, place] - then_clock
                if max(now, oldest) != max(then, oldest):
                    return False
    return True


@spliced
def _jump(channel: Channel, saved: Saved, slot: int, times: int, cycles: int) -> None:
    """Repeat what happened since the kept state `times` times over, `cycles` in all."""
    for node in range(_nodes(channel, slot)):
        for column in range(channel.ready.shape[1]):
            channel.ready[node, column] += cycles
    if _history_matters(channel, slot):
        for index in range(channel.history.shape[0]):
            for node in range(channel.history.shape[1]):
                for place in range(channel.history.shape[2]):
                    channel.history[index, node, place] += cycles
    channel.scalars[CLOCK] += cycles
    channel.scalars[COMPLETION] += cycles
    for bus in range(BUS_FREE, BUS_FREE + BUSES):
        channel.scalars[bus] += cycles
    if _spans_refreshes(slot):
        channel.scalars[NEXT_REFRESH] += cycles
        for place in (REFRESHES, REFRESH_CYCLES, OWN):
            channel.summary[place] += times * (channel.summary[place] - saved.summary[slot, place])
    for bank in range(len(channel.open_row)):
        if channel.open_row[bank] != CLOSED:
            channel.open_row[bank] += times * (channel.open_row[bank] - saved.open_row[slot, bank])
    for kind in range(len(channel.counts)):
        skipped = times * (channel.counts[kind] - saved.counts[slot, kind])
        channel.counts[kind] += skipped
        channel.summary[SKIPPED] += skipped
    for cause in range(len(channel.stalls)):
        channel.stalls[cause] += times * (channel.stalls[cause] - saved.stalls[slot, cause])
