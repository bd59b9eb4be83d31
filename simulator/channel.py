"""The whole timing state of one channel, and what a run reports: the common ground of both engines.

The nodes of a channel are those of `simulator.addressing`, the classes of commands those of `simulator.timing_table`.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from configs.refresh import RefreshPolicy
from simulator.addressing import LEVELS
from simulator.isa import CODE_OF, Kind, Scope
from simulator.timing_table import BUSES, TimingTable, timing_table

BANK = LEVELS.index(Scope.BANK)
NEVER = -(1 << 40)  # long before cycle 0, and far from overflow when a gap is added
NO_REFRESH = 1 << 60  # the next refresh of a device without refresh
CLOSED = -1  # in place of an open row
NO_CAUSE = -1
NO_EVENTS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

# Places in `ChannelState.scalars`; a bus each from BUS_FREE on.
CLOCK, COMPLETION, NEXT_REFRESH, HOLD, REGISTER_MODE, REFRESH_BANK, OWED_ROWS, BUS_FREE = range(8)

# How often one command may be overtaken by a refresh and the re-opening of its rows before a run is given up.
OVERTAKEN_LIMIT = 64


class IllegalProgram(ValueError):  # noqa: N818 - named for what it reports
    """Raised when a program asks for what the device cannot do; the message names the command and both sides."""


@dataclass(frozen=True, slots=True, eq=False)
class ChannelState:
    """Everything the future of a channel depends on; the engines write into the arrays.

    `ready` is int64[nodes, classes], the first cycle at which a node lets a command of a class issue, and `cause` the
    row of the table that says so (kept by runs that explain). `history` is int64[window lists, nodes, depth], newest
    first; `open_row` int64[banks]; `owed_row` int64[banks], the rows that refresh of single banks closed and that a
    program may still count on; `scalars` holds clock, completion, next refresh, hold, register mode, the bank that is
    refreshed next, how many rows are owed, and the first free cycle of each command bus.
    """

    ready: NDArray[np.int64]
    cause: NDArray[np.int64]
    history: NDArray[np.int64]
    open_row: NDArray[np.int64]
    owed_row: NDArray[np.int64]
    scalars: NDArray[np.int64]

    @property
    def clock(self) -> int:
        """Cycle of the last issued command, -1 before the first."""
        return int(self.scalars[CLOCK])

    @property
    def completion(self) -> int:
        """Cycle at which everything issued so far has completed."""
        return int(self.scalars[COMPLETION])

    @property
    def next_refresh(self) -> int:
        """Cycle at which the next refresh is due."""
        return int(self.scalars[NEXT_REFRESH])

    @property
    def hold(self) -> int:
        """Latest event waited for: no later command of a program issues before it."""
        return int(self.scalars[HOLD])

    @property
    def register_mode(self) -> bool:
        """Whether the channel is in register mode."""
        return bool(self.scalars[REGISTER_MODE])

    def copy(self) -> "ChannelState":
        """Return a state that shares no array with this one."""
        return ChannelState(*(getattr(self, name).copy() for name in self.__slots__))

    def same_future(self, other: "ChannelState", longest_window: int) -> bool:
        """Return whether nothing that can follow tells the states apart: what lies behind the clock is all alike."""
        clock, oldest = self.clock, self.clock - longest_window
        fixed = slice(BUS_FREE)
        if not np.array_equal(self.scalars[fixed], other.scalars[fixed]):
            return False
        if not np.array_equal(np.maximum(self.scalars, clock), np.maximum(other.scalars, clock)):
            return False
        if not (np.array_equal(self.open_row, other.open_row) and np.array_equal(self.owed_row, other.owed_row)):
            return False
        return np.array_equal(np.maximum(self.ready, clock), np.maximum(other.ready, clock)) and np.array_equal(
            np.maximum(self.history, oldest), np.maximum(other.history, oldest)
        )


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one run issued, the controller's refresh commands included; cycles are absolute.

    `counts` is indexed by command code (SIGNAL and WAIT are not issued and stay 0), `signals` by event number (-1: not
    signalled). `first_issue` and `last_issue` are -1 if nothing was issued. `refreshes` counts the controller's own
    refresh commands, `own_commands` all that it issued by itself, and `refresh_cycles` how much later than without them
    the commands they met issued. `stalls` holds, per cause of `TimingTable.causes`, how many cycles commands waited for
    it behind their predecessor; it is empty unless the run was asked to explain. `skipped` is how many of the commands
    the engine did not walk one by one.
    """

    first_issue: int
    last_issue: int
    completed: int
    counts: tuple[int, ...]
    signals: tuple[int, ...]
    refreshes: int
    refresh_cycles: int
    own_commands: int
    stalls: tuple[int, ...] = ()
    skipped: int = field(default=0, compare=False)


