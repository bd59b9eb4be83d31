"""Every command that one run of a program issued, in order: what looking inside a channel starts from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class IssueLog:
    """int64 arrays with one entry per command, the controller's own refresh commands included.

    `kind` is an index into `isa.KINDS`. `bank` matters where the kind addresses a bank or bank group, `row` where it
    opens one; other entries of them mean nothing.
    """

    cycle: NDArray[np.int64]
    kind: NDArray[np.int64]
    bank: NDArray[np.int64]
    row: NDArray[np.int64]

    def __len__(self) -> int:
        """Return how many commands were issued."""
        return len(self.cycle)
