"""The readable timing engine: walks a program command by command, each at the earliest cycle the table allows.

It is the oracle of the fast engine (`simulator.engine`), checks legality, and can log every issued command.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
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
    node_of,
    refresh_interval,
    window_lists,
)
from simulator.completion import completion_latencies
from simulator.isa import ACTIVATES, CODE_OF, KINDS, PRECHARGES, Issued, Kind, Program, Scope, scope_of, walk
from simulator.legality import addressed_banks, check
from simulator.timing_table import LEVELS, UNCONSTRAINED, timing_table

CLOSING = PRECHARGES | {Kind.RDA, Kind.WRA, Kind.WRA16}


class LogEntry(NamedTuple):
    """One issued command; operands a kind does not use are 0."""

    cycle: int
    kind: Kind
    bank: int
    row: int
    column: int


def run_reference(
    program: Program,
    device: Device,
    state: ChannelState,
    events: NDArray[np.int64],
    log: list[LogEntry] | None = None,
) -> RunReport:
    """Issue a program on a channel, writing into `state`, and return what happened.

    `events[n]` is the cycle at which event n arrives. Raises IllegalProgram for a command the channel cannot accept.
    """
    channel = ReferenceChannel(device, state, [] if log is None else log)
    start = len(channel.log)
    signals: dict[int, int] = {}
    for index, command in enumerate(walk(program)):
        match command.kind:
            case Kind.WAIT:
                state.scalars[HOLD] = max(state.hold, _arrival(command, index, events))
            case Kind.SIGNAL:
                if command.event < 0:
                    raise IllegalProgram(
                        f"command {index}, SIGNAL: expected an event number of at least 0, found event {command.event}"
                    )
                signals[command.event] = state.completion
            case _:
                check(command, index, state.open_row, state.register_mode, device.organisation)
                channel.issue_with_refresh(command, index)
    issued = channel.log[start:]
    counts = Counter(entry.kind for entry in issued)
    return RunReport(
        first_issue=issued[0].cycle if issued else -1,
        last_issue=issued[-1].cycle if issued else -1,
        completed=state.completion,
        counts=tuple(counts[kind] for kind in KINDS),
        signals=tuple(signals.get(event, -1) for event in range(max(signals, default=-1) + 1)),
        refreshes=channel.refreshes,
    )


def _arrival(command: Issued, index: int, events: NDArray[np.int64]) -> int:
    if not 0 <= command.event < len(events) or events[command.event] < 0:
        found = f"event {command.event}"
        raise IllegalProgram(f"command {index}, WAIT: expected one of {len(events)} known events, found {found}")
    return int(events[command.event])


@dataclass(slots=True)
class ReferenceChannel:
    """One channel with the rules of its device; methods issue commands and write into `state` and `log`."""

    device: Device
    state: ChannelState
    log: list[LogEntry]
    refreshes: int = 0
    latencies: tuple[int, ...] = field(init=False)
    gaps: dict[Kind, list[tuple[int, int, int]]] = field(init=False)
    windows: tuple[tuple[int, int, int, int, int], ...] = field(init=False)
    lists: tuple[tuple[int, int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Resolve the device's table: `gaps[following]` lists (level, preceding, cycles)."""
        table = timing_table(self.device)
        self.latencies = completion_latencies(self.device)
        self.windows, self.lists = table.windows, window_lists(table)
        self.gaps = {kind: [] for kind in KINDS}
        for level, preceding, following in np.argwhere(table.gap != UNCONSTRAINED).tolist():
            cycles = int(table.gap[level, preceding, following])
            self.gaps[KINDS[following]].append((level, preceding, cycles))

    def earliest(self, kind: Kind, bank: int = 0) -> int:
        """Return the first cycle at which the table allows this command next."""
        cycles = [self.state.clock + 1]
        nodes = self._nodes(kind, bank)
        for level, preceding, gap in self.gaps[kind]:
            if level < len(nodes):
                cycles.append(int(self.state.last[nodes[level], preceding]) + gap)
        for level, preceding, following, gap, window in self.windows:
            if KINDS[following] is kind and level < len(nodes):
                past = self.state.history[self._list(level, preceding), nodes[level]]
                cycles.append(int(past[window - 1]) + gap)
        return max(cycles)

    def issue(self, cycle: int, kind: Kind, bank: int = 0, row: int = 0, column: int = 0) -> None:
        """Issue a command at a cycle: leave its marks, open or close rows, log it."""
        state, nodes = self.state, self._nodes(kind, bank)
        state.last[nodes, CODE_OF[kind]] = cycle
        for index, (level, preceding, _) in enumerate(self.lists):
            if preceding == CODE_OF[kind] and level < len(nodes):
                past = state.history[index, nodes[level]]
                past[1:] = past[:-1].copy()
                past[0] = cycle
        banks = addressed_banks(kind, bank, self.device.organisation)
        if kind in ACTIVATES:
            state.open_row[banks.start : banks.stop] = row
        elif kind in CLOSING:
            state.open_row[banks.start : banks.stop] = CLOSED
        elif kind is Kind.TMOD:
            state.scalars[REGISTER_MODE] = not state.register_mode
        state.scalars[CLOCK] = cycle
        state.scalars[COMPLETION] = max(state.completion, cycle + self.latencies[CODE_OF[kind]])
        self.log.append(LogEntry(cycle, kind, bank, row, column))

    def issue_with_refresh(self, command: Issued, index: int) -> None:
        """Issue a command of a program, after the refreshes that fall due before its cycle."""
        kind, bank = command.kind, command.bank
        for _ in range(OVERTAKEN_LIMIT):
            cycle = self._earliest_held(kind, bank)
            if cycle < self.state.next_refresh:
                used = bank if scope_of(kind) is not Scope.CHANNEL else 0
                self.issue(cycle, kind, used, command.row, command.column)
                return
            open_rows = self.state.open_row.tolist()
            while self._earliest_held(kind, bank) >= self.state.next_refresh:
                self._refresh()
            if kind is not Kind.PREA:
                self._reopen(open_rows)
        raise IllegalProgram(
            f"command {index}, {kind}: expected room between two refreshes, found none in {OVERTAKEN_LIMIT} tries"
        )

    def _earliest_held(self, kind: Kind, bank: int) -> int:
        return max(self.earliest(kind, bank), self.state.hold)

    def _refresh(self) -> None:
        due = self.state.next_refresh
        if (self.state.open_row != CLOSED).any():
            self.issue(max(self.earliest(Kind.PREA), due), Kind.PREA)
        self.issue(max(self.earliest(Kind.REFab), due), Kind.REFab)
        self.state.scalars[NEXT_REFRESH] = due + refresh_interval(self.device)
        self.refreshes += 1

    def _reopen(self, rows: list[int]) -> None:
        if rows[0] != CLOSED and len(set(rows)) == 1:
            self.issue(self.earliest(Kind.ACT16), Kind.ACT16, row=rows[0])
            return
        for bank, row in enumerate(rows):
            if row != CLOSED:
                self.issue(self.earliest(Kind.ACT, bank), Kind.ACT, bank, row)

    def _nodes(self, kind: Kind, bank: int) -> list[int]:
        """Return the nodes a command looks at and marks, from the channel down to its own scope."""
        depth = LEVELS.index(scope_of(kind)) + 1
        return [node_of(level, bank, self.device.organisation) for level in range(depth)]

    def _list(self, level: int, preceding: int) -> int:
        return next(index for index, entry in enumerate(self.lists) if entry[:2] == (level, preceding))
