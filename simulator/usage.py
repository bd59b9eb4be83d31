"""What one channel did with its time, in closed form from a run's counts and stalls: nothing is walked again.

A channel's time from one cycle to another divides into cycles in which a command of the program issues, cycles its
commands wait for a timing constraint or an event, and cycles they wait because of refresh.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.completion import burst_cycles
from simulator.isa import ACTIVATES, CODE_OF, KINDS, Kind
from simulator.legality import COLUMN_KINDS
from simulator.timing_table import TimingTable

# How far apart multiplications of a kind start, which is how long one keeps its units.
UNIT_CADENCE = {Kind.MAC16: "nCCDMAC", Kind.MAC: "nCCDL", Kind.EWMUL16: "nCCDL"}


@dataclass(frozen=True, slots=True)
class Stall:
    """Cycles lost to one cause: a row of the device's table, as it is written there, or an event."""

    cause: str
    cycles: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Cycles and counts of one channel; rows are counted per bank, as banks activate and access them.

    Row hits are the accesses to a row beyond the first after each activate; every activate counts as accessed.
    """

    row_accesses: int
    row_activations: int
    row_hits: int
    command_bus_cycles: int
    data_bus_cycles: int
    unit_cycles: int
    refresh_cycles: int
    stalls: tuple[Stall, ...]


def usage(
    device: Device, table: TimingTable, counts: NDArray[np.int64], refresh_cycles: int, stalls: Sequence[int]
) -> Usage:
    """Return what commands (int64[kinds]) and stalls by cause say of a channel; largest stalls come first."""
    banks = np.array([len(table.addressing.banks_of(kind, 0)) for kind in KINDS], dtype=np.int64)
    accesses = _sum_of(COLUMN_KINDS, counts * banks)
    activations = _sum_of(ACTIVATES, counts * banks)
    found = [Stall(cause, int(cycles)) for cause, cycles in zip(table.causes, stalls, strict=False) if cycles]
    return Usage(
        row_accesses=accesses,
        row_activations=activations,
        row_hits=max(0, accesses - activations),
        command_bus_cycles=int(counts @ np.array(table.ticks, dtype=np.int64)),
        data_bus_cycles=int(counts @ np.array(burst_cycles(device), dtype=np.int64)),
        unit_cycles=int(counts @ unit_cycles(device)),
        refresh_cycles=refresh_cycles,
        stalls=tuple(sorted(found, key=lambda stall: -stall.cycles)),
    )


def unit_cycles(device: Device) -> NDArray[np.int64]:
    """Return how long one command of each kind keeps the units, 0 for those that do not use them: int64[kinds]."""
    cycles = np.zeros(len(KINDS), dtype=np.int64)
    for kind, name in UNIT_CADENCE.items():
        cycles[CODE_OF[kind]] = device.timing.get(name, 0) * device.ticks_per_clock
    return cycles


def _sum_of(kinds: frozenset[Kind], counts: NDArray[np.int64]) -> int:
    return int(sum(counts[CODE_OF[kind]] for kind in kinds))
