"""The fast timing engine: the same cycles, counts, signals and final state as `simulator.reference_engine`, compiled.

It trusts the legality of programs (the reference engine checks it). A loop whose body is one command on one node is
skipped exactly: while such a command repeats, the only constraint that moves is the one it sets itself, so that all
repetitions up to the next refresh follow at one fixed distance.
"""

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from simulator.channel import (
    CLOCK,
    CLOSED,
    COMPLETION,
    HOLD,
    NEXT_REFRESH,
    OVERTAKEN_LIMIT,
    REGISTER_MODE,
    ChannelState,
    IllegalProgram,
    RunReport,
)
from simulator.engine_timing import CLOSES, NO_STEP, OPENS, TOGGLES_MODE, EngineTiming
from simulator.isa import CODE_OF, KINDS, Kind
from simulator.jit import inlined, kernel
from simulator.program_code import BANK, DEPTH_LIMIT, END, EVENT, LOOP, ROW, ProgramCode

Array = NDArray[np.int64]


def _variable(value: int) -> int:
    """Return a number that the compiler does not treat as a type of its own, which would compile callees for each."""
    return cast("int", np.int64(value))


ACT, ACT16 = _variable(CODE_OF[Kind.ACT]), _variable(CODE_OF[Kind.ACT16])
PREA, REFRESH = _variable(CODE_OF[Kind.PREA]), _variable(CODE_OF[Kind.REFab])
NO_ROW, NO_BANK, NO_CYCLE = _variable(CLOSED), _variable(0), _variable(0)
SIGNAL, WAIT = CODE_OF[Kind.SIGNAL], CODE_OF[Kind.WAIT]
DONE, UNKNOWN_EVENT, OVERTAKEN = range(3)
FIRST_ISSUE, REFRESHES, DETAIL = range(3)  # places in the summary of a run


class _Channel(NamedTuple):
    """The arrays a run writes into: those of the state, the report's, and room for loop variables and rows."""

    last: Array
    history: Array
    open_row: Array
    scalars: Array
    counts: Array
    signals: Array
    summary: Array
    variables: Array
    rows: Array


def run(code: ProgramCode, timing: EngineTiming, state: ChannelState, events: NDArray[np.int64]) -> RunReport:
    """Issue a program on a channel, writing into `state`, and return what happened.

    `events[n]` is the cycle at which event n arrives. Raises IllegalProgram for a bank the device does not have, an
    unknown event, or a command that finds no room between two refreshes; `state` is then of no use.
    """
    if code.lowest_bank < 0 or code.highest_bank >= len(state.open_row):
        found = f"banks {code.lowest_bank} to {code.highest_bank}"
        raise IllegalProgram(f"program: expected bank in 0..{len(state.open_row) - 1}, found {found}")
    channel = _Channel(
        last=state.last,
        history=state.history,
        open_row=state.open_row,
        scalars=state.scalars,
        counts=np.zeros(len(KINDS), dtype=np.int64),
        signals=np.full(code.signals, -1, dtype=np.int64),
        summary=np.array((-1, 0, 0), dtype=np.int64),
        variables=np.zeros(DEPTH_LIMIT, dtype=np.int64),
        rows=np.zeros(len(state.open_row), dtype=np.int64),
    )
    status = _run(code, timing, channel, events)
    first_issue, refreshes, detail = channel.summary.tolist()
    if status == UNKNOWN_EVENT:
        raise IllegalProgram(f"WAIT: expected one of {len(events)} known events, found event {detail}")
    if status == OVERTAKEN:
        raise IllegalProgram(
            f"{KINDS[detail]}: expected room between two refreshes, found none in {OVERTAKEN_LIMIT} tries"
        )
    return RunReport(
        first_issue=first_issue,
        last_issue=state.clock if first_issue >= 0 else -1,
        completed=state.completion,
        counts=tuple(channel.counts.tolist()),
        signals=tuple(channel.signals.tolist()),
        refreshes=refreshes,
    )


@inlined
def _value(code: ProgramCode, place: int, operand: int, variables: Array, depth: int) -> int:
    """Return an operand for the current loop variables."""
    value = code.constant[place, operand]
    for level in range(depth):
        value += code.coefficient[place, operand, level] * variables[level]
    return value  # type: ignore[no-any-return]


