"""One kernel run on every channel of a small attention case, and where its results are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compiler.attention_lowering import AttentionLowering
from compiler.geometry import Geometry
from compiler.numerics.layout import (
    Floats,
    block_of,
    input_events,
    output_entry,
    output_events,
    read_outputs,
    vector_columns,
)
from compiler.numerics.report import command_text, expect_at_rest
from compiler.numerics.small_cache import Cache, lowering_of, units_of
from compiler.numerics.small_sizes import AttentionCase
from simulator.functional import FlatProgram, HostMemory, execute, host_memory


@dataclass(frozen=True, slots=True, eq=False)
class KernelRun:
    """What a kernel left in the host memories of the channels."""

    lowering: AttentionLowering
    kernel: Geometry
    flat: FlatProgram
    memories: tuple[HostMemory, ...]

    def outputs(self, unit: int, part: int, count: int) -> Floats:
        """Return y[v, n] of a unit's part."""
        channel, first = self._place(unit, part)
        entries = self.memories[channel].outputs[first : first + self.kernel.output_entries]
        return read_outputs(entries, self.kernel, count)

    def writer_of_part(self, unit: int, part: int) -> Callable[[int, int], str]:
        """Return what names the command that wrote an output of a unit's part."""

        def writer(vector: int, output: int) -> str:
            channel, first = self._place(unit, part)
            entry, _ = output_entry(vector, output, self.kernel)
            return command_text(self.flat, int(self.memories[channel].writers[first + entry]))

        return writer

    def _place(self, unit: int, part: int) -> tuple[int, int]:
        """Return the channel of a unit's part, and the first output entry of the unit there."""
        per_channel = int(self.lowering.sizes.units_per_channel)
        first = unit % per_channel * self.kernel.output_entries
        return unit // per_channel * self.lowering.schedule.token_split + part, first


def run_kernel(
    case: AttentionCase, cache: Cache, kernel: Geometry, flat: FlatProgram, vectors_of: Callable[[int, int], Floats]
) -> KernelRun:
    """Run a kernel on every channel; `vectors_of` gives the inputs [v, k] of a unit's part."""
    lanes, memories = case.pool.lanes, []
    padding = np.zeros((kernel.vectors * kernel.total_columns, lanes), dtype=np.float32)
    for number, channel in enumerate(cache.channels):
        part = block_of(number, case.schedule.token_split).inner
        inputs = [
            vector_columns(vectors_of(unit, part), kernel, lanes) if unit < case.shape.units else padding
            for unit in units_of(case, number)
        ]
        memory = host_memory(
            channel.sizes,
            np.concatenate(inputs),
            output_entries=len(inputs) * kernel.output_entries,
            input_events=input_events(kernel, len(inputs)),
            output_events=output_events(kernel, len(inputs)),
        )
        execute(flat, channel, memory)
        expect_at_rest(channel, memory, f"attention, {case.name}, kernel")
        memories.append(memory)
    return KernelRun(lowering_of(case, case.shape), kernel, flat, tuple(memories))
