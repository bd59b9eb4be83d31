"""A naive judge of command logs: the rows of a device file, pair by pair, and nothing of the engines.

It knows the meaning of a row, of a level, a window, a sibling, a tick and a bus, and looks at every earlier command.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from configs.constraint import Constraint
from configs.device import Device
from configs.expression import evaluate

LEVELS = ("channel", "pseudochannel", "rank", "bankgroup", "bank")
CHANNEL_KINDS = frozenset(
    (
        *("PREA", "REFab", "RFMab", "ACT16", "WRA16", "MAC16", "LATCH16", "MACL16", "SCALE16", "AF16", "EWMUL16"),
        *("WRGB", "WRMAC16", "RDMAC16", "RDAF16", "TMOD"),
    )
)
BANK_GROUP_KINDS = frozenset(("ACT4", "PRE4"))


class Seen(NamedTuple):
    """One command of a log; `bank` is a bank that it addresses."""

    cycle: int
    kind: str
    bank: int


@dataclass(frozen=True)
class Checker:
    """The rows of one device."""

    device: Device

    @cached_property
    def _rows(self) -> list[tuple[Constraint, int]]:
        """Every row with its nominal distance in ticks."""
        device = self.device
        rows = (*device.constraints, *(device.refresh_constraints if device.refresh.policy != "none" else ()))
        return [(row, evaluate(row.cycles, device.timing) * device.ticks_per_clock) for row in rows]

    @cached_property
    def _buses(self) -> list[set[str]]:
        return [set(names.split()) for names in self.device.command_buses.values()]

    def scope(self, kind: str) -> int:
        """Return the level that a command addresses."""
        default = "channel" if kind in CHANNEL_KINDS else "bankgroup" if kind in BANK_GROUP_KINDS else "bank"
        return LEVELS.index(self.device.scopes.get(kind, default))

    def path(self, bank: int) -> tuple[int, ...]:
        """Return the address of a bank, level by level; the channel is 0."""
        organisation = self.device.organisation
        path = []
        for count in (organisation.banks_per_group, organisation.bank_groups, organisation.ranks):
            path.append(bank % count)
            bank //= count
        return (0, bank, *reversed(path))

    def ticks(self, kind: str) -> int:
        """Return how long a command holds its bus."""
        return self.device.command_ticks.get(kind, 1)

    def bus(self, kind: str) -> int:
        """Return the bus of a command; those the file does not name are on the first."""
        return next((number for number, kinds in enumerate(self._buses) if kind in kinds), 0)

    def bound(self, earlier: Sequence[Seen], kind: str, bank: int) -> int:
        """Return the first cycle at which a command may follow the earlier ones."""
        return max((cycle for cycle, _ in self.reasons(earlier, kind, bank)), default=0)

    def reasons(self, earlier: Sequence[Seen], kind: str, bank: int) -> Iterator[tuple[int, str]]:
        """Yield every cycle that a command may not precede, and why."""
        if earlier:
            yield earlier[-1].cycle, "order"
        for past in earlier:
            if self.bus(past.kind) == self.bus(kind):
                yield past.cycle + self.ticks(past.kind), f"bus held by {past.kind}"
        for row, distance in self._rows:
            if kind in row.following:
                for preceding in row.preceding:
                    met = [
                        past.cycle for past in earlier if past.kind == preceding and self._meets(row, past, kind, bank)
                    ]
                    if len(met) >= row.window:
                        gap = distance + self.ticks(preceding) - 1 - (self.ticks(kind) - 1)
                        yield sorted(met)[-row.window] + gap, " ".join(map(str, row.row()))

    def _meets(self, row: Constraint, past: Seen, kind: str, bank: int) -> bool:
        """Return whether a row speaks of these two: both reach its level, on one instance of it or on siblings."""
        level = LEVELS.index(row.level)
        if min(self.scope(past.kind), self.scope(kind)) < level:
            return False
        one, other = self.path(past.bank)[: level + 1], self.path(bank)[: level + 1]
        if row.sibling:
            return one[:-1] == other[:-1] and one[-1] != other[-1]
        return one == other

    def bounds(self, log: Sequence[Seen]) -> list[int]:
        """Return the first cycle the rows allow each command of a log."""
        return [self.bound(log[:index], entry.kind, entry.bank) for index, entry in enumerate(log)]

    def violations(self, log: Sequence[Seen]) -> list[str]:
        """Return what a log does too early, with the reason."""
        found = []
        for index, entry in enumerate(log):
            for cycle, reason in self.reasons(log[:index], entry.kind, entry.bank):
                if entry.cycle < cycle:
                    found.append(
                        f"{entry.kind} of bank {entry.bank} in cycle {entry.cycle}, not before {cycle}: {reason}"
                    )
        return found
