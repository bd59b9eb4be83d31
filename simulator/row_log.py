"""Which rows were open when, and how well they were used: the banks of a channel while runs of commands pass."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from configs.device import Device
from simulator.command_runs import CommandRuns
from simulator.engine_timing import REACH, EngineTiming
from simulator.isa import ACTIVATES, CLOSING, COLUMN_KINDS, KINDS, Kind

CONCERNED = tuple(kind in ACTIVATES | COLUMN_KINDS | CLOSING | {Kind.MACL16} for kind in KINDS)


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A row that one command opened in `banks` neighbouring banks and that they closed together."""

    first_bank: int
    banks: int
    row: int
    open_cycle: int
    close_cycle: int


@dataclass(frozen=True, slots=True)
class RowUse:
    """What some runs did with rows: the rows they closed, their activate commands and column accesses.

    A hit is a column access none of whose banks was activated since its last access; of a second row buffer, one that
    is not the first since it took a row.
    """

    rows: tuple[OpenRow, ...]
    activations: int
    accesses: int
    hits: int


@dataclass(frozen=True, slots=True)
class _Opening:
    """The activate that opened a bank's row."""

    row: int
    cycle: int


@dataclass(slots=True)
class BankWatch:
    """The banks of one channel: what is open, and which open rows, and latched ones, were not accessed yet."""

    below: tuple[int, ...]
    open: list[_Opening | None]
    fresh: list[bool]
    closed: list[OpenRow] = field(default_factory=list)
    latched_fresh: bool = False

    @classmethod
    def of(cls, device: Device, timing: EngineTiming) -> "BankWatch":
        """Watch the banks of a channel, all closed."""
        organisation = device.organisation
        below = tuple(organisation.banks_below[levels - 1] for levels in timing.kinds[:, REACH].tolist())
        return cls(below, [None] * organisation.banks, [False] * organisation.banks)

    def use(self, runs: CommandRuns) -> RowUse:
        """Let the next runs pass."""
        activations = accesses = hits = 0
        for kind, bank, row, first, last, count in _row_commands(runs, self.below):
            banks, name = range(bank, bank + self.below[kind]), KINDS[kind]
            if name in ACTIVATES:
                activations += count
                self._set(banks, _Opening(row, first))
            if name in COLUMN_KINDS:
                accesses += count
                hits += count - self._touch(banks)
            if name is Kind.MACL16:
                accesses += count
                hits += count - self.latched_fresh
                self.latched_fresh = False
            self.latched_fresh |= name is Kind.LATCH16
            if name in CLOSING:
                self._close(banks, last)
        rows = tuple(self.closed)
        self.closed.clear()
        return RowUse(rows, activations, accesses, hits)

    def left_open(self, cycle: int) -> tuple[OpenRow, ...]:
        """Return the rows that are open now, as if they closed at a cycle."""
        return tuple(self._rows(range(len(self.open)), cycle))

    def _set(self, banks: range, opening: _Opening | None) -> None:
        self.open[banks.start : banks.stop] = [opening] * len(banks)
        self.fresh[banks.start : banks.stop] = [opening is not None] * len(banks)

    def _touch(self, banks: range) -> bool:
        """Access open rows, and return whether one of them had not been accessed yet."""
        first = True in self.fresh[banks.start : banks.stop]
        if first:
            self.fresh[banks.start : banks.stop] = [False] * len(banks)
        return first

    def _close(self, banks: range, cycle: int) -> None:
        self.closed.extend(self._rows(banks, cycle))
        self._set(banks, None)

    def _rows(self, banks: range, cycle: int) -> Iterator[OpenRow]:
        """Yield the open rows of some banks; banks that one command opened stay together."""
        openings = self.open[banks.start : banks.stop]
        if openings.count(openings[0]) == len(banks):
            groups = [(openings[0], banks.start, len(banks))]
        else:
            grouped = [(key, list(members)) for key, members in groupby(banks, key=self.open.__getitem__)]
            groups = [(key, members[0], len(members)) for key, members in grouped]
        for opening, first, count in groups:
            if opening is not None:
                yield OpenRow(first, count, opening.row, opening.cycle, cycle)


def _row_commands(runs: CommandRuns, below: tuple[int, ...]) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield kind, first bank addressed, row, first and last cycle, and count of the runs that concern rows."""
    arrays = (runs.kind, runs.bank, runs.row, runs.first_cycle, runs.last_cycle, runs.count)
    for kind, bank, row, first, last, count in zip(*(array.tolist() for array in arrays), strict=True):
        if CONCERNED[kind]:
            yield kind, bank - bank % below[kind], row, first, last, count
