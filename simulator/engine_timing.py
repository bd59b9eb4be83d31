"""A device's timing resolved into sparse arrays for the fast engine, built once per device.

Commands of kind k wait for the entries `first[k, level]` to `first[k, level + 1]` of `preceding` and `gap`, level by
level; windowed rows are listed the same way, per kind.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.channel import refresh_interval, window_lists
from simulator.completion import completion_latencies
from simulator.isa import ACTIVATES, CODE_OF, KINDS, PRECHARGES, Kind, scope_of
from simulator.timing_table import LEVELS, UNCONSTRAINED, TimingTable, timing_table

OPENS, CLOSES, TOGGLES_MODE = 1, 2, 3
NO_STEP = 0
_CLOSING = PRECHARGES | {Kind.RDA, Kind.WRA, Kind.WRA16}
_NEVER_SKIPPED = ACTIVATES | {Kind.TMOD, Kind.SIGNAL, Kind.WAIT}


class EngineTiming(NamedTuple):
    """The resolved rules; a named tuple, because compiled functions take those as they are. Arrays are int64, but
    for flags and the indices `preceding`, unsigned so that compiled code need not ask whether they are negative.

    Per kind: `levels` (1 to 3, how deep its scope reaches), `effect` on rows and mode, `latency` to completion, and
    `step`, the exact distance of repetitions of it on one node (NO_STEP: repetitions are not skipped).
    `windowed` tells the kinds that a windowed row names.
    `windows` holds (list, level, cycles, window) and `window_first[k]` where those of kind k start; `lists` holds
    (level, preceding) of each history.
    """

    levels: NDArray[np.int64]
    effect: NDArray[np.int64]
    latency: NDArray[np.int64]
    step: NDArray[np.int64]
    windowed: NDArray[np.bool_]
    first: NDArray[np.int64]
    preceding: NDArray[np.uint64]
    gap: NDArray[np.int64]
    window_first: NDArray[np.int64]
    windows: NDArray[np.int64]
    lists: NDArray[np.int64]
    bank_groups: int
    banks_per_group: int
    refresh_interval: int


def resolve(device: Device, skip_runs: bool = True) -> EngineTiming:
    """Return the rules of a device; `skip_runs` false makes the engine issue every repetition, with equal results."""
    table = timing_table(device)
    windowed = np.zeros(len(KINDS), dtype=np.bool_)
    windowed[[code for row in table.windows for code in row[1:3]]] = True
    levels = np.array([LEVELS.index(scope_of(kind)) + 1 for kind in KINDS], dtype=np.int64)
    first, preceding, gap = _sparse(table)
    window_first, windows = _windows(table)
    lists = [(level, code) for level, code, _ in window_lists(table)]
    return EngineTiming(
        levels=levels,
        effect=np.array([_effect(kind) for kind in KINDS], dtype=np.int64),
        latency=np.array(completion_latencies(device), dtype=np.int64),
        step=_steps(table, levels, windowed) if skip_runs else np.full(len(KINDS), NO_STEP, dtype=np.int64),
        windowed=windowed,
        first=first,
        preceding=preceding,
        gap=gap,
        window_first=window_first,
        windows=windows,
        lists=np.array(lists, dtype=np.int64).reshape(-1, 2),
        bank_groups=device.organisation.bank_groups,
        banks_per_group=device.organisation.banks_per_group,
        refresh_interval=refresh_interval(device),
    )


def _sparse(table: TimingTable) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    first = np.zeros((len(KINDS), len(LEVELS) + 1), dtype=np.int64)
    preceding: list[int] = []
    gap: list[int] = []
    for kind in range(len(KINDS)):
        for level in range(len(LEVELS)):
            first[kind, level] = len(preceding)
            found = np.flatnonzero(table.gap[level, :, kind] != UNCONSTRAINED)
            preceding.extend(found.tolist())
            gap.extend(table.gap[level, found, kind].tolist())
        first[kind, len(LEVELS)] = len(preceding)
    return first, np.array(preceding, dtype=np.uint64), np.array(gap, dtype=np.int64)


def _windows(table: TimingTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lists = [(level, preceding) for level, preceding, _ in window_lists(table)]
    rows: list[tuple[int, int, int, int]] = []
    first = np.zeros(len(KINDS) + 1, dtype=np.int64)
    for kind in range(len(KINDS)):
        for level, preceding, following, cycles, window in table.windows:
            if following == kind:
                rows.append((lists.index((level, preceding)), level, cycles, window))
        first[kind + 1] = len(rows)
    return first, np.array(rows, dtype=np.int64).reshape(-1, 4)


def _steps(table: TimingTable, levels: NDArray[np.int64], windowed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return each kind's distance from its own last issue, the only constraint that moves while it repeats."""
    steps = np.full(len(KINDS), NO_STEP, dtype=np.int64)
    for kind in KINDS:
        code = CODE_OF[kind]
        if kind not in _NEVER_SKIPPED and not windowed[code]:
            steps[code] = max(1, int(table.gap[: levels[code], code, code].max()))
    return steps


def _effect(kind: Kind) -> int:
    if kind is Kind.TMOD:
        return TOGGLES_MODE
    return OPENS if kind in ACTIVATES else CLOSES if kind in _CLOSING else 0
