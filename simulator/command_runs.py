"""A log of issued commands in short: a run is one command that repeats at its own shortest distance.

Exact: the cycles of a run's commands are its first one and multiples of the kind's distance after it. A step of a
million commands has some ten thousand runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.isa import KINDS
from simulator.issue_log import IssueLog


@dataclass(frozen=True, slots=True, eq=False)
class CommandRuns:
    """int64 arrays with one entry per run, in the order of issue; `kind`, `bank` and `row` as in `IssueLog`."""

    first_cycle: NDArray[np.int64]
    last_cycle: NDArray[np.int64]
    count: NDArray[np.int64]
    kind: NDArray[np.int64]
    bank: NDArray[np.int64]
    row: NDArray[np.int64]

    def __len__(self) -> int:
        """Return how many runs there are."""
        return len(self.count)

    def take(self, chosen: NDArray[np.bool_]) -> "CommandRuns":
        """Return the chosen runs."""
        return CommandRuns(*(getattr(self, name)[chosen] for name in self.__slots__))

    def issues(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return cycle and kind of every single command, in the order of issue: two int64 arrays."""
        distance = (self.last_cycle - self.first_cycle) // np.maximum(self.count - 1, 1)
        number = np.arange(self.count.sum()) - np.repeat(np.cumsum(self.count) - self.count, self.count)
        cycles = np.repeat(self.first_cycle, self.count) + number * np.repeat(distance, self.count)
        return cycles, np.repeat(self.kind, self.count)

    def counts(self) -> NDArray[np.int64]:
        """Return the commands by kind: int64[kinds]."""
        return np.bincount(self.kind, weights=self.count, minlength=len(KINDS)).astype(np.int64)


def runs_of(log: IssueLog, distance: NDArray[np.int64]) -> CommandRuns:
    """Return the runs of a log; `distance` is that of repetitions by kind, 0 where none counts."""
    same = (np.diff(log.kind) == 0) & (np.diff(log.bank) == 0) & (np.diff(log.cycle) == distance[log.kind[1:]])
    first = np.flatnonzero(np.concatenate((np.ones(min(1, len(log)), dtype=np.bool_), ~same)))
    last = np.append(first[1:], len(log))[: len(first)] - 1
    return CommandRuns(
        log.cycle[first], log.cycle[last], last - first + 1, log.kind[first], log.bank[first], log.row[first]
    )


def joined(parts: Sequence[CommandRuns]) -> CommandRuns:
    """Return runs of several logs one after the other."""
    empty = np.zeros(0, dtype=np.int64)
    return CommandRuns(
        *(np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in CommandRuns.__slots__)
    )
