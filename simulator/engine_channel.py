"""One channel as compiled code sees it: when a command may issue, and what its issue leaves behind.

The rules of a device look forward here: an issue raises `ready[node, class]`, the first cycle at which the node lets
commands of a class issue, so that asking is a handful of loads.
"""

from typing import NamedTuple, cast

import numpy as np

from simulator.channel import BUS_FREE, CLOCK, CLOSED, COMPLETION, HOLD, NO_CAUSE, REGISTER_MODE
from simulator.engine_timing import (
    BUS,
    CHECKS,
    CLASS,
    CLOSES,
    EFFECT,
    END_ENTRY,
    FIRST_ENTRY,
    GAP,
    LATENCY,
    OPENS,
    PUSH_LEVEL,
    PUSHES,
    REACH,
    SIBLING_CLASS,
    SIBLING_CYCLES,
    SIBLING_LEVEL,
    SIBLING_SOURCE,
    SIBLINGS,
    SOURCE,
    SPECIAL,
    TICKS,
    TOGGLES_MODE,
    WINDOW_CLASS,
    WINDOW_CYCLES,
    WINDOW_DEPTH,
    WINDOW_LEVEL,
    WINDOW_LIST,
    WINDOW_SOURCE,
    WINDOWS,
    Array,
    EngineTiming,
)
from simulator.jit import inlined, kernel


def variable(value: int) -> int:
    """Return a number that the compiler does not treat as a type of its own, which would compile callees for each."""
    return cast("int", np.int64(value))


NO_ROW, NO_BANK, NO_CYCLE = variable(CLOSED), variable(0), variable(0)
# Places in the summary of a run. REACHED counts the nodes that commands of the program reach, from the channel down;
# REMEMBERS tells whether any of its commands is one that a windowed rule looks back at.
FIRST_ISSUE, REFRESHES, REFRESH_CYCLES, OWN, SKIPPED, LOGGED, DETAIL, REACHED, REMEMBERS = range(9)
LOG_CYCLE, LOG_KIND, LOG_BANK, LOG_ROW = range(4)  # columns of the log


class Channel(NamedTuple):
    """The arrays a run writes into: those of the state, the report's, and room to note rows while refreshing.

    `stalls` is empty unless the run explains, `log` has no rows unless it logs.
    """

    ready: Array
    cause: Array
    history: Array
    open_row: Array
    owed_row: Array
    scalars: Array
    counts: Array
    stalls: Array
    summary: Array
    rows: Array
    log: Array


@inlined
def base_cycle(timing: EngineTiming, channel: Channel, kind: int) -> int:
    """Return the first cycle after its predecessor: in order, and once its bus is free."""
    return max(channel.scalars[CLOCK], channel.scalars[BUS_FREE + timing.kinds[kind, BUS]])  # type: ignore[no-any-return]


@inlined
def earliest_cycle(timing: EngineTiming, channel: Channel, kind: int, bank: int) -> int:
    """Return the first cycle at which buses and table allow this command next."""
    cycle = base_cycle(timing, channel, kind)
    kinds, ready, nodes, level = timing.kinds, channel.ready, timing.nodes, timing.check_level
    for place in range(kinds[kind, CHECKS], kinds[kind, CHECKS + 1]):
        cycle = max(cycle, ready[nodes[bank, level[place]], kinds[kind, CLASS]])
    return cycle


@kernel
def cause_of(timing: EngineTiming, channel: Channel, kind: int, bank: int, cycle: int) -> int:
    """Return the row of the table that makes a command wait until its cycle: of several the first."""
    found = timing.event_cause if channel.scalars[HOLD] == cycle else NO_CAUSE
    column = timing.kinds[kind, CLASS]
    for place in range(timing.kinds[kind, CHECKS], timing.kinds[kind, CHECKS + 1]):
        node = timing.nodes[bank, timing.check_level[place]]
        if channel.ready[node, column] == cycle:
            cause = channel.cause[node, column]
            found = cause if found == NO_CAUSE else min(found, cause)
    return found


@kernel
def _raise(channel: Channel, node: int, column: int, cycle: int, source: int) -> None:
    """Let a class issue at a node no earlier than a cycle, and note the reason where the run explains."""
    before = channel.ready[node, column]
    if channel.stalls.shape[0] > 0 and (cycle > before or (cycle == before and source < channel.cause[node, column])):
        channel.cause[node, column] = source
    channel.ready[node, column] = max(before, cycle)


