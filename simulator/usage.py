"""What one channel did, in closed form from the counts and stalls of a run: nothing is walked again.

A channel's time divides into cycles in which a command of the program issues, cycles its commands wait for a row of the
timing table or an event, cycles they wait because of refresh, and the rest after the last command.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.completion import burst_cycles
from simulator.isa import ACTIVATES, CODE_OF, COLUMN_KINDS, EVERY_OTHER_BANK_KINDS, KINDS, Kind
from simulator.timing_table import TimingTable

# How far apart multiplications of a kind start, which is how long one keeps its units.
UNIT_CADENCE = {
    Kind.MAC16: "nCCDMAC",
    Kind.MACL16: "nCCDMAC",
    Kind.MAC: "nCCDL",
    Kind.EWMUL16: "nCCDL",
    Kind.RD8: "nCCDL",
}


@dataclass(frozen=True, slots=True)
class Stall:
    """Cycles lost to one cause: a row of the device's table, or an event."""

    cause: str
    cycles: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts and cycles of one channel, means over channels where counts are.

    Rows are counted bank by bank: a command for all banks activates and accesses as many. Row hits are the accesses to
    a row beyond the first after its activate; each activate counts as accessed, so that they are a lower bound.
    """

    row_accesses: float
    row_activations: float
    row_hits: float
    command_bus_cycles: float
    data_bus_cycles: float
    unit_cycles: float


def usage(device: Device, table: TimingTable, counts: NDArray[Any]) -> Usage:
    """Return what the commands of a channel (number[kinds]) used."""
    banks = np.array([_banks_of(table, kind) for kind in KINDS], dtype=np.int64)
    accesses = _sum_of((COLUMN_KINDS | {Kind.MACL16}) - {Kind.WR8}, counts * banks)
    activations = _sum_of(ACTIVATES, counts * banks)
    return Usage(
        row_accesses=accesses,
        row_activations=activations,
        row_hits=max(0.0, accesses - activations),
        command_bus_cycles=float(counts @ np.array(table.ticks, dtype=np.int64)),
        data_bus_cycles=float(counts @ np.array(burst_cycles(device), dtype=np.int64)),
        unit_cycles=float(counts @ unit_cycles(device)),
    )


def _banks_of(table: TimingTable, kind: Kind) -> int:
    """Return how many banks a command works on: bank 0 or 1 stands for every other one where a kind says so."""
    if kind in EVERY_OTHER_BANK_KINDS:
        return table.addressing.banks // 2
    return len(table.addressing.banks_of(kind, 0))


def stalls_of(table: TimingTable, stalls: Sequence[int]) -> tuple[Stall, ...]:
    """Name the stalls of a run, which are by cause; the largest come first."""
    found = [Stall(cause, int(cycles)) for cause, cycles in zip(table.causes, stalls, strict=False) if cycles]
    return tuple(sorted(found, key=lambda stall: -stall.cycles))


def unit_cycles(device: Device) -> NDArray[np.int64]:
    """Return how long one command of each kind keeps the units, 0 for those that do not use them: int64[kinds]."""
    cycles = np.zeros(len(KINDS), dtype=np.int64)
    for kind, name in UNIT_CADENCE.items():
        cycles[CODE_OF[kind]] = device.timing.get(name, 0) * device.ticks_per_clock
    return cycles


def _sum_of(kinds: frozenset[Kind], counts: NDArray[Any]) -> float:
    return float(sum(counts[CODE_OF[kind]] for kind in kinds))
