"""CENT's norm, rotary embedding and append of the newest token as instructions.

Source: CENT, ASPLOS'25, cent_simulation/Llama.py (trace_only).
"""

from collections.abc import Iterator

from compiler.aim.cent_corrections import Correction
from compiler.aim.cent_plan import CentPlan, configure
from compiler.aim.cent_vectors import (
    GROUP_BANKS,
    PAIR_BANKS,
    READ,
    WRITE,
    Spread,
    accesses,
    copy_products,
    move,
    multiply,
    spread,
    synchronise,
)
from compiler.geometry import ceil_div
from simulator.aim.instructions import Instruction, Opcode

BROADCAST, ALL_BANK_GROUPS = 0, 1
"""Configuration registers: 1 in the first takes MAC operands from the global buffer, 0 in the second multiplies in all
bank groups (the public AiM simulator's test trace)."""


def norm(
    plan: CentPlan, square_row: int, vector_row: int, weight_row: int, banks: tuple[int, int]
) -> Iterator[Instruction]:
    """Normalise a vector: squares between neighbouring banks, two products; `banks` is the order of operand writes."""
    pairs, groups = spread(plan, plan.shape.hidden, PAIR_BANKS), spread(plan, plan.shape.hidden, GROUP_BANKS)
    channels = plan.all_channels
    for bank in range(PAIR_BANKS):
        yield from move(plan, WRITE, pairs, bank, square_row)
    yield from configure(plan, BROADCAST, 0)
    yield Instruction(Opcode.WR_BIAS, channels=channels)
    yield Instruction(Opcode.MAC_ABK, plan.place.columns_of(pairs.values), channels, row=square_row)
    yield Instruction(Opcode.RD_MAC, channels=channels)
    yield from configure(plan, BROADCAST, 1)
    for bank in banks:
        yield from move(plan, WRITE, groups, bank, vector_row)
    yield from multiply(plan, vector_row, groups.values)
    yield from copy_products(plan, vector_row, weight_row, groups.values)
    yield from multiply(plan, weight_row, groups.values)
    yield from move(plan, READ, groups, 2, weight_row)
    yield synchronise(plan)


def rotary(plan: CentPlan) -> Iterator[Instruction]:
    """Multiply query and key with cosines and sines: twice their values, against tables that lie in bank 0."""
    shape, rows = plan.shape, plan.rows
    part = spread(plan, shape.query_width, GROUP_BANKS)
    operands = ((rows.query, 2 * part.values), (rows.key, 2 * _key_values(plan, part)))
    for row, values in operands:
        yield from move(plan, WRITE, part, 1, row, values)
    if plan.corrects(Correction.ROTARY_COLUMNS):
        for row, values in operands:
            yield from multiply(plan, row, values)
    else:
        columns = shape.hidden // plan.place.lanes
        yield Instruction(Opcode.EWMUL, columns, plan.all_channels, row=rows.query)
        yield Instruction(Opcode.EWMUL, columns // shape.group, plan.all_channels, row=rows.key)
    back = READ if plan.corrects(Correction.ROTARY_LOADS) else WRITE
    for row, values in operands:
        yield from move(plan, back, part, 2, row, values)


def _key_values(plan: CentPlan, query: Spread) -> int:
    """Return the key's values in each bank that holds some of the query; CENT rounds them down."""
    if plan.corrects(Correction.ROTARY_COLUMNS):
        return int(ceil_div(query.values, plan.shape.group))
    return query.values // plan.shape.group


def append(plan: CentPlan) -> Iterator[Instruction]:
    """Write the newest token: its keys to one bank, its values one dimension to each bank."""
    yield from _append_key(plan)
    yield from _append_value(plan)


def _append_key(plan: CentPlan) -> Iterator[Instruction]:
    place, shape = plan.place, plan.shape
    step, index = divmod(shape.context - 1, place.block_banks)
    whole, rest = divmod(shape.kv_width, place.row_values)
    columns = [place.columns] * whole
    if rest and plan.corrects(Correction.KEY_HEADS):
        columns.append(place.columns_of(rest))
    for row, count in enumerate(columns):
        first = plan.rows.key_cache + step * len(columns) + row
        yield from [item for item in accesses(place, WRITE, (index,), first) for _ in range(count)]


def _append_value(plan: CentPlan) -> Iterator[Instruction]:
    place, shape = plan.place, plan.shape
    newest = shape.context - 1
    row = newest // place.row_values if plan.corrects(Correction.APPEND_ROW) else (newest - 1) // place.row_values
    copies = place.copies if plan.corrects(Correction.APPEND_COPIES) else 1
    for head in range(plan.heads_per_channel):
        for dimension in range(plan.dimension_groups):
            first = plan.rows.value_cache + (head * plan.dimension_groups + dimension) * plan.token_rows + row
            for copy in range(copies):
                for channel in range(place.channels):
                    if channel * plan.heads_per_channel + head < shape.kv_heads:
                        yield Instruction(Opcode.WR_ABK, channels=(copy * place.channels + channel,), row=first)
