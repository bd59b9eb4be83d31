"""The values one HBM-PIM channel holds: banks, rows of results, the registers of its units, and where those stand.

Values are fp16, kept in float32; NaN marks what was never written. `sizes.banks` counts units, of which each has an
even and an odd bank; `sizes.rows` are rows for data, behind which the reserved ones begin.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.microkernel_units import REGISTERS, ROW_COLUMNS
from simulator.channel import CLOSED
from simulator.functional_state import ChannelSizes, Floats
from simulator.hbm_pim.registers import RESULT_ROWS

# Places in `MicrokernelChannel.standing`.
EXECUTES, COUNTER, RUNS, ENTERED, LEFT = range(5)


@dataclass(frozen=True, slots=True, eq=False)
class MicrokernelChannel:
    """The state of one channel; the units write into the arrays.

    `cells` is float32[rows, columns, lanes, banks], `results` alike for its own rows, `inputs` (GRF_A) and `sums`
    (GRF_B) float32[registers, lanes, units], `words` int64[microkernel words], `jumps` int64[words], how often each
    jump will still go back, -1 where it has not begun; `open_row` int64[banks]. `register_mode` int64[1] is 1 in
    all-bank mode. `standing` int64[5]: whether units execute, the program counter, runs of its instruction so far, and
    bit sets of the banks whose entry row, or whose exit row, was written.
    """

    sizes: ChannelSizes
    cells: Floats
    results: Floats
    inputs: Floats
    sums: Floats
    words: NDArray[np.int64]
    jumps: NDArray[np.int64]
    open_row: NDArray[np.int64]
    register_mode: NDArray[np.int64]
    standing: NDArray[np.int64]


def fresh_microkernel_channel(sizes: ChannelSizes) -> MicrokernelChannel:
    """Return a channel that holds nothing: unwritten everywhere, all rows closed, single-bank mode."""
    banks, columns = 2 * sizes.banks, (ROW_COLUMNS, sizes.lanes)
    registers = (REGISTERS, sizes.lanes, sizes.banks)
    return MicrokernelChannel(
        sizes=sizes,
        cells=_unwritten(sizes.rows, *columns, banks),
        results=_unwritten(RESULT_ROWS, *columns, banks),
        inputs=_unwritten(*registers),
        sums=_unwritten(*registers),
        words=np.full(sizes.microkernel_words, -1, dtype=np.int64),
        jumps=np.full(sizes.microkernel_words, -1, dtype=np.int64),
        open_row=np.full(banks, CLOSED, dtype=np.int64),
        register_mode=np.zeros(1, dtype=np.int64),
        standing=np.zeros(5, dtype=np.int64),
    )


def _unwritten(*shape: int) -> Floats:
    return np.full(shape, np.nan, dtype=np.float32)
