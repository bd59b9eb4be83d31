"""What a command addresses on a device: the nodes of the channel's tree that it looks at and marks, and its banks.

A channel is a tree of five levels: channel, pseudo channels, ranks (the stack ids of HBM), bank groups, banks. Its
nodes are numbered level by level, its banks in tree order. A command on a bank reaches from the channel down to its own
scope.
"""

from dataclasses import dataclass

from configs.device import Device
from simulator.isa import CODE_OF, KINDS, Kind, Scope, scope_of

LEVELS = tuple(Scope)


@dataclass(frozen=True, slots=True)
class Addressing:
    """The tree of one device: banks below a node of each level, first node of each level, levels each kind reaches."""

    banks_below: tuple[int, ...]
    first_node: tuple[int, ...]
    reach: tuple[int, ...]

    @property
    def banks(self) -> int:
        """Banks of the channel."""
        return self.banks_below[0]

    @property
    def nodes(self) -> int:
        """Nodes of all levels."""
        return self.first_node[-1] + self.banks

    def node(self, level: int, bank: int) -> int:
        """Return the node of a level that a bank lies below."""
        return self.first_node[level] + bank // self.banks_below[level]

    def siblings(self, level: int, bank: int) -> list[int]:
        """Return the other nodes of a level under the same parent."""
        parent = self.banks_below[level - 1]
        first = bank - bank % parent
        below = self.banks_below[level]
        nodes = [self.node(level, start) for start in range(first, first + parent, below)]
        return [node for node in nodes if node != self.node(level, bank)]

    def is_addressed(self, kind: Kind) -> bool:
        """Return whether commands of a kind name a bank, or what lies around one."""
        return self.reach[CODE_OF[kind]] > 1

    def nodes_of(self, kind: Kind, bank: int) -> list[int]:
        """Return the nodes a command looks at and marks, from the channel down to its own scope."""
        return [self.node(level, bank) for level in range(self.reach[CODE_OF[kind]])]

    def banks_of(self, kind: Kind, bank: int) -> range:
        """Return the banks a command addresses."""
        below = self.banks_below[self.reach[CODE_OF[kind]] - 1]
        first = bank - bank % below
        return range(first, first + below)


def addressing(device: Device) -> Addressing:
    """Return the tree of a device; its file may give a kind another scope than the instruction set does."""
    below = device.organisation.banks_below
    first = [0]
    for count in (below[0] // banks for banks in below[:-1]):
        first.append(first[-1] + count)
    scopes = {kind: Scope(device.scopes.get(kind.value, scope_of(kind))) for kind in KINDS}
    return Addressing(below, tuple(first), tuple(LEVELS.index(scopes[kind]) + 1 for kind in KINDS))
