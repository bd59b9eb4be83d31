"""How long a matrix-vector kernel must take on its channel: the chain of waits that its own command order imposes.

Commands issue in order, so that the time between the first and the last of a kernel is at least the sum of the gaps
along any chain of consecutive commands. The chain here follows a kernel from its first buffer write to its last
read-out; it leaves out what is not certain (refresh beyond the whole intervals, late inputs), and is therefore a lower
bound of the simulated time of the schedule. Everything is ints or arrays, one entry per candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.device_table import REFRESH_INTERVAL, REFRESH_STOP
from compiler.geometry import Geometry, KernelCounts, early_reads, kernel_counts

MODE_CHANGES_BETWEEN_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class ChainParts:
    """The cycles of a kernel by cause; `activation_limit` holds beside their sum, from the spacing of activates."""

    multiply: Any
    rows: Any
    boundaries: Any
    registers: Any
    ends: Any
    activation_limit: Any

    @property
    def serial(self) -> Any:
        """Cycles from the first buffer write to the last read-out along the chain."""
        return self.multiply + self.rows + self.boundaries + self.registers + self.ends


def kernel_chain(shape: Geometry, timing: Mapping[str, Any], preactivate: Any) -> ChainParts:
    """Return the chain of one kernel."""
    counts = kernel_counts(shape)
    visits = counts.activate
    blocks = shape.vector_groups * shape.groups * shape.segments + early_reads(shape)
    mode, activate = timing["nMODCH"], timing["nRCDRDMAC"]
    registers = _register_cycles(shape, counts, timing, blocks + 1)
    through_register_mode = MODE_CHANGES_BETWEEN_BLOCKS * mode + 2
    crossings = blocks - 1
    # A row opened ahead of the mode changes waits for them or for its own activation, whichever ends later.
    by_mode = crossings * (timing["nRP"] + through_register_mode - 1) + registers
    by_row = crossings * (timing["nRP"] + activate)
    in_turn = crossings * (np.maximum(through_register_mode, timing["nRP"]) + activate)
    boundaries = np.where(preactivate, np.maximum(by_mode, by_row) - registers, in_turn)
    spacing = np.maximum(timing["nRC"], timing["nACTALL"])
    return ChainParts(
        multiply=(counts.mac - visits) * timing["nCCDMAC"],
        rows=visits * timing["nRTP"] + (visits - blocks) * (timing["nRP"] + activate),
        boundaries=boundaries,
        registers=registers,
        ends=2 * mode + 2 + np.where(preactivate, 0, activate),
        activation_limit=np.maximum(visits - 2, 0) * spacing,
    )


def _register_cycles(shape: Geometry, counts: KernelCounts, timing: Mapping[str, Any], sections: Any) -> Any:
    """Return the certain part of register traffic: each run of one kind in a section loses its last gap.

    The first group's initial values may be written before any input arrives, and do not count.
    """
    buffer_gap = np.maximum(timing["nBLGB"], timing["nCCDS"])
    register_gap = np.maximum(timing["nBLREG"], timing["nCCDL"])
    first = np.minimum(shape.group_slots, shape.slots) * shape.reuse
    return (
        np.maximum(counts.buffer_write - sections, 0) * buffer_gap
        + np.maximum(counts.register_write - first - sections, 0) * register_gap
        + np.maximum(counts.register_read - sections, 0) * register_gap
    )


def chain_cycles(parts: ChainParts, timing: Mapping[str, Any], preactivate: Any) -> Any:
    """Return the chain with the refreshes that fall into any busy interval of its length.

    Each stops the channel, except where rows are closed during register mode (no pre-activation): there it may
    pass unnoticed, as it may while the activation budget holds the next row back.
    """
    serial = parts.serial
    if REFRESH_INTERVAL in timing:
        serial = serial + np.where(preactivate, serial // timing[REFRESH_INTERVAL] * timing[REFRESH_STOP], 0)
    return np.maximum(serial, parts.activation_limit)
