"""Which instructions of two program bodies are the same ones: the pairing, in order, that costs the fewest edits.

A command stays a command of its kind with other operands, a loop stays a loop with another count and another body;
anything else is dropped or comes anew. Dropping, or adding, an instruction costs more than changing all its operands.
"""

from typing import Any

from compiler.emission import Block
from simulator.isa import OPERANDS, Command, Instruction, Loop

COUNT = "count"
DROPPED = len(OPERANDS) + 1
NEVER = 1 << 40


def differences(old: Instruction, new: Instruction) -> list[tuple[str, Any, Any]]:
    """Return the fields of two loops or two commands of a kind that differ, the loops' bodies aside."""
    names = (COUNT,) if isinstance(old, Loop) else OPERANDS
    values = ((name, getattr(old, name), getattr(new, name)) for name in names)
    return [(name, before, after) for name, before, after in values if before != after]


class Alignment:
    """Pairs the instructions of two bodies; remembers what the bodies of loops cost."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._costs: dict[tuple[int, int], int] = {}

    def kept(self, old: Block, new: Block) -> list[tuple[int, int]]:
        """Return the pairs of places of the instructions that stay, in order."""
        costs = self._table(old, new)
        pairs, i, j = [], 0, 0
        while i < len(old) and j < len(new):
            if costs[i][j] == self._cost(old[i], new[j]) + costs[i + 1][j + 1]:
                pairs.append((i, j))
                i, j = i + 1, j + 1
            elif costs[i][j] == DROPPED + costs[i + 1][j]:
                i += 1
            else:
                j += 1
        return pairs

    def _table(self, old: Block, new: Block) -> list[list[int]]:
        """Return the least cost of making old[i:] new[j:] for every i and j."""
        costs = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
        for i in range(len(old), -1, -1):
            for j in range(len(new), -1, -1):
                options = []
                if i < len(old) and j < len(new):
                    options.append(self._cost(old[i], new[j]) + costs[i + 1][j + 1])
                if i < len(old):
                    options.append(DROPPED + costs[i + 1][j])
                if j < len(new):
                    options.append(DROPPED * _instructions(new[j]) + costs[i][j + 1])
                costs[i][j] = min(options, default=0)
        return costs

    def _cost(self, old: Instruction, new: Instruction) -> int:
        """Return the fields that change when an instruction becomes another; more than anything if it never can."""
        match old, new:
            case Loop(body=before), Loop(body=after):
                key = (id(before), id(after))
                if key not in self._costs:
                    self._costs[key] = 0 if before == after else self._table(before, after)[0][0]
                return self._costs[key] + len(differences(old, new))
            case Command(kind=before), Command(kind=after) if before is after:
                return len(differences(old, new))
        return NEVER


def _instructions(item: Instruction) -> int:
    """Return the instructions of the looped form, each loop and each command one."""
    return 1 + sum(map(_instructions, item.body)) if isinstance(item, Loop) else 1
