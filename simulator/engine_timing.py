"""A device's timing resolved for the fast engine, built once per device.

An issue of kind k raises what its nodes allow: its pushes each name a level and the entries (class, gap, source) to
raise there. Windowed and sibling rules are rare and listed apart. A row of `kinds` tells where the lists of a kind are.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.channel import longest_window, refresh_plan, window_lists
from simulator.completion import completion_latencies
from simulator.isa import ACTIVATES, ARRAY_KINDS, CLOSING, CODE_OF, KINDS, NEED_OPEN_ROWS, Kind
from simulator.timing_table import Rule, TimingTable, timing_table

OPENS, CLOSES, TOGGLES_MODE = 1, 2, 3
NO_ARRAYS, ARRAYS, OPEN_ROWS = range(3)
NO_STEP = 0
NO_KIND = -1
_NEVER_SKIPPED = ACTIVATES | {Kind.TMOD, Kind.SIGNAL, Kind.WAIT}

Array = NDArray[np.int64]
Indices = NDArray[np.uint64]

# Columns of `EngineTiming.kinds`: levels from the channel down to the command's scope; its class; effect on rows and
# mode; what it asks of the arrays; cycles to completion; command bus and ticks on it; the exact distance of repetitions
# on one bank (NO_STEP: not skipped) and the source that sets it; whether a windowed or sibling rule looks back at it;
# and where its lists begin and end: levels at which rules hold it back, pushes, windows, siblings.
REACH, CLASS, EFFECT, ROWS, LATENCY, BUS, TICKS, STEP, STEP_CAUSE, SPECIAL = range(10)
CHECKS, PUSHES, WINDOWS, SIBLINGS = range(10, 18, 2)
COLUMNS = 18
# Columns of `pushes`, `windows` and `siblings`.
PUSH_LEVEL, FIRST_ENTRY, END_ENTRY = range(3)
WINDOW_LIST, WINDOW_LEVEL, WINDOW_CLASS, WINDOW_CYCLES, WINDOW_DEPTH, WINDOW_SOURCE = range(6)
SIBLING_LEVEL, SIBLING_CLASS, SIBLING_CYCLES, SIBLING_SOURCE = range(4)
# Columns of `entries`, whose class is apart.
GAP, SOURCE = range(2)


class EngineTiming(NamedTuple):
    """The resolved rules; a named tuple, because compiled functions take those as they are.

    Few arrays, because each costs at every call. They are int64, but for indices that are met often: those are
    unsigned, so that compiled code need not ask whether they are negative. `lists` holds (level, preceding) of each
    history, `nodes[bank, level]` and `banks_below[level]` the tree, `open_kinds` the commands that open one bank, and
    all.
    """

    kinds: Array
    check_level: Indices
    pushes: Array
    entry_class: Indices
    entries: Array
    windows: Array
    siblings: Array
    lists: Array
    nodes: Indices
    banks_below: Array
    open_kinds: Array
    event_cause: int
    longest_window: int
    refresh_interval: int
    refresh_burst: int
    refresh_per_bank: bool


def resolve(device: Device, table: TimingTable | None = None, skip_runs: bool = True) -> EngineTiming:
    """Return the rules of a device; `skip_runs` false makes the engine issue every repetition, with equal results."""
    table = table or timing_table(device)
    plain = [rule for rule in table.rules if rule.window == 1 and not rule.sibling]
    windowed = [rule for rule in table.rules if rule.window > 1]
    siblings = [rule for rule in table.rules if rule.sibling]
    tree, plan = table.addressing, refresh_plan(device, table)
    lists = [(level, code) for level, code, _ in window_lists(table)]
    kinds = np.zeros((len(KINDS), COLUMNS), dtype=np.int64)
    kinds[:, REACH] = tree.reach
    kinds[:, CLASS] = np.maximum(table.class_of, 0)
    kinds[:, EFFECT] = [_effect(kind) for kind in KINDS]
    kinds[:, ROWS] = [_rows(kind) for kind in KINDS]
    kinds[:, LATENCY] = completion_latencies(device)
    kinds[:, BUS], kinds[:, TICKS] = table.bus, table.ticks
    kinds[[rule.preceding for rule in windowed + siblings], SPECIAL] = 1
    if skip_runs:
        kinds[:, STEP], kinds[:, STEP_CAUSE] = zip(*(_step(kind, table, plain, kinds) for kind in KINDS), strict=True)
    check_level = _grouped(kinds, CHECKS, lambda code: _checked_levels(code, table))
    pushes, entries = _pushes(kinds, table, plain)
    return EngineTiming(
        kinds=kinds,
        check_level=check_level.reshape(-1).astype(np.uint64),
        pushes=pushes,
        entry_class=entries[:, 0].astype(np.uint64),
        entries=np.ascontiguousarray(entries[:, 1:]),
        windows=_grouped(kinds, WINDOWS, lambda code: _window_rows(code, table, windowed, lists), 6),
        siblings=_grouped(kinds, SIBLINGS, lambda code: _sibling_rows(code, table, siblings), 4),
        lists=np.array(lists, dtype=np.int64).reshape(-1, 2),
        nodes=np.array(
            [[tree.node(level, bank) for level in range(len(tree.banks_below))] for bank in range(tree.banks)],
            dtype=np.uint64,
        ),
        banks_below=np.array(tree.banks_below, dtype=np.int64),
        open_kinds=_open_kinds(table),
        event_cause=table.event,
        longest_window=longest_window(table),
        refresh_interval=plan.interval,
        refresh_burst=plan.burst,
        refresh_per_bank=plan.per_bank,
    )


def _grouped(
    kinds: Array, column: int, rows_of: Callable[[int], list[tuple[int, ...]]], width: int = 1
) -> NDArray[np.int64]:
    """Return the rows of all kinds one after the other, and note in `kinds` where those of each begin and end."""
    rows: list[tuple[int, ...]] = []
    for code in range(len(KINDS)):
        kinds[code, column] = len(rows)
        rows.extend(rows_of(code))
        kinds[code, column + 1] = len(rows)
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _checked_levels(code: int, table: TimingTable) -> list[tuple[int, ...]]:
    """Return the levels within a kind's reach at which any rule holds it back."""
    asked = {rule.level for rule in table.rules if rule.following == code}
    return [(level,) for level in range(table.addressing.reach[code]) if level in asked]


