"""How long commands keep what they share: the data bus, and the multiply-accumulate units beside the banks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.command_runs import CommandRuns
from simulator.completion import burst_cycles
from simulator.engine_timing import TICKS
from simulator.step_log import StepLog
from simulator.usage import unit_cycles


@dataclass(frozen=True, slots=True, eq=False)
class ChannelUse:
    """Cycles by command code (int64[kinds]): on its command bus, on the data bus, and of the units; 0 where unused."""

    command_bus: NDArray[np.int64]
    data_bus: NDArray[np.int64]
    units: NDArray[np.int64]


def channel_use(log: StepLog) -> ChannelUse:
    """Return how long one command of each kind keeps what it shares on the device of a step."""
    return ChannelUse(
        command_bus=log.timing.kinds[:, TICKS],
        data_bus=np.array(burst_cycles(log.device), dtype=np.int64),
        units=unit_cycles(log.device),
    )


def busy_cycles(runs: CommandRuns, use: NDArray[np.int64]) -> int:
    """Return how long the commands of some runs keep one resource."""
    return int(runs.counts() @ use)
