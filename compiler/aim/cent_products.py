"""CENT's matrix products as instructions: linear layers, scores, contexts.

A linear layer deals ceil(outputs / banks) consecutive outputs to each bank; one slice of inputs, a row, at a time is in
the global buffer, and groups of accumulators move in and out for every slice. Scores and contexts move one accumulator
in, multiply one head, and move it out.
Source: CENT, ASPLOS'25, cent_simulation/TransformerBlock.py (the *_pim_only_trace methods, reuse-GB, reuse size 32).
"""

from collections.abc import Iterator

from compiler.aim.cent_corrections import Correction
from compiler.aim.cent_plan import CentPlan
from compiler.geometry import ceil_div
from simulator.aim.instructions import Instruction, Opcode

CENT_ACCUMULATORS = 32
"""Accumulators of a bank that CENT assumes (--reuse-size in its run_sim.py); activated results take half of them."""


def linear(
    plan: CentPlan, first_row: int, inputs: int, outputs: int, *, activated: bool = False
) -> Iterator[Instruction]:
    """Multiply a vector with a matrix; `activated` also reads its outputs through the activation function."""
    place = plan.place
    slots = int(ceil_div(outputs, place.block_banks))
    channels = plan.channels_of(int(ceil_div(ceil_div(outputs, slots), place.banks)))
    slices = int(ceil_div(inputs, place.row_values))
    for index in range(slices):
        columns = place.columns_of(min(place.row_values, inputs - index * place.row_values))
        yield Instruction(Opcode.WR_GB, columns, channels)
        for group in _groups(slots, CENT_ACCUMULATORS // 2 if activated else CENT_ACCUMULATORS):
            yield from [Instruction(Opcode.WR_BIAS, channels=channels)] * len(group)
            for slot in group:
                yield Instruction(Opcode.MAC_ABK, columns, channels, row=first_row + slot * slices + index)
            if activated and index == slices - 1:
                yield from [Instruction(Opcode.AF, channels=channels), _read(Opcode.RD_AF, channels)] * len(group)
            yield from [_read(Opcode.RD_MAC, channels)] * len(group)


def scores(plan: CentPlan) -> Iterator[Instruction]:
    """Multiply every query head with the keys: a token's keys lie in one bank, tokens in the banks in turn."""
    place, shape = plan.place, plan.shape
    steps = int(ceil_div(shape.context, place.block_banks))
    for row in range(plan.key_rows):
        for step in range(steps):
            tokens = min(place.block_banks, shape.context - step * place.block_banks)
            channels = plan.channels_of(int(ceil_div(tokens, place.banks)))
            for _ in range(shape.group):
                yield Instruction(Opcode.WR_GB, place.columns, channels)
                for _ in range(_heads_in_row(plan, row)):
                    yield Instruction(Opcode.WR_BIAS, channels=channels)
                    first = plan.rows.key_cache + step * plan.key_rows + row
                    yield Instruction(Opcode.MAC_ABK, plan.head_columns, channels, row=first)
                    yield _read(Opcode.RD_MAC, channels)


def contexts(plan: CentPlan) -> Iterator[Instruction]:
    """Multiply every head's probabilities with its values: dimensions over banks, tokens along the rows."""
    place, shape, channels = plan.place, plan.shape, plan.all_channels
    for head in range(plan.heads_per_channel):
        first = plan.rows.value_cache + plan.token_rows * plan.dimension_groups * head
        for _ in range(shape.group):
            for row in range(int(ceil_div(shape.context, place.row_values))):
                columns = place.columns_of(min(place.row_values, shape.context - row * place.row_values))
                yield Instruction(Opcode.WR_GB, columns, channels)
                for dimension in range(plan.dimension_groups):
                    yield Instruction(Opcode.WR_BIAS, channels=channels)
                    yield Instruction(Opcode.MAC_ABK, columns, channels, row=first + dimension * plan.token_rows + row)
                    yield _read(Opcode.RD_MAC, channels)


def _heads_in_row(plan: CentPlan, row: int) -> int:
    heads = plan.place.row_values // plan.shape.head_dim
    if plan.corrects(Correction.KEY_HEADS):
        return min(heads, plan.shape.kv_heads - row * heads)
    return heads


def _groups(slots: int, most: int) -> Iterator[range]:
    """Yield the slots in groups of nearly equal size."""
    size = int(ceil_div(slots, ceil_div(slots, most)))
    for start in range(0, slots, size):
        yield range(start, min(start + size, slots))


def _read(opcode: Opcode, channels: tuple[int, ...]) -> Instruction:
    return Instruction(opcode, channels=channels)