@inlined
def _node(timing: EngineTiming, level: int, bank: int) -> int:
    if level == 0:
        return 0
    return 1 + bank // timing.banks_per_group if level == 1 else 1 + timing.bank_groups + bank


@inlined
def _earliest(timing: EngineTiming, channel: _Channel, kind: int, bank: int) -> int:
    """Return the first cycle at which the table allows this command next."""
    cycle = channel.scalars[CLOCK] + 1
    # Named before the loop: taken out of their records inside it, the arrays' headers are copied at every entry.
    last, preceding, gap, first = channel.last, timing.preceding, timing.gap, timing.first
    for level in range(timing.levels[kind]):
        node = _node(timing, level, bank)
        for entry in range(first[kind, level], first[kind, level + 1]):
            cycle = max(cycle, last[node, preceding[entry]] + gap[entry])
    for row in range(timing.window_first[kind], timing.window_first[kind + 1]):
        level = timing.windows[row, 1]
        if level < timing.levels[kind]:
            past = channel.history[timing.windows[row, 0], _node(timing, level, bank), timing.windows[row, 3] - 1]
            cycle = max(cycle, past + timing.windows[row, 2])
    return cycle  # type: ignore[no-any-return]


@inlined
def _mark(timing: EngineTiming, channel: _Channel, kind: int, bank: int, cycle: int) -> None:
    """Leave the marks of an issue: per node, clock and completion."""
    for level in range(timing.levels[kind]):
        channel.last[_node(timing, level, bank), kind] = cycle
    channel.scalars[CLOCK] = cycle
    channel.scalars[COMPLETION] = max(channel.scalars[COMPLETION], cycle + timing.latency[kind])


@inlined
def _remember(timing: EngineTiming, channel: _Channel, kind: int, bank: int, cycle: int) -> None:
    """Push an issue on the histories of the windowed rows."""
    for index in range(timing.lists.shape[0]):
        level = timing.lists[index, 0]
        if timing.lists[index, 1] == kind and level < timing.levels[kind]:
            node = _node(timing, level, bank)
            for place in range(channel.history.shape[2] - 1, 0, -1):
                channel.history[index, node, place] = channel.history[index, node, place - 1]
            channel.history[index, node, 0] = cycle


@inlined
def _set_rows(timing: EngineTiming, open_row: Array, kind: int, bank: int, row: int) -> None:
    """Set the open row of every bank a command addresses."""
    first, count = bank, 1
    if timing.levels[kind] == 2:
        first, count = bank // timing.banks_per_group * timing.banks_per_group, timing.banks_per_group
    elif timing.levels[kind] == 1:
        first, count = 0, len(open_row)
    for addressed in range(first, first + count):
        open_row[addressed] = row


@inlined
def _issue(timing: EngineTiming, channel: _Channel, kind: int, bank: int, row: int, cycle: int) -> None:
    """Issue a command at a cycle: leave its marks, open or close rows, count it."""
    _mark(timing, channel, kind, bank, cycle)
    if timing.windowed[kind]:
        _remember(timing, channel, kind, bank, cycle)
    effect = timing.effect[kind]
    if effect == OPENS:
        _set_rows(timing, channel.open_row, kind, bank, row)
    elif effect == CLOSES:
        _set_rows(timing, channel.open_row, kind, bank, NO_ROW)
    elif effect == TOGGLES_MODE:
        channel.scalars[REGISTER_MODE] = 1 - channel.scalars[REGISTER_MODE]
    channel.counts[kind] += 1
    if channel.summary[FIRST_ISSUE] < 0:
        channel.summary[FIRST_ISSUE] = cycle


@kernel
def _issue_own(timing: EngineTiming, channel: _Channel, kind: int, bank: int, row: int, due: int) -> None:
    """Issue a command of the controller's own, at its earliest but not before it is due."""
    _issue(timing, channel, kind, bank, row, max(_earliest(timing, channel, kind, bank), due))


@kernel
def _refresh(timing: EngineTiming, channel: _Channel) -> None:
    """Close the banks, refresh, and set when the next refresh is due."""
    due = channel.scalars[NEXT_REFRESH]
    for bank in range(len(channel.open_row)):
        if channel.open_row[bank] != CLOSED:
            _issue_own(timing, channel, PREA, NO_BANK, NO_ROW, due)
            break
    _issue_own(timing, channel, REFRESH, NO_BANK, NO_ROW, due)
    channel.scalars[NEXT_REFRESH] = due + timing.refresh_interval
    channel.summary[REFRESHES] += 1