def fresh_state(device: Device, table: TimingTable | None = None) -> ChannelState:
    """Return the state at cycle 0: all banks closed, memory mode, nothing issued, a first refresh one interval away."""
    table = table or timing_table(device)
    nodes = table.addressing.nodes
    lists = window_lists(table)
    depth = max((depth for _, _, depth in lists), default=0)
    scalars = np.zeros(BUS_FREE + BUSES, dtype=np.int64)
    scalars[CLOCK], scalars[NEXT_REFRESH] = -1, refresh_plan(device, table).interval
    return ChannelState(
        ready=np.full((nodes, table.classes), NEVER, dtype=np.int64),
        cause=np.full((nodes, table.classes), NO_CAUSE, dtype=np.int64),
        history=np.full((len(lists), nodes, depth), NEVER, dtype=np.int64),
        open_row=np.full(table.addressing.banks, CLOSED, dtype=np.int64),
        owed_row=np.full(table.addressing.banks, CLOSED, dtype=np.int64),
        scalars=scalars,
    )


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """What the controller issues every `interval`: `burst` REFab to all that one reaches, or REFpb to the next bank."""

    interval: int
    burst: int
    per_bank: bool


def refresh_plan(device: Device, table: TimingTable) -> RefreshPlan:
    """Return when and how a device is refreshed; raises ValueError if it cannot keep up or lacks the commands."""
    if not device.refresh:
        return RefreshPlan(NO_REFRESH, 0, per_bank=False)
    per_bank = device.refresh.policy is RefreshPolicy.PER_BANK
    command, name = (Kind.REFpb, "nRFCpb") if per_bank else (Kind.REFab, "nRFC")
    if not table.has(command):
        raise ValueError(f"device {device.name}: refresh {device.refresh.policy} needs {command}, its table has none")
    interval = device.refresh_interval_cycles
    duration = device.timing.get(name, 0) * device.ticks_per_clock
    if per_bank:
        interval //= table.addressing.banks
        code = CODE_OF[Kind.REFpb]
        together = [
            rule.cycles for rule in table.rules if rule.preceding == rule.following == code and rule.level < BANK
        ]
        if max(together, default=0) > interval:
            raise ValueError(
                f"device {device.name}: expected refreshes of single banks at most {interval} cycles apart, found "
                f"{max(together)} between {Kind.REFpb} and {Kind.REFpb}"
            )
    if not 0 < duration < interval * (table.addressing.banks if per_bank else 1):
        raise ValueError(
            f"device {device.name}: expected 0 < {name} < time between refreshes, found {duration} and {interval}"
        )
    burst = device.refresh.postponed + 1
    return RefreshPlan(interval * burst, burst, per_bank)


def window_lists(table: TimingTable) -> tuple[tuple[int, int, int], ...]:
    """Return (level, preceding, depth) of each list of past issues that the windowed rules of a table look back on."""
    windowed = [rule for rule in table.rules if rule.window > 1]
    pairs = sorted({(rule.level, rule.preceding) for rule in windowed})
    return tuple(
        (*pair, max(rule.window for rule in windowed if (rule.level, rule.preceding) == pair)) for pair in pairs
    )


def longest_window(table: TimingTable) -> int:
    """Return the cycles after which a past issue of a windowed rule no longer matters."""
    return max((rule.cycles for rule in table.rules if rule.window > 1), default=0)
