"""The values one channel and its host hold: storage, global buffer, accumulators, open rows, mode, host memories.

Stored values are elements of a number format, inputs and outputs bf16, all kept in float32; accumulators and scales are
float32. NaN marks what was never written: values given from outside must be finite, so that NaN in a result always
means that something unwritten (or an infinity) was read.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.number_format import INPUT_BITS
from simulator.bf16 import is_bf16, is_fp16
from simulator.channel import CLOSED
from simulator.functional_errors import OperandRangeError

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
MOST_LANES = 256


@dataclass(frozen=True, slots=True)
class ChannelSizes:
    """What one channel has; `rows` counts only those a test uses, `columns` accesses of `lanes` stored values.

    `accesses_per_column` of them are written by one WR and hold what one SCALE16 loads; of 16-bit values they would be
    `column_accesses`.
    """

    banks: int
    rows: int
    columns: int
    lanes: int
    buffer_columns: int
    accumulators: int
    accesses_per_column: int = 1
    column_accesses: int = 1
    microkernel_words: int = 0

    @property
    def output_width(self) -> int:
        """Values of one output entry: a sum of each bank, or the partial sums in the lanes of one unit."""
        return self.lanes if self.microkernel_words else self.banks

    @property
    def values_per_write(self) -> int:
        """Values of each bank that one WRA16 writes: the least that is whole bytes."""
        return max(1, self.accesses_per_column // self.column_accesses * 8 // INPUT_BITS)

    def __post_init__(self) -> None:
        """Refuse lanes that no balanced tree adds."""
        if self.lanes & (self.lanes - 1) or not 0 < self.lanes <= MOST_LANES:
            raise OperandRangeError(f"expected lanes that are a power of two up to {MOST_LANES}, found {self.lanes}")


@dataclass(frozen=True, slots=True, eq=False)
class FunctionalChannel:
    """The state of one channel; the engines write into the arrays.

    `cells` is float32[rows, columns, lanes, banks], `buffer` float32[buffer columns, lanes], `accumulators`
    float32[accumulators, banks], `scales` float32[lanes x accesses per column, banks], `open_row` int64[banks],
    `register_mode` int64[1]. The second row buffers hold `latched` float32[columns, lanes, banks] of `latched_row`
    int64[1].
    """

    sizes: ChannelSizes
    cells: Floats
    buffer: Floats
    accumulators: Floats
    scales: Floats
    open_row: NDArray[np.int64]
    register_mode: NDArray[np.int64]
    latched: Floats
    latched_row: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class HostMemory:
    """What one channel's commands read and write at the host, indexed by their `data` operand.

    `inputs` float32[entries, lanes] feeds WRGB and WR, `inputs_by_bank` float32[entries, banks] feeds WRA16, `outputs`
    float32[entries, banks] takes RDMAC16 and feeds WRMAC16; of units with microkernels it is float32[entries, lanes]
    and takes RD. `writers` int64[entries] holds the instruction that last wrote an output, -1 where none did.

    `input_events` int64[entries] say which WAIT must come before an input is there, -1 none; `output_events` which
    SIGNAL hands an output to the host, -1 none, and `taken` int64[entries] is 1 for those handed over.
    """

    inputs: Floats
    inputs_by_bank: Floats
    outputs: Floats
    writers: NDArray[np.int64]
    input_events: NDArray[np.int64]
    output_events: NDArray[np.int64]
    taken: NDArray[np.int64]


def fresh_channel(sizes: ChannelSizes) -> FunctionalChannel:
    """Return a channel that holds nothing: unwritten everywhere, all rows closed and none latched, memory mode."""
    shape = (sizes.rows, sizes.columns, sizes.lanes, sizes.banks)
    return FunctionalChannel(
        sizes=sizes,
        cells=np.full(shape, np.nan, dtype=np.float32),
        buffer=np.full((sizes.buffer_columns, sizes.lanes), np.nan, dtype=np.float32),
        accumulators=np.full((sizes.accumulators, sizes.banks), np.nan, dtype=np.float32),
        scales=np.full((sizes.lanes * sizes.accesses_per_column, sizes.banks), np.nan, dtype=np.float32),
        open_row=np.full(sizes.banks, CLOSED, dtype=np.int64),
        register_mode=np.zeros(1, dtype=np.int64),
        latched=np.full(shape[1:], np.nan, dtype=np.float32),
        latched_row=np.full(1, CLOSED, dtype=np.int64),
    )


def host_memory(
    sizes: ChannelSizes,
    inputs: Floats | None = None,
    inputs_by_bank: Floats | None = None,
    output_entries: int = 0,
    *,
    half: bool = False,
    input_events: Integers | None = None,
    output_events: Integers | None = None,
) -> HostMemory:
    """Return host memories with these contents and zero outputs; raises ValueError for values that are not bf16.

    Without events, inputs are there from the start and outputs are not handed over. With `half` the values are to be
    stored as fp16, and have to be fp16.
    """
    name_of_format, fits = ("fp16", is_fp16) if half else ("bf16", is_bf16)
    columns = np.zeros((0, sizes.lanes), dtype=np.float32) if inputs is None else inputs
    by_bank = np.zeros((0, sizes.banks), dtype=np.float32) if inputs_by_bank is None else inputs_by_bank
    for name, values, width in (("inputs", columns, sizes.lanes), ("inputs_by_bank", by_bank, sizes.banks)):
        if values.ndim != 2 or values.shape[1] != width:
            raise ValueError(f"{name}: expected entries of {width} values, found an array of shape {values.shape}")
        if not fits(values):
            raise ValueError(f"{name}: expected finite {name_of_format} values, found others; round them first")
    return HostMemory(
        inputs=np.ascontiguousarray(columns, dtype=np.float32),
        inputs_by_bank=np.ascontiguousarray(by_bank, dtype=np.float32),
        outputs=np.zeros((output_entries, sizes.output_width), dtype=np.float32),
        writers=np.full(output_entries, -1, dtype=np.int64),
        input_events=_events(input_events, max(len(columns), len(by_bank))),
        output_events=_events(output_events, output_entries),
        taken=np.zeros(output_entries, dtype=np.int64),
    )


def _events(given: Integers | None, entries: int) -> Integers:
    return np.full(entries, -1, dtype=np.int64) if given is None else np.ascontiguousarray(given, dtype=np.int64)
