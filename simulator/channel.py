"""The whole timing state of one channel, and what a run reports: the common ground of both engines.

A channel has nodes at three levels: the channel itself (node 0), its bank groups, its banks. `last[node, kind]` is the
cycle at which a command of that kind last left its mark on the node.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.device import Device, Organisation
from simulator.isa import KINDS
from simulator.timing_table import TimingTable, timing_table

NEVER = -(1 << 40)  # long before cycle 0, and far from overflow when a gap is added
NO_REFRESH = 1 << 60  # the next refresh of a device without refresh
CLOSED = -1  # in place of an open row
NO_EVENTS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

# Places in `ChannelState.scalars`.
CLOCK, COMPLETION, NEXT_REFRESH, HOLD, REGISTER_MODE = range(5)

# How often one command may be overtaken by a refresh and the re-opening of its rows before a run is given up.
OVERTAKEN_LIMIT = 64


class IllegalProgram(ValueError):  # noqa: N818 - named for what it reports
    """Raised when a program asks for what the device cannot do; the message names the command and both sides."""


@dataclass(frozen=True, slots=True, eq=False)
class ChannelState:
    """Everything the future of a channel depends on; the engines write into the arrays.

    `last` is int64[nodes, kinds]; `history` int64[window lists, nodes, depth], newest first; `open_row` int64[banks];
    `scalars` holds clock, completion, next refresh, hold and register mode.
    """

    last: NDArray[np.int64]
    history: NDArray[np.int64]
    open_row: NDArray[np.int64]
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
        return ChannelState(self.last.copy(), self.history.copy(), self.open_row.copy(), self.scalars.copy())

    def __eq__(self, other: object) -> bool:
        """Compare all arrays by value."""
        if not isinstance(other, ChannelState):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one run issued, the controller's refresh commands included; cycles are absolute.

    `counts` is indexed by command code (SIGNAL and WAIT are not issued and stay 0), `signals` by event number (-1: not
    signalled). `first_issue` and `last_issue` are -1 if nothing was issued. `refreshes` counts the controller's own.
    """

    first_issue: int
    last_issue: int
    completed: int
    counts: tuple[int, ...]
    signals: tuple[int, ...]
    refreshes: int


def fresh_state(device: Device) -> ChannelState:
    """Return the state at cycle 0: all banks closed, memory mode, nothing issued, the first refresh due at nREFI."""
    nodes = 1 + device.organisation.bank_groups + device.organisation.banks
    lists = window_lists(timing_table(device))
    depth = max((depth for _, _, depth in lists), default=0)
    return ChannelState(
        last=np.full((nodes, len(KINDS)), NEVER, dtype=np.int64),
        history=np.full((len(lists), nodes, depth), NEVER, dtype=np.int64),
        open_row=np.full(device.organisation.banks, CLOSED, dtype=np.int64),
        scalars=np.array([-1, 0, refresh_interval(device), 0, 0], dtype=np.int64),
    )


def refresh_interval(device: Device) -> int:
    """Return nREFI, or NO_REFRESH; raises ValueError if the device cannot keep up with its refreshes."""
    if not device.refresh:
        return NO_REFRESH
    interval, duration = device.timing.get("nREFI", 0), device.timing.get("nRFC", 0)
    if not 0 < duration < interval:
        raise ValueError(f"device {device.name}: expected 0 < nRFC < nREFI, found nRFC {duration}, nREFI {interval}")
    return interval


def window_lists(table: TimingTable) -> tuple[tuple[int, int, int], ...]:
    """Return (level, preceding, depth) of each list of past issues that the windowed rows of a table look back on."""
    pairs = sorted({(level, preceding) for level, preceding, _, _, _ in table.windows})
    return tuple((*pair, max(row[4] for row in table.windows if row[:2] == pair)) for pair in pairs)


def node_of(level: int, bank: int, organisation: Organisation) -> int:
    """Return the node of a bank at a level: 0 channel, 1 bank group, 2 bank."""
    if level == 0:
        return 0
    return 1 + bank // organisation.banks_per_group if level == 1 else 1 + organisation.bank_groups + bank
