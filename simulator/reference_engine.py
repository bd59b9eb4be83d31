"""The readable timing engine: walks a program command by command, each at the earliest cycle the table allows.

It is the oracle of the fast engine (`simulator.engine`), checks legality, can log every issued command, and says what
each command waited for. It looks back from a command at what was issued before it, rule by rule, where the fast engine
looks forward from an issue at what may follow.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.channel import (
    BUS_FREE,
    CLOCK,
    CLOSED,
    COMPLETION,
    HOLD,
    NEXT_REFRESH,
    NO_CAUSE,
    OVERTAKEN_LIMIT,
    OWED_ROWS,
    REFRESH_BANK,
    REGISTER_MODE,
    ChannelState,
    IllegalProgram,
    RefreshPlan,
    RunReport,
    refresh_plan,
    window_lists,
)
from simulator.completion import completion_latencies
from simulator.isa import (
    ACTIVATES,
    ARRAY_KINDS,
    CLOSING,
    CODE_OF,
    KINDS,
    NEED_OPEN_ROWS,
    Issued,
    Kind,
    Program,
    walk,
)
from simulator.legality import check
from simulator.timing_table import Rule, TimingTable, timing_table


class LogEntry(NamedTuple):
    """One issued command; operands a kind does not use are 0."""

    cycle: int
    kind: Kind
    bank: int
    row: int
    column: int


class Earliest(NamedTuple):
    """The first cycle at which a command may issue, and the cause it waits for; of equal causes the first."""

    cycle: int
    cause: int

    def or_later(self, cycle: int, cause: int) -> "Earliest":
        """Return the later of both."""
        if cycle > self.cycle or (cycle == self.cycle and cause < self.cause):
            return Earliest(cycle, cause)
        return self


def run_reference(
    program: Program,
    device: Device,
    state: ChannelState,
    events: NDArray[np.int64],
    log: list[LogEntry] | None = None,
    table: TimingTable | None = None,
) -> RunReport:
    """Issue a program on a channel, writing into `state`, and return what happened, the stalls by cause included.

    `events[n]` is the cycle at which event n arrives; `table` is the device's, if it is at hand. Raises IllegalProgram
    for a command the channel cannot accept.
    """
    channel = ReferenceChannel(device, state, [] if log is None else log, table or timing_table(device))
    start = len(channel.log)
    signals: dict[int, int] = {}
    asked = 0
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
                if not channel.table.has(command.kind):
                    raise IllegalProgram(f"command {index}: expected a command {device.name} has, found {command.kind}")
                check(
                    command,
                    index,
                    channel.seen_rows(),
                    state.register_mode,
                    device.organisation,
                    channel.table.addressing,
                    program.accesses_per_column,
                )
                channel.issue_with_refresh(command, index)
                asked += 1
    channel.write_ready()
    issued = channel.log[start:]
    counts = Counter(entry.kind for entry in issued)
    return RunReport(
        first_issue=issued[0].cycle if issued else -1,
        last_issue=issued[-1].cycle if issued else -1,
        completed=state.completion,
        counts=tuple(counts[kind] for kind in KINDS),
        signals=tuple(signals.get(event, -1) for event in range(max(signals, default=-1) + 1)),
        refreshes=channel.refreshes,
        refresh_cycles=channel.refresh_cycles,
        own_commands=len(issued) - asked,
        stalls=tuple(channel.stalls[cause] for cause in range(len(channel.table.causes))),
    )


def _arrival(command: Issued, index: int, events: NDArray[np.int64]) -> int:
    if not 0 <= command.event < len(events) or events[command.event] < 0:
        found = f"event {command.event}"
        raise IllegalProgram(f"command {index}, WAIT: expected one of {len(events)} known events, found {found}")
    return int(events[command.event])


@dataclass(slots=True)
class ReferenceChannel:
    """One channel with the rules of its device; methods issue commands and write into `state` and `log`.

    `last[node, kind]` is the cycle of the last issue in this run; what earlier runs left is in `state.ready`.
    """

    device: Device
    state: ChannelState
    log: list[LogEntry]
    table: TimingTable
    refreshes: int = 0
    refresh_cycles: int = 0
    stalls: Counter[int] = field(default_factory=Counter)
    last: dict[tuple[int, int], int] = field(default_factory=dict)
    latencies: tuple[int, ...] = field(init=False)
    plan: RefreshPlan = field(init=False)
    rules: dict[Kind, list[Rule]] = field(init=False)
    lists: dict[tuple[int, int], int] = field(init=False)

    def __post_init__(self) -> None:
        """Resolve the device's table: `rules[following]` holds those that reach as deep as the command does."""
        table = self.table
        self.latencies = completion_latencies(self.device)
        self.plan = refresh_plan(self.device, table)
        self.lists = {(level, code): index for index, (level, code, _) in enumerate(window_lists(table))}
        self.rules = {kind: [] for kind in KINDS}
        for rule in table.rules:
            self.rules[KINDS[rule.following]].append(rule)

    def seen_rows(self) -> NDArray[np.int64]:
        """Return the open rows as the program sees them: those it is owed count as open."""
        return np.where(self.state.owed_row != CLOSED, self.state.owed_row, self.state.open_row)

    def earliest(self, kind: Kind, bank: int = 0) -> Earliest:
        """Return the first cycle at which buses and table allow this command next."""
        return self._rules_allow(kind, self.table.addressing.nodes_of(kind, bank), bank, self.base(kind))

    def base(self, kind: Kind) -> Earliest:
        """Return the first cycle after its predecessor: in order, and once its bus is free."""
        bus = self.table.bus[CODE_OF[kind]]
        return Earliest(max(self.state.clock, int(self.state.scalars[BUS_FREE + bus])), NO_CAUSE)

    def _rules_allow(self, kind: Kind, nodes: list[int], bank: int, earliest: Earliest) -> Earliest:
        column = self.table.class_of[CODE_OF[kind]]
        for node in nodes:
            earliest = earliest.or_later(int(self.state.ready[node, column]), int(self.state.cause[node, column]))
        for rule in self.rules[kind]:
            if rule.level < len(nodes):
                past = self._past(rule, nodes[rule.level], bank)
                if past is not None:
                    earliest = earliest.or_later(past + rule.cycles, rule.source)
        return earliest

    def _past(self, rule: Rule, node: int, bank: int) -> int | None:
        """Return the cycle of the issue that a rule looks back at."""
        if rule.window > 1:
            return int(self.state.history[self.lists[rule.level, rule.preceding], node, rule.window - 1])
        if not rule.sibling:
            return self.last.get((node, rule.preceding))
        nodes = self.table.addressing.siblings(rule.level, bank)
        return max(
            (self.last[node, rule.preceding] for node in nodes if (node, rule.preceding) in self.last), default=None
        )

    def issue(self, cycle: int, kind: Kind, bank: int = 0, row: int = 0, column: int = 0) -> None:
        """Issue a command at a cycle: leave its marks, open or close rows, log it."""
        state, code, tree = self.state, CODE_OF[kind], self.table.addressing
        nodes = tree.nodes_of(kind, bank)
        for level, node in enumerate(nodes):
            self.last[node, code] = cycle
            if (level, code) in self.lists:
                past = state.history[self.lists[level, code], node]
                past[1:] = past[:-1].copy()
                past[0] = cycle
        banks = tree.banks_of(kind, bank)
        if kind in ACTIVATES:
            state.open_row[banks.start : banks.stop] = row
        elif kind in CLOSING:
            state.open_row[banks.start : banks.stop] = CLOSED
        elif kind is Kind.TMOD:
            state.scalars[REGISTER_MODE] = not state.register_mode
        state.scalars[CLOCK] = cycle
        state.scalars[BUS_FREE + self.table.bus[code]] = cycle + self.table.ticks[code]
        state.scalars[COMPLETION] = max(state.completion, cycle + self.latencies[code])
        self.log.append(LogEntry(cycle, kind, bank, row, column))

    def issue_with_refresh(self, command: Issued, index: int) -> None:
        """Issue a command of a program, after the refreshes that fall due before its cycle."""
        kind, bank = command.kind, command.bank
        base, alone = self.base(kind).cycle, self._earliest_held(kind, bank)
        self.stalls[alone.cause] += alone.cycle - base
        after = self._after_refreshes_of_one if self.plan.per_bank else self._after_refreshes_of_all
        cycle = after(kind, bank, alone.cycle)
        if cycle is None:
            raise IllegalProgram(
                f"command {index}, {kind}: expected room between two refreshes, found none in {OVERTAKEN_LIMIT} tries"
            )
        self.refresh_cycles += cycle - alone.cycle
        used = bank if self.table.addressing.is_addressed(kind) else 0
        self.issue(cycle, kind, used, command.row, command.column)

    def _earliest_held(self, kind: Kind, bank: int) -> Earliest:
        earliest = self.earliest(kind, bank)
        return Earliest(self.state.hold, self.table.event) if self.state.hold > earliest.cycle else earliest

    def _after_refreshes_of_all(self, kind: Kind, bank: int, cycle: int) -> int | None:
        """Close all rows when refresh is due, refresh, and open the same rows again before the program goes on."""
        for _ in range(OVERTAKEN_LIMIT):
            if cycle < self.state.next_refresh:
                return cycle
            open_rows = self.state.open_row.tolist()
            while self._earliest_held(kind, bank).cycle >= self.state.next_refresh:
                self._refresh_all()
            if kind is not Kind.PREA:
                self._reopen_all(open_rows)
            cycle = self._earliest_held(kind, bank).cycle
        return None

    def _refresh_all(self) -> None:
        due, tree = self.state.next_refresh, self.table.addressing
        below = len(tree.banks_of(Kind.REFab, 0))
        for first in range(0, tree.banks, below):
            if (self.state.open_row[first : first + below] != CLOSED).any():
                self._issue_own(Kind.PREA, first, due)
            for _ in range(self.plan.burst):
                self._issue_own(Kind.REFab, first, due)
                self.refreshes += 1
        self.state.scalars[NEXT_REFRESH] = due + self.plan.interval

    def _reopen_all(self, rows: list[int]) -> None:
        """Open rows again, with one command where that is possible."""
        if self.table.has(Kind.ACT16) and rows[0] != CLOSED and len(set(rows)) == 1:
            self.issue(self.earliest(Kind.ACT16).cycle, Kind.ACT16, row=rows[0])
            return
        for bank, row in enumerate(rows):
            if row != CLOSED:
                self._open(bank, row)

    def _open(self, bank: int, row: int) -> None:
        for kind in (Kind.ACT1, Kind.ACT2) if self.table.has(Kind.ACT1) else (Kind.ACT,):
            self.issue(self.earliest(kind, bank).cycle, kind, bank, row)

    def _issue_own(self, kind: Kind, bank: int, due: int) -> None:
        self.issue(max(self.earliest(kind, bank).cycle, due), kind, bank)

    def _after_refreshes_of_one(self, kind: Kind, bank: int, cycle: int) -> int | None:
        """Close and refresh the next bank when due, without keeping the program waiting unless it asks for that bank.

        The row is owed to the program, and opened again when it needs it.
        """
        banks = self.table.addressing.banks_of(kind, bank)
        left, latest = OVERTAKEN_LIMIT * len(self.state.open_row), 0
        while left > 0:
            if cycle > latest:
                left, latest = left - 1, cycle
            due, turn = self.state.next_refresh, int(self.state.scalars[REFRESH_BANK])
            if cycle >= due:
                step = Kind.PRE if self.state.open_row[turn] != CLOSED else Kind.REFpb
                if max(self.earliest(step, turn).cycle, due) <= cycle or (kind in ARRAY_KINDS and turn in banks):
                    self._refresh_one(turn, due)
                    cycle = self._earliest_held(kind, bank).cycle
                    continue
            owed = [place for place in banks if self.state.owed_row[place] != CLOSED]
            if kind in NEED_OPEN_ROWS and owed:
                row = int(self.state.owed_row[owed[0]])
                self._owe(range(owed[0], owed[0] + 1), CLOSED)
                self._open(owed[0], row)
                cycle = self._earliest_held(kind, bank).cycle
                continue
            if kind in CLOSING:
                self._owe(banks, CLOSED)
            return cycle
        return None

    def _refresh_one(self, bank: int, due: int) -> None:
        """Take the next step towards refreshing a bank: close its row, or refresh it."""
        row = int(self.state.open_row[bank])
        if row != CLOSED:
            self._owe(range(bank, bank + 1), row)
            self._issue_own(Kind.PRE, bank, due)
            return
        self._issue_own(Kind.REFpb, bank, due)
        self.refreshes += 1
        self.state.scalars[REFRESH_BANK] = (bank + 1) % len(self.state.open_row)
        self.state.scalars[NEXT_REFRESH] = due + self.plan.interval

    def _owe(self, banks: range, row: int) -> None:
        self.state.owed_row[banks.start : banks.stop] = row
        self.state.scalars[OWED_ROWS] = (self.state.owed_row != CLOSED).sum()

    def write_ready(self) -> None:
        """Leave in the state, for every node and class, the first cycle it allows and why."""
        tree, ready, cause = self.table.addressing, self.state.ready, self.state.cause
        for level, below in enumerate(tree.banks_below):
            rules = [rule for rule in self.table.rules if rule.level == level]
            for bank in range(0, tree.banks, below):
                node = tree.node(level, bank)
                for rule in rules:
                    past = self._past(rule, node, bank)
                    if past is not None:
                        column = self.table.class_of[rule.following]
                        found = Earliest(int(ready[node, column]), int(cause[node, column]))
                        ready[node, column], cause[node, column] = found.or_later(past + rule.cycles, rule.source)
        self.last.clear()
