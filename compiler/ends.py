"""What channel and link cannot do at once: the first input crosses before a kernel starts, the last results behind it.

Results leave from the first signal on, so that all of them take the way to that signal and then the link's time.
Everything is ints or arrays, one entry per candidate, and holds for kernels of units in lock-step; others read all
results at the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compiler.chain import chain_cycles, kernel_chain, register_gap, row_change
from compiler.geometry import FEWER_ROWS, MOST_EARLY_READS, Geometry, ceil_div
from compiler.kernel_events import PIECE_COLUMNS


@dataclass(frozen=True, slots=True)
class KernelEnds:
    """Of a kernel: columns of the first piece of input, cycles from there to the first signal, slots read last."""

    first_columns: Any
    first_signal: Any
    last_slots: Any


def kernel_ends(shape: Geometry, timing: Mapping[str, Any], preactivate: Any, latched: Any) -> KernelEnds:
    """Return the ends of a kernel; cycles to the first signal are a lower bound."""
    if shape.runs_microkernels:
        return KernelEnds(0, 0, 0)
    first = np.where(shape.segments > 1, shape.segment_columns, shape.tail_columns)
    last = shape.slots - (shape.groups - 1) * shape.group_slots
    rows = ceil_div(last, shape.tail_slots_per_row)
    behind = np.where((rows > 1) & (not shape.whole_reads), last - (rows - 1) * shape.tail_slots_per_row, last)
    return KernelEnds(np.minimum(first, PIECE_COLUMNS), _first_signal(shape, timing, preactivate, latched), behind)


def _first_signal(shape: Geometry, timing: Mapping[str, Any], preactivate: Any, latched: Any) -> Any:
    """Return the chain to the first signal: that of a kernel of one group, without the rows behind the first read.

    It is 0 where sums go in and out per segment. Multiplies from second row buffers overlap the rows' own chain, so
    that there the kernel has only the outputs of the first read.
    """
    group, read = np.minimum(shape.group_slots, shape.slots), _first_slots(shape)
    slots = np.where(latched, read, group)
    rows = ceil_div(slots, shape.tail_slots_per_row)
    until = replace(
        shape,
        vectors=shape.reuse,
        slots=slots,
        groups=1 + 0 * slots,
        rows_per_segment=ceil_div(slots, shape.slots_per_row),
        tail_rows=rows,
        whole_reads=True,
    )
    chain = kernel_chain(until, timing, preactivate)
    later_slots, later_rows = slots - read, rows - ceil_div(read, shape.tail_slots_per_row)
    multiplies = later_slots * shape.tail_columns * shape.turns
    before = replace(
        chain,
        multiply=chain.multiply - (multiplies - later_rows) * timing["nCCDMAC"],
        rows=chain.rows - later_rows * row_change(timing),
        registers=chain.registers - later_slots * shape.reuse * register_gap(timing),
        activation_limit=np.where(later_slots > 0, 0, chain.activation_limit),
    )
    return np.where(shape.spills, 0, np.maximum(chain_cycles(before, timing), 0))


def _first_slots(shape: Geometry) -> Any:
    """Return the slots that are read before the first signal: a whole group, or the first part of the only one."""
    rows = ceil_div(shape.slots, shape.tail_slots_per_row)
    left: Any = 0 * rows
    for power in range(MOST_EARLY_READS):
        left = np.where(rows > FEWER_ROWS**power, FEWER_ROWS**power, left)
    part = np.where(left > 0, (rows - left) * shape.tail_slots_per_row, shape.slots)
    only = (shape.groups == 1) & (shape.vector_groups == 1) & (not shape.whole_reads)
    return np.where(only, part, np.minimum(shape.group_slots, shape.slots))
