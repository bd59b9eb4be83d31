"""CENT's softmax scaling and gate product as instructions.

Source: CENT, ASPLOS'25, cent_simulation/Llama.py (trace_only) and TransformerBlock.py (*_EWMUL_score_only_trace).
"""

from collections.abc import Iterator

from compiler.aim.cent_corrections import Correction
from compiler.aim.cent_plan import CentPlan
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


def softmax(plan: CentPlan) -> Iterator[Instruction]:
    """Scale scores, then exponentials: both operands written, products read, twice."""
    pieces = list(_score_rows(plan))
    for _ in range(2):
        for bank in range(PAIR_BANKS):
            yield from _move_scores(plan, WRITE, bank)
        for head in range(_heads_per_group(plan)):
            for row, values in pieces:
                first = plan.rows.scores + head * len(pieces) + row
                yield Instruction(Opcode.EWMUL, plan.place.columns_of(values), plan.all_channels, row=first)
        yield from _move_scores(plan, READ, 2)
        yield synchronise(plan)


def _heads_per_group(plan: CentPlan) -> int:
    return int(ceil_div(plan.shape.heads, plan.place.block_banks // GROUP_BANKS))


def _score_rows(plan: CentPlan) -> Iterator[tuple[int, int]]:
    """Yield (row, values) of one head's scores."""
    for row in range(int(ceil_div(plan.shape.context, plan.place.row_values))):
        yield row, min(plan.place.row_values, plan.shape.context - row * plan.place.row_values)


def _move_scores(plan: CentPlan, opcode: Opcode, bank: int) -> Iterator[Instruction]:
    """Move every head's scores; a bank group holds some heads, the order is row, head, 16 values, bank group."""
    place, heads = plan.place, _heads_per_group(plan)
    pieces = list(_score_rows(plan))
    for row, values in pieces:
        for head in range(heads):
            target = plan.rows.scores + head * len(pieces) + row
            banks = range(bank, place.block_banks, GROUP_BANKS)[: int(ceil_div(plan.shape.heads - head, heads))]
            yield from accesses(place, opcode, banks, target) * place.columns_of(values)


def gate_product(plan: CentPlan) -> Iterator[Instruction]:
    """Multiply gate with its sigmoid, then with up."""
    capacity = plan.place.block_banks // GROUP_BANKS * plan.place.row_values
    whole = plan.shape.intermediate <= capacity or plan.corrects(Correction.LONG_VECTORS)
    parts = [(plan.rows.gate_sigmoid, spread(plan, plan.shape.intermediate, GROUP_BANKS))]
    if not whole:
        parts = [
            (plan.rows.gate, spread(plan, capacity, GROUP_BANKS)),
            (plan.rows.gate_sigmoid, spread(plan, plan.shape.intermediate - capacity, GROUP_BANKS)),
        ]
    yield from _gate_parts(plan, parts, whole)
    yield synchronise(plan)


def _gate_parts(plan: CentPlan, parts: list[tuple[int, Spread]], whole: bool) -> Iterator[Instruction]:
    for bank in (0, 1) if whole else (1, 0):
        for row, part in parts:
            yield from move(plan, WRITE, part, bank, row)
    for row, part in parts:
        yield from multiply(plan, row, part.values)
    yield from _copy_gate(plan, parts)
    for row, part in parts:
        yield from move(plan, WRITE, part, 0 if whole else 1, row)
    for row, part in parts:
        yield from multiply(plan, row, part.values)
    for row, part in parts:
        yield from move(plan, READ, part, 2, row)


def _copy_gate(plan: CentPlan, parts: list[tuple[int, Spread]]) -> Iterator[Instruction]:
    """Copy the products in place to bank 1; with two parts the generator reads both before it writes either."""
    if len(parts) == 1:
        row, part = parts[0]
        yield from copy_products(plan, row, row, part.values)
        return
    for bank in range(GROUP_BANKS // 2, plan.place.banks, GROUP_BANKS):
        for opcode, target in ((Opcode.COPY_BKGB, bank), (Opcode.COPY_GBBK, bank - 1)):
            for row, part in parts:
                yield Instruction(opcode, plan.place.columns_of(part.values), plan.all_channels, target, row)
