"""The tracks of the channel: runs of commands, bursts, multiplications, open rows, refreshes and modes as slices."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from simulator.channel_use import ChannelUse
from simulator.command_runs import CommandRuns
from simulator.engine_timing import BUS, LATENCY, REACH
from simulator.isa import ACTIVATES, CODE_OF, KINDS, REFRESHES, Kind
from simulator.perfetto import Slice, Value
from simulator.row_log import OpenRow
from simulator.step_log import StepLog

CHANNEL = "channel 0"


def channel_tracks(
    log: StepLog, whole: CommandRuns, detailed: CommandRuns, rows: Sequence[OpenRow], use: ChannelUse
) -> dict[str, list[Slice]]:
    """Return the tracks of the channel: refreshes and modes of the whole step, the others of what is detailed."""
    tracks: dict[str, list[Slice]] = {}
    if len(detailed):
        for number, bus in enumerate(_bus_names(log)):
            on_bus = detailed.take(log.timing.kinds[detailed.kind, BUS] == number)
            tracks[f"{CHANNEL}: {bus}"] = _named_slices(on_bus, use.command_bus, np.zeros_like(use.command_bus), log)
        # A burst ends when its command has completed.
        tracks[f"{CHANNEL}: data bus"] = _named_slices(
            detailed, use.data_bus, log.timing.kinds[:, LATENCY] - use.data_bus, log
        )
        tracks[f"{CHANNEL}: units"] = _named_slices(detailed, use.units, np.zeros_like(use.units), log)
    tracks[f"{CHANNEL}: register mode"] = _mode_slices(log, whole)
    tracks[f"{CHANNEL}: refresh"] = _refresh_slices(log, whole)
    return tracks | _bank_tracks(log, detailed, rows)


def _bus_names(log: StepLog) -> tuple[str, ...]:
    return tuple(f"{name} command bus" for name in log.device.command_buses) or ("command bus",)


def _named_slices(runs: CommandRuns, use: NDArray[np.int64], delay: NDArray[np.int64], log: StepLog) -> list[Slice]:
    """Return a slice per run of a kind in use, from so long after its first issue to the end of its last command."""
    runs = runs.take(use[runs.kind] > 0)
    starts = runs.first_cycle + delay[runs.kind]
    ends = runs.last_cycle + (delay + use)[runs.kind]
    reach = log.timing.kinds[:, REACH].tolist()
    arrays = (runs.kind, runs.count, runs.bank, runs.row, runs.first_cycle, runs.last_cycle, starts, ends)
    slices = []
    for kind, count, bank, row, first, last, start, end in zip(*(array.tolist() for array in arrays), strict=True):
        name = KINDS[kind]
        args: list[tuple[str, Value]] = [("first issued at cycle", first)]
        if count > 1:
            args += [("last issued at cycle", last), ("commands", count)]
        if reach[kind] > 1:
            args.append(("bank", bank))
        if name in ACTIVATES:
            args.append(("row", row))
        slices.append(Slice(f"{name} ×{count}" if count > 1 else str(name), start, end, tuple(args)))
    return sorted(slices, key=lambda item: item.start_cycle)


def _mode_slices(log: StepLog, runs: CommandRuns) -> list[Slice]:
    """Return when the channel was in register mode; each change toggles, and a step starts in memory mode."""
    changes = runs.first_cycle[runs.kind == CODE_OF[Kind.TMOD]].tolist()
    if len(changes) % 2:
        changes.append(log.report.latency_cycles)
    return [
        Slice("register mode", start, end, (("start cycle", start), ("end cycle", end)))
        for start, end in zip(changes[::2], changes[1::2], strict=True)
    ]


def _is_refresh(runs: CommandRuns) -> NDArray[np.bool_]:
    return np.isin(runs.kind, [CODE_OF[kind] for kind in REFRESHES])


def _refresh_slices(log: StepLog, runs: CommandRuns) -> list[Slice]:
    """Return the refreshes that all banks take together."""
    return [item for first, banks, item in _refreshes(log, runs) if banks == log.device.organisation.banks]


def _refreshes(log: StepLog, runs: CommandRuns) -> Iterator[tuple[int, int, Slice]]:
    """Yield every refresh with its first bank and how many it addresses."""
    chosen = runs.take(_is_refresh(runs))
    arrays = (chosen.kind, chosen.bank, chosen.first_cycle, chosen.last_cycle, chosen.count)
    for kind, bank, first, last, count in zip(*(array.tolist() for array in arrays), strict=True):
        banks = log.device.organisation.banks_below[int(log.timing.kinds[kind, REACH]) - 1]
        end = last + int(log.timing.kinds[kind, LATENCY])
        args: tuple[tuple[str, Value], ...] = (("start cycle", first), ("end cycle", end), ("commands", count))
        yield bank - bank % banks, banks, Slice(str(KINDS[kind]), first, end, args)


def _bank_tracks(log: StepLog, detailed: CommandRuns, rows: Sequence[OpenRow]) -> dict[str, list[Slice]]:
    """Return open rows and single banks' refreshes: one track for all banks together, and one per bank used alone."""
    total = log.device.organisation.banks
    every: list[Slice] = []
    single: dict[int, list[Slice]] = {}
    for row in rows:
        item = Slice(
            f"row {row.row}",
            row.open_cycle,
            row.close_cycle,
            (
                ("row of the operator's own copy", row.row),
                ("opened at cycle", row.open_cycle),
                ("closed at cycle", row.close_cycle),
            ),
        )
        if row.banks == total:
            every.append(item)
            continue
        for bank in range(row.first_bank, row.first_bank + row.banks):
            single.setdefault(bank, []).append(item)
    for first, banks, item in _refreshes(log, detailed):
        if banks < total:
            for bank in range(first, first + banks):
                single.setdefault(bank, []).append(item)
    tracks = {f"{CHANNEL}: all {total} banks": every} if every else {}
    for bank in sorted(single):
        tracks[f"{CHANNEL}: bank {bank}"] = single[bank]
    return {track: sorted(slices, key=lambda item: item.start_cycle) for track, slices in tracks.items()}