@kernel
def _reopen(timing: EngineTiming, channel: _Channel) -> None:
    """Open again the rows that were open before the refreshes."""
    same = channel.rows[0] != CLOSED
    for row in channel.rows:
        same = same and row == channel.rows[0]
    if same:
        _issue_own(timing, channel, ACT16, NO_BANK, channel.rows[0], NO_CYCLE)
        return
    for bank in range(len(channel.rows)):
        if channel.rows[bank] != CLOSED:
            _issue_own(timing, channel, ACT, bank, channel.rows[bank], NO_CYCLE)


@kernel
def _cycle_after_refreshes(timing: EngineTiming, channel: _Channel, kind: int, bank: int) -> int:
    """Issue the refreshes due before a command and return its cycle, -1 if refreshes leave it no room."""
    for _ in range(OVERTAKEN_LIMIT):
        cycle = max(_earliest(timing, channel, kind, bank), channel.scalars[HOLD])
        if cycle < channel.scalars[NEXT_REFRESH]:
            return cycle  # type: ignore[no-any-return]
        for place in range(len(channel.rows)):
            channel.rows[place] = channel.open_row[place]
        while cycle >= channel.scalars[NEXT_REFRESH]:
            _refresh(timing, channel)
            cycle = max(_earliest(timing, channel, kind, bank), channel.scalars[HOLD])
        if kind != PREA:
            _reopen(timing, channel)
    return -1


@inlined
def _skip(code: ProgramCode, timing: EngineTiming, channel: _Channel, place: int, bank: int, depth: int) -> None:
    """Jump over the repetitions of the command just issued, its loop's whole body, that no refresh overtakes."""
    kind = code.kind[place]
    step, cycle = timing.step[kind], channel.scalars[CLOCK]
    left = code.repetitions[code.target[place + 1]] - 1 - channel.variables[depth - 1]
    skipped = min(left, (channel.scalars[NEXT_REFRESH] - 1 - cycle) // step)
    if skipped > 0:
        _mark(timing, channel, kind, bank, cycle + skipped * step)
        channel.counts[kind] += skipped
        channel.variables[depth - 1] += skipped


@inlined
def _command(code: ProgramCode, timing: EngineTiming, channel: _Channel, place: int, depth: int) -> bool:
    """Issue the command at a place of the program, and return whether refreshes left it room."""
    kind = code.kind[place]
    bank = _value(code, place, BANK, channel.variables, depth) if timing.levels[kind] > 1 else NO_BANK
    row = _value(code, place, ROW, channel.variables, depth) if timing.effect[kind] == OPENS else NO_ROW
    cycle = max(_earliest(timing, channel, kind, bank), channel.scalars[HOLD])
    if cycle >= channel.scalars[NEXT_REFRESH]:
        cycle = _cycle_after_refreshes(timing, channel, kind, bank)
        if cycle < 0:
            return False
    _issue(timing, channel, kind, bank, row, cycle)
    if code.alone[place] == 1 and timing.step[kind] != NO_STEP:
        _skip(code, timing, channel, place, bank, depth)
    return True


@kernel
def _run(code: ProgramCode, timing: EngineTiming, channel: _Channel, events: Array) -> int:
    """Walk the program and return a status; a bad status leaves the event or kind it is about in the summary."""
    variables, kinds, count, target = channel.variables, code.kind, code.repetitions, code.target
    depth, place = 0, 0
    while place < len(kinds):
        kind = kinds[place]
        if kind == LOOP:
            if count[place] == 0:
                place = target[place]
            else:
                variables[depth] = 0
                depth += 1
        elif kind == END:
            variables[depth - 1] += 1
            if variables[depth - 1] < count[target[place]]:
                place = target[place]
            else:
                depth -= 1
        elif kind == SIGNAL:
            channel.signals[_value(code, place, EVENT, variables, depth)] = channel.scalars[COMPLETION]
        elif kind == WAIT:
            event = _value(code, place, EVENT, variables, depth)
            if event >= len(events) or events[event] < 0:
                channel.summary[DETAIL] = event
                return UNKNOWN_EVENT
            channel.scalars[HOLD] = max(channel.scalars[HOLD], events[event])
        elif not _command(code, timing, channel, place, depth):
            channel.summary[DETAIL] = kind
            return OVERTAKEN
        place += 1
    return DONE