@kernel
def _remember(timing: EngineTiming, channel: Channel, kind: int, bank: int, cycle: int) -> None:
    """Push an issue on the histories of the windowed rules, and raise what windowed and sibling rules hold back."""
    kinds, lists, history = timing.kinds, timing.lists, channel.history
    for index in range(lists.shape[0]):
        level = lists[index, 0]
        if lists[index, 1] == kind and level < kinds[kind, REACH]:
            node = timing.nodes[bank, level]
            for place in range(history.shape[2] - 1, 0, -1):
                history[index, node, place] = history[index, node, place - 1]
            history[index, node, 0] = cycle
    for row in range(kinds[kind, WINDOWS], kinds[kind, WINDOWS + 1]):
        window = timing.windows[row]
        node = timing.nodes[bank, window[WINDOW_LEVEL]]
        held = history[window[WINDOW_LIST], node, window[WINDOW_DEPTH] - 1] + window[WINDOW_CYCLES]
        _raise(channel, node, window[WINDOW_CLASS], held, window[WINDOW_SOURCE])
    for row in range(kinds[kind, SIBLINGS], kinds[kind, SIBLINGS + 1]):
        sibling = timing.siblings[row]
        level = sibling[SIBLING_LEVEL]
        parent, below = timing.banks_below[level - 1], timing.banks_below[level]
        first = bank - bank % parent
        for other in range(first, first + parent, below):
            node = timing.nodes[other, level]
            if node != timing.nodes[bank, level]:
                held = cycle + sibling[SIBLING_CYCLES]
                _raise(channel, node, sibling[SIBLING_CLASS], held, sibling[SIBLING_SOURCE])


@kernel
def _explained_push(timing: EngineTiming, channel: Channel, node: int, push: int, cycle: int) -> None:
    for entry in range(timing.pushes[push, FIRST_ENTRY], timing.pushes[push, END_ENTRY]):
        held = cycle + timing.entries[entry, GAP]
        _raise(channel, node, timing.entry_class[entry], held, timing.entries[entry, SOURCE])


@inlined
def mark(timing: EngineTiming, channel: Channel, kind: int, bank: int, cycle: int) -> None:
    """Leave the marks of an issue: what it holds back, clock, bus and completion."""
    kinds, pushes, ready, scalars = timing.kinds, timing.pushes, channel.ready, channel.scalars
    column, entries = timing.entry_class, timing.entries
    explains = channel.stalls.shape[0] > 0
    for push in range(kinds[kind, PUSHES], kinds[kind, PUSHES + 1]):
        node = timing.nodes[bank, pushes[push, PUSH_LEVEL]]
        if explains:
            _explained_push(timing, channel, node, push, cycle)
        else:
            for entry in range(pushes[push, FIRST_ENTRY], pushes[push, END_ENTRY]):
                ready[node, column[entry]] = max(ready[node, column[entry]], cycle + entries[entry, GAP])
    scalars[CLOCK] = cycle
    scalars[BUS_FREE + kinds[kind, BUS]] = cycle + kinds[kind, TICKS]
    scalars[COMPLETION] = max(scalars[COMPLETION], cycle + kinds[kind, LATENCY])


@inlined
def _set_rows(timing: EngineTiming, channel: Channel, kind: int, bank: int, row: int) -> None:
    """Set the open row of every bank a command addresses."""
    count = timing.banks_below[timing.kinds[kind, REACH] - 1]
    first = bank if count == 1 else bank - bank % count
    for addressed in range(first, first + count):
        channel.open_row[addressed] = row


@inlined
def issue(timing: EngineTiming, channel: Channel, kind: int, bank: int, row: int, cycle: int) -> None:
    """Issue a command at a cycle: leave its marks, open or close rows, count and log it."""
    mark(timing, channel, kind, bank, cycle)
    if timing.kinds[kind, SPECIAL]:
        _remember(timing, channel, kind, bank, cycle)
    effect = timing.kinds[kind, EFFECT]
    if effect == OPENS:
        _set_rows(timing, channel, kind, bank, row)
    elif effect == CLOSES:
        _set_rows(timing, channel, kind, bank, NO_ROW)
    elif effect == TOGGLES_MODE:
        channel.scalars[REGISTER_MODE] = 1 - channel.scalars[REGISTER_MODE]
    channel.counts[kind] += 1
    if channel.summary[FIRST_ISSUE] < 0:
        channel.summary[FIRST_ISSUE] = cycle
    if channel.log.shape[0] > 0:
        place = channel.summary[LOGGED]
        if place < channel.log.shape[0]:
            channel.log[place, LOG_CYCLE] = cycle
            channel.log[place, LOG_KIND] = kind
            channel.log[place, LOG_BANK] = bank
            channel.log[place, LOG_ROW] = row
        channel.summary[LOGGED] = place + 1


@kernel
def issue_own(timing: EngineTiming, channel: Channel, kind: int, bank: int, row: int, due: int) -> None:
    """Issue a command of the controller's own, at its earliest but not before it is due."""
    issue(timing, channel, kind, bank, row, max(earliest_cycle(timing, channel, kind, bank), due))
    channel.summary[OWN] += 1