def _pushes(kinds: Array, table: TimingTable, plain: list[Rule]) -> tuple[Array, Array]:
    """Return, per kind and level of its marks, the classes that an issue holds back there: pushes and their entries."""
    entries: list[tuple[int, int, int]] = []

    def pushes_of(code: int) -> list[tuple[int, ...]]:
        rows: list[tuple[int, ...]] = []
        for level in range(table.addressing.reach[code]):
            first = len(entries)
            held = [rule for rule in plain if (rule.preceding, rule.level) == (code, level)]
            entries.extend(sorted({(table.class_of[rule.following], rule.cycles, rule.source) for rule in held}))
            if held:
                rows.append((level, first, len(entries)))
        return rows

    pushes = _grouped(kinds, PUSHES, pushes_of, 3)
    return pushes, np.array(entries, dtype=np.int64).reshape(-1, 3)


def _window_rows(
    code: int, table: TimingTable, windowed: list[Rule], lists: list[tuple[int, int]]
) -> list[tuple[int, ...]]:
    rows = {
        (
            lists.index((rule.level, rule.preceding)),
            rule.level,
            table.class_of[rule.following],
            rule.cycles,
            rule.window,
            rule.source,
        )
        for rule in windowed
        if rule.preceding == code and rule.level < table.addressing.reach[code]
    }
    return sorted(rows)


def _sibling_rows(code: int, table: TimingTable, siblings: list[Rule]) -> list[tuple[int, ...]]:
    rows = {
        (rule.level, table.class_of[rule.following], rule.cycles, rule.source)
        for rule in siblings
        if rule.preceding == code and rule.level < table.addressing.reach[code]
    }
    return sorted(rows)


def _step(kind: Kind, table: TimingTable, plain: list[Rule], kinds: Array) -> tuple[int, int]:
    """Return a kind's distance from its last issue, set by the only rule that moves meanwhile, and its source."""
    code = CODE_OF[kind]
    if kind in _NEVER_SKIPPED or kinds[code, SPECIAL]:
        return NO_STEP, 0
    own = [
        (-rule.cycles, rule.source)
        for rule in plain
        if rule.preceding == code == rule.following and rule.level < table.addressing.reach[code]
    ]
    cycles, source = min(own, default=(0, 0))
    return max(table.ticks[code], -cycles), source


def _open_kinds(table: TimingTable) -> Array:
    """Return the command that starts to open a bank, the one that ends it, and the one that opens all banks."""
    start, end = (CODE_OF[Kind.ACT1], CODE_OF[Kind.ACT2]) if table.has(Kind.ACT1) else (NO_KIND, CODE_OF[Kind.ACT])
    every = CODE_OF[Kind.ACT16] if table.has(Kind.ACT16) else NO_KIND
    return np.array([start, end, every], dtype=np.int64)


def _rows(kind: Kind) -> int:
    """Return whether a command needs open rows, only touches the arrays of its banks, or leaves them alone."""
    if kind in NEED_OPEN_ROWS:
        return OPEN_ROWS
    return ARRAYS if kind in ARRAY_KINDS else NO_ARRAYS


def _effect(kind: Kind) -> int:
    if kind is Kind.TMOD:
        return TOGGLES_MODE
    return OPENS if kind in ACTIVATES else CLOSES if kind in CLOSING else 0
