"""The controller of Samsung's public simulator: accesses in, commands in order with their cycles out.

Of what lies between the head of the queue and the next barrier behind it, each cycle issues the first of: a refresh
that is due on a rank whose banks are closed; a precharge of any row of a rank that is due; the first access whose row
is open; the first activate of a closed bank; a precharge of a row that none of them waits for. The device's table says
what may issue when. A single bank is activated once all-bank mode has been left, which it is when the rows that were
opened in it are closed. Ranks are refreshed in turn, nREFI / ranks apart. The kernels work on rank 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from configs.device import Device
from simulator.channel import CLOSED, fresh_state
from simulator.dram_replay import without_refresh
from simulator.hbm_pim.transactions import Access, Accesses
from simulator.isa import Kind
from simulator.reference_engine import LogEntry, ReferenceChannel
from simulator.timing_table import timing_table

FIRST_CYCLE = 1
# From the last command to the end of a kernel, as the simulator's totals have it.
CYCLES_BEHIND_LAST = 5
QUEUE = 64  # accesses of one channel that the controller chooses from
REFRESH, CLEAR, COLUMN, ACTIVATE, PRECHARGE = range(5)  # in the order in which they go when several may


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """What may issue next, and when; the smallest goes."""

    cycle: int
    choice: int
    place: int
    kind: Kind = field(compare=False)
    bank: int = field(compare=False)
    row: int = field(compare=False, default=0)
    column: int = field(compare=False, default=0)


def controller_commands(accesses: Accesses, device: Device) -> tuple[LogEntry, ...]:
    """Return the commands of one channel, refreshes included, with the cycles at which they issue."""
    return _Controller(device, list(accesses)).run()


def kernel_cycles(accesses: Accesses, device: Device) -> int:
    """Return the cycles of a kernel as the public simulator counts them."""
    return controller_commands(accesses, device)[-1].cycle + CYCLES_BEHIND_LAST


def with_ranks(device: Device, ranks: int) -> Device:
    """Return the device with so many ranks in a channel."""
    return device.model_copy(update={"organisation": device.organisation.model_copy(update={"ranks": ranks})})


class _Controller:
    """The queue and banks of one channel; every step issues one command."""

    def __init__(self, device: Device, queue: list[Access]) -> None:
        alone, table = without_refresh(device), timing_table(device)
        self.queue = queue
        self.channel = ReferenceChannel(alone, fresh_state(alone, table), [], table)
        self.interval = device.refresh_interval_cycles
        ranks = device.organisation.pseudo_channels * device.organisation.ranks
        self.rank_banks = device.organisation.banks // ranks
        self.due = [self.interval * (rank + 1) // ranks for rank in range(ranks)]
        self.opened_by: dict[int, Kind] = {}
        self.clock = FIRST_CYCLE - 1
        self.issued = 0

    def run(self) -> tuple[LogEntry, ...]:
        """Issue until nothing is waiting and every bank is closed."""
        while self.queue or self.opened_by or min(self._refreshes()).cycle == self.clock + 1:
            self._issue(min(self._candidates()))
        return tuple(self.channel.log)

    def _candidates(self) -> Iterator[Candidate]:
        window = self._window()
        yield from self._refreshes()
        yield from self._columns(window)
        yield from self._activates(window)
        yield from self._precharges({(access.bank, access.row) for access in window})

    def _window(self) -> list[Access]:
        window = self.queue[:1]
        for access in self.queue[1:QUEUE]:
            if access.barrier:
                break
            window.append(access)
        return window

    def _arrival(self, place: int) -> int:
        """Return the cycle in which an access has entered the queue: one enters a cycle."""
        return self.issued + place + FIRST_CYCLE

    def _refreshes(self) -> Iterator[Candidate]:
        for rank, due in enumerate(self.due):
            first = rank * self.rank_banks
            if not any(bank // self.rank_banks == rank for bank in self.opened_by):
                yield self._candidate(REFRESH, rank, Kind.REFab, first, not_before=due)

    def _columns(self, window: list[Access]) -> Iterator[Candidate]:
        for place, access in enumerate(window[:1] if window and window[0].barrier else window):
            if self._open_row(access.bank) == access.row:
                yield self._candidate(
                    COLUMN, place, access.kind, access.bank, access.row, access.column, self._arrival(place)
                )

    def _activates(self, window: list[Access]) -> Iterator[Candidate]:
        seen: set[int] = set()
        leaving = Kind.ACT8 in self.opened_by.values()
        for place, access in enumerate(window):
            if access.bank not in seen and self._open_row(access.bank) == CLOSED:
                seen.add(access.bank)
                kind = Kind.ACT8 if access.all_banks else Kind.ACT
                if kind is Kind.ACT8 or not leaving:
                    yield self._candidate(
                        ACTIVATE, place, kind, access.bank, access.row, not_before=self._arrival(place)
                    )

    def _precharges(self, wanted: set[tuple[int, int]]) -> Iterator[Candidate]:
        for bank, opened in self.opened_by.items():
            kind = Kind.PRE8 if opened is Kind.ACT8 else Kind.PRE
            row = self._open_row(bank)
            yield self._candidate(CLEAR, bank, kind, bank, row, not_before=self.due[bank // self.rank_banks])
            if (bank, row) not in wanted:
                yield self._candidate(PRECHARGE, bank, kind, bank, row)

    def _candidate(
        self, choice: int, place: int, kind: Kind, bank: int, row: int = 0, column: int = 0, not_before: int = 0
    ) -> Candidate:
        earliest = self.channel.earliest(kind, bank).cycle
        return Candidate(max(earliest, self.clock + 1, not_before), choice, place, kind, bank, row, column)

    def _open_row(self, bank: int) -> int:
        return int(self.channel.state.open_row[bank])

    def _issue(self, next_one: Candidate) -> None:
        self.channel.issue(next_one.cycle, next_one.kind, next_one.bank, next_one.row, next_one.column)
        self.clock = next_one.cycle
        match next_one.choice:
            case 0:
                self.due[next_one.place] += self.interval
            case 2:
                del self.queue[next_one.place]
                self.issued += 1
            case 3:
                self.opened_by[next_one.bank] = next_one.kind
            case _:
                del self.opened_by[next_one.bank]
