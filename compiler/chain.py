"""How long a matrix-vector kernel must take on its channel: the chain of waits that its own command order imposes.

Commands issue in order, so that the time between the first and the last of a kernel is at least the sum of the gaps
along any chain of consecutive commands. The chain here follows a kernel from its first buffer write to its last
read-out; it leaves out what is not certain (refresh beyond the whole intervals, late inputs), and is therefore a lower
bound of the simulated time of the schedule. Everything is ints or arrays, one entry per candidate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from compiler.device_table import REFRESH_INTERVAL, REFRESH_STOP
from compiler.geometry import Geometry, KernelCounts, early_reads, kernel_counts
from compiler.slot_multiplies import first_half

MODE_CHANGES_BETWEEN_BLOCKS = 2
LONGEST = ("visit", "gap", "last")  # parts of which kernels in turn have the longest, not the sum


@dataclass(frozen=True, slots=True)
class ChainParts:
    """The cycles of a kernel by cause; `activation_limit` holds beside their sum, from the spacing of activates.

    With second row buffers `row_chain` holds beside it, too: what closing and opening rows takes, 0 without. A refresh
    closes rows and opens them again, beside what the chain does meanwhile: all of them hide `closed` cycles of register
    mode at most, each of them one `visit` there, and elsewhere `gap` cycles. In the `last` cycles no row is needed any
    more, so that a refresh there may cost nothing.
    """

    multiply: Any
    rows: Any
    boundaries: Any
    registers: Any
    ends: Any
    activation_limit: Any
    row_chain: Any
    closed: Any
    visit: Any
    gap: Any
    last: Any

    @property
    def serial(self) -> Any:
        """Cycles from the first buffer write to the last read-out along the chain."""
        return self.multiply + self.rows + self.boundaries + self.registers + self.ends


def chains_in_turn(chains: Sequence[tuple[ChainParts, Any]]) -> ChainParts:
    """Return the chain of kernels one after the other, each so many times."""
    parts = {name: sum(count * getattr(chain, name) for chain, count in chains) for name in ChainParts.__slots__}
    longest = {name: reduce(np.maximum, (getattr(chain, name) for chain, _ in chains)) for name in LONGEST}
    return ChainParts(**parts | longest)


def kernel_chain(shape: Geometry, timing: Mapping[str, Any], preactivate: Any) -> ChainParts:
    """Return the chain of one kernel."""
    if not np.any(shape.latched):
        return _open_chain(shape, timing, preactivate)
    latched = _latched_chain(shape, timing, preactivate)
    if np.all(shape.latched):
        return latched
    plain = _open_chain(shape, timing, preactivate)
    pairs = ((getattr(latched, name), getattr(plain, name)) for name in ChainParts.__slots__)
    return ChainParts(*(np.where(shape.latched, *pair) for pair in pairs))


def _open_chain(shape: Geometry, timing: Mapping[str, Any], preactivate: Any) -> ChainParts:
    """Return the chain where units multiply from open rows."""
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
    # One opened behind them waits for them or for the precharge of the row before, and then for its activation.
    in_register_mode = crossings * through_register_mode + registers
    in_turn = np.maximum(in_register_mode, crossings * timing["nRP"]) + crossings * activate
    boundaries = np.where(preactivate, np.maximum(by_mode, by_row), in_turn) - registers
    spacing = np.maximum(timing["nRC"], timing["nACTALL"])
    gap = hidden_in_gap(timing)
    return ChainParts(
        multiply=(counts.mac - visits) * timing["nCCDMAC"],
        rows=visits * timing["nRTP"] + (visits - blocks) * (row_change(timing) - timing["nRTP"]),
        boundaries=boundaries,
        registers=registers,
        ends=2 * mode + 2 + np.where(preactivate, 0, activate),
        activation_limit=np.maximum(visits - 2, 0) * spacing,
        row_chain=0 * visits,
        closed=np.where(preactivate, 0, np.maximum(in_register_mode - crossings * timing["nRP"], 0) + 2 * mode + 2),
        visit=np.where(preactivate, gap, np.maximum(through_register_mode + _visit_cycles(shape, timing), gap)),
        gap=gap + 0 * visits,
        last=_last_visit(shape, timing),
    )


def _latched_chain(shape: Geometry, timing: Mapping[str, Any], preactivate: Any) -> ChainParts:
    """Return the chain where units multiply from second row buffers.

    From one LATCH16 to the next goes the longest of the ways there: all multiplies; closing and opening the rows; the
    first half of the multiplies, then opening; closing, then the second half. A change of modes between two of them
    comes behind the multiplies, so that what the longest way is longer than these is not sure to count there.
    """
    counts = kernel_counts(shape)
    visits, cadence, mode = counts.activate, timing["nCCDMAC"], timing["nMODCH"]
    closing, opening = timing["nRTP"] + timing["nRP"], _latch_wait(timing)
    blocks = shape.vector_groups * shape.groups * shape.segments + early_reads(shape)
    registers = _register_cycles(shape, counts, timing, blocks + 1)
    periods: Any = 0
    longer: Any = 0
    hidden: Any = 0
    for slots, columns, count in _kinds_of_visits(shape):
        multiplies = slots * columns * shape.turns
        first = first_half(slots, shape.turns, columns)
        own = timing["nLTMAC"] + (multiplies - 1) * cadence
        ahead = np.maximum.reduce(
            np.broadcast_arrays(
                own + cadence,
                closing + opening,
                timing["nLTMAC"] + (first - 1) * cadence + 1 + opening,
                closing + 1 + (multiplies - first) * cadence,
            )
        )
        period = np.where(preactivate, ahead, np.maximum(own + 1, closing) + opening)
        periods = periods + count * period
        longer = np.maximum(longer, np.where(count > 0, period - own, 0))
        hidden = np.maximum(hidden, np.where(count > 0, period - closing - opening, 0))
    crossings = (blocks - 1) * (2 * mode + 2 + np.where(preactivate, 0, opening) - longer)
    boundaries = np.maximum(crossings, -registers)
    multiply = visits * timing["nLTMAC"] + (counts.mac - visits) * cadence
    return ChainParts(
        multiply=multiply,
        rows=shape.vector_groups * periods - multiply - longer,
        boundaries=boundaries,
        registers=registers,
        ends=2 * mode + 2 + np.where(preactivate, 0, opening),
        activation_limit=np.maximum(visits - 2, 0) * np.maximum(timing["nRC"], timing["nACTALL"]),
        row_chain=np.maximum(visits - 2, 0) * latch_period(timing),
        closed=boundaries + registers + 2 * mode + 2,
        visit=hidden + 2 * mode + 2 + _visit_cycles(shape, timing),
        gap=hidden,
        last=hidden + closing + opening + _last_visit(shape, timing),
    )


def latch_period(timing: Mapping[str, Any]) -> Any:
    """Return the cycles between two LATCH16 that closing the one row and opening the next take."""
    return timing["nRTP"] + timing["nRP"] + _latch_wait(timing)


def _latch_wait(timing: Mapping[str, Any]) -> Any:
    """Return the cycles from an activate of all banks to LATCH16, which closes the rows as a read would."""
    return np.maximum(timing["nRCDRDMAC"], timing["nRAS"] - timing["nRTP"])


def _kinds_of_visits(shape: Geometry) -> Iterator[tuple[Any, Any, Any]]:
    """Yield slots and columns of the rows that one pass over the matrix visits, and how many there are of each kind."""
    segments = shape.segments - 1
    for per_row, columns, times in (
        (shape.slots_per_row, shape.segment_columns, segments),
        (shape.tail_slots_per_row, shape.tail_columns, 1),
    ):
        yield per_row, columns, times * (shape.slots // per_row)
        ragged = shape.slots % per_row
        yield np.maximum(ragged, 1), columns, times * (ragged > 0)


def row_change(timing: Mapping[str, Any]) -> Any:
    """Return the cycles from the last multiply of an open row to the first of the next."""
    return np.maximum(timing["nRTP"] + timing["nRP"] + timing["nRCDRDMAC"], timing["nCCDMAC"])


def hidden_in_gap(timing: Mapping[str, Any]) -> Any:
    """Return how much of a refresh may hide between two commands of open rows, which are closed and opened for it.

    Multiplies of slow units are further apart than closing and opening takes. In register mode with rows open, so may
    transfers and changes of modes be, between which precharge and activate come then.
    """
    between_multiplies = row_change(timing) - timing["nRTP"] - timing["nRP"] - timing["nRCDRDMAC"]
    transfers = np.maximum(buffer_gap(timing), register_gap(timing))
    in_register_mode = np.maximum(transfers, timing["nMODCH"]) - timing["nRP"] - 1
    return np.maximum(np.maximum(between_multiplies, in_register_mode), 0)


def _visit_cycles(shape: Geometry, timing: Mapping[str, Any]) -> Any:
    """Return the most register traffic between two multiplies: inputs of a segment, sums of a group out and in."""
    inputs = shape.segment_columns * shape.reuse * buffer_gap(timing)
    return inputs + 2 * _sums_of_group(shape) * register_gap(timing)


def _last_visit(shape: Geometry, timing: Mapping[str, Any]) -> Any:
    """Return the most cycles from the last multiply to the last read-out."""
    return timing["nMODCH"] + 1 + _sums_of_group(shape) * register_gap(timing)


def _sums_of_group(shape: Geometry) -> Any:
    return np.minimum(shape.group_slots, shape.slots) * shape.reuse


def _register_cycles(shape: Geometry, counts: KernelCounts, timing: Mapping[str, Any], sections: Any) -> Any:
    """Return the certain part of register traffic: each run of one kind in a section loses its last gap.

    The first group's initial values may be written before any input arrives, and do not count.
    """
    gap = register_gap(timing)
    first = np.minimum(shape.group_slots, shape.slots) * shape.reuse
    return (
        np.maximum(counts.buffer_write - sections, 0) * buffer_gap(timing)
        + np.maximum(counts.register_write - first - sections, 0) * gap
        + np.maximum(counts.register_read - sections, 0) * gap
    )


def buffer_gap(timing: Mapping[str, Any]) -> Any:
    """Return the cycles between two writes of the input buffer."""
    return np.maximum(timing["nBLGB"], timing["nCCDS"])


def register_gap(timing: Mapping[str, Any]) -> Any:
    """Return the cycles between two reads or writes of accumulators."""
    return np.maximum(timing["nBLREG"], timing["nCCDL"])


def chain_cycles(parts: ChainParts, timing: Mapping[str, Any]) -> Any:
    """Return the chain with the refreshes that fall into any busy interval of its length.

    What of them may hide is in the parts; beside an activation budget that holds the next row back all of it may.
    """
    serial, row_chain = parts.serial, parts.row_chain
    if REFRESH_INTERVAL in timing:
        stop = timing[REFRESH_STOP]
        last = np.maximum(parts.last, stop)
        each = _with_refreshes(serial, stop - np.minimum(parts.visit, stop), last, timing)
        together = _with_refreshes(serial - parts.closed, stop - np.minimum(parts.gap, stop), last, timing)
        serial = np.maximum(each, together)
        row_chain = _with_refreshes(row_chain, stop, last, timing)
    return np.maximum(np.maximum(serial, parts.activation_limit), row_chain)


def _with_refreshes(busy: Any, cost: Any, last: Any, timing: Mapping[str, Any]) -> Any:
    """Return busy cycles with refreshes of which each adds `cost`, counted in the time that there is with them.

    Those that fall due in the `last` cycles, at least the length of one, may end behind everything.
    """
    return busy + np.maximum(busy - last, 0) // (timing[REFRESH_INTERVAL] - cost) * cost
