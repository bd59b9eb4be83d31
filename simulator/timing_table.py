"""A device's timing constraints as the arrays both engines read.

`gap[level, preceding, following]` is the largest number of cycles a following command must stay behind the last
preceding one at that level (-1: unconstrained). Levels are channel, bank group, bank. A command looks at, and leaves
its mark on, the levels from the channel down to its own scope, so that a table states what an all-bank command does to
single banks at the channel level. Windowed rows (activation windows) are kept apart.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from configs.expression import evaluate
from simulator.isa import CODE_OF, KINDS, Kind, Scope

LEVELS = (Scope.CHANNEL, Scope.BANK_GROUP, Scope.BANK)
UNCONSTRAINED = -1


@dataclass(frozen=True, slots=True)
class TimingTable:
    """`gap` is int64[levels, kinds, kinds]; `windows` lists (level, preceding, following, cycles, window) as ints."""

    gap: NDArray[np.int64]
    windows: tuple[tuple[int, int, int, int, int], ...]


def timing_table(device: Device) -> TimingTable:
    """Resolve the constraint rows of a device; raises ValueError for a command the instruction set does not have."""
    gap = np.full((len(LEVELS), len(KINDS), len(KINDS)), UNCONSTRAINED, dtype=np.int64)
    windows = []
    for row in device.constraints:
        level = LEVELS.index(Scope(row.level))
        cycles = evaluate(row.cycles, device.timing)
        for preceding in map(_code, row.preceding):
            for following in map(_code, row.following):
                if row.window > 1:
                    windows.append((level, preceding, following, cycles, row.window))
                else:
                    gap[level, preceding, following] = max(gap[level, preceding, following], cycles)
    return TimingTable(gap, tuple(windows))


def _code(name: str) -> int:
    if name not in Kind.__members__:
        raise ValueError(f"timing table names {name}, which is no command")
    return CODE_OF[Kind(name)]
