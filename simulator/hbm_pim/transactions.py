"""What a host asks of one HBM-PIM channel: accesses in order, with barriers. Where the reference kernels begin.

A controller turns accesses into commands (`simulator.hbm_pim.controller`). Nothing passes a barrier: an access marked
as one goes when everything before it has gone, and before everything behind it.
"""

from dataclasses import dataclass, replace

from simulator.isa import Kind


@dataclass(frozen=True, slots=True)
class Access:
    """One column access: `kind` is RD or WR for one bank, RD8, WR8 or ST8 for all even (0) or all odd (1) banks."""

    kind: Kind
    bank: int
    row: int
    column: int
    barrier: bool = False

    @property
    def all_banks(self) -> bool:
        """Whether the access goes to every even or every odd bank."""
        return self.kind in (Kind.RD8, Kind.WR8, Kind.ST8)


Accesses = tuple[Access, ...]


def fenced(accesses: Accesses) -> Accesses:
    """Return the accesses with the last one as a barrier."""
    return (*accesses[:-1], replace(accesses[-1], barrier=True))


def columns_of(kind: Kind, bank: int, row: int, first: int, count: int) -> Accesses:
    """Return accesses to columns that follow each other, the last one a barrier."""
    return fenced(tuple(Access(kind, bank, row, first + index) for index in range(count)))
