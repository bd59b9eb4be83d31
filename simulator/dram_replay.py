"""Replay of a command stream: the same commands in the same order, each as early as the device's table allows.

A stream is complete: no refresh is added to it. Its channels know nothing of each other, and the clock of each starts
at 1, so that its first command issues in cycle 1. `simulator.dram_stream` reads and writes streams as files.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from configs.refresh import Refresh, RefreshPolicy
from simulator.channel import NO_EVENTS
from simulator.engine import Engine, Skipping
from simulator.isa import CODE_OF, Kind
from simulator.program_code import straight_line

FIRST_CYCLE = 1
TRANSFERS = (Kind.RD, Kind.WR, Kind.RDA, Kind.WRA)

Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Commands in order, an int64 entry each: channel, index into `isa.KINDS`, bank of its channel, and row."""

    channel: Array
    kind: Array
    bank: Array
    row: Array

    def __len__(self) -> int:
        """Return how many commands there are."""
        return len(self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class StreamReplay:
    """When each command of a stream issued; `completed` is the cycle after the last beat of data and the last refresh.

    `peak_bytes_per_cycle` is what the data pins of all pseudo channels that the stream uses could move.
    """

    cycle: Array
    completed: int
    transferred_bytes: int
    peak_bytes_per_cycle: float

    @property
    def cycles(self) -> int:
        """Cycle of the last command, 0 for an empty stream."""
        return int(self.cycle.max(initial=0))

    @property
    def elapsed_cycles(self) -> int:
        """Cycles from the first command to the end of everything."""
        return self.completed - FIRST_CYCLE

    @property
    def bytes_per_cycle(self) -> float:
        """Data moved over the elapsed cycles."""
        return self.transferred_bytes / max(1, self.elapsed_cycles)


def replay_stream(stream: Stream, device: Device) -> StreamReplay:
    """Return when every command issues; the banks of the stream must be banks of the device."""
    engine = Engine(without_refresh(device), Skipping.NOTHING)
    cycle = np.zeros(len(stream), dtype=np.int64)
    completed = 0
    for channel in np.unique(stream.channel).tolist():
        own = np.flatnonzero(stream.channel == channel)
        code = straight_line(stream.kind[own], stream.bank[own], stream.row[own])
        report, log = engine.run_logged(code, engine.fresh_state(), NO_EVENTS)
        cycle[own] = log.cycle
        completed = max(completed, report.completed)
    moved = np.isin(stream.kind, [CODE_OF[kind] for kind in TRANSFERS])
    return StreamReplay(
        cycle=cycle + FIRST_CYCLE,
        completed=completed + FIRST_CYCLE,
        transferred_bytes=int(moved.sum()) * device.organisation.burst_bytes,
        peak_bytes_per_cycle=_used_pseudo_channels(stream, device) * pin_bytes_per_cycle(device),
    )


def without_refresh(device: Device) -> Device:
    """Return the device with a controller that refreshes nothing by itself."""
    return device.model_copy(update={"refresh": Refresh(policy=RefreshPolicy.NONE)})


def pin_bytes_per_cycle(device: Device) -> float:
    """Return what the data pins of one pseudo channel move in a cycle when no beat is lost."""
    return device.organisation.burst_bytes / (device.timing["nBL"] * device.ticks_per_clock)


def _used_pseudo_channels(stream: Stream, device: Device) -> int:
    organisation = device.organisation
    pseudo_channel = stream.bank // (organisation.banks // organisation.pseudo_channels)
    return len(np.unique(stream.channel * organisation.pseudo_channels + pseudo_channel))
