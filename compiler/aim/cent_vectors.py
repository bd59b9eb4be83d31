"""CENT's vector work in the banks: norms, rotary embedding, softmax scaling and gate product by element-wise products.

An element-wise product multiplies bank 0 with bank 1 of every bank group into bank 2. Operands get there by host
writes, results leave by host reads, one access for 16 values; every copy of the block is written and read.
Source: CENT, ASPLOS'25, cent_simulation/Llama.py (trace_only) and TransformerBlock.py (store_for_*, load_from_*).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from compiler.aim.block import Placement
from compiler.aim.cent_plan import CentPlan
from compiler.geometry import ceil_div
from simulator.aim.instructions import Instruction, Opcode

WRITE, READ = Opcode.WRITE_MEM, Opcode.READ_MEM
GROUP_BANKS = 4
"""Banks of a bank group: an element-wise product uses three of them."""
PAIR_BANKS = 2
"""Neighbouring banks that MAC multiplies with one another."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A vector over every `stride`-th bank of a block: values in each, and how many such banks it reaches."""

    stride: int
    values: int
    units: int


def spread(plan: CentPlan, width: int, stride: int) -> Spread:
    """Deal a vector of `width` values in equal consecutive parts to every `stride`-th bank."""
    values = int(ceil_div(width, plan.place.block_banks // stride))
    return Spread(stride, values, int(ceil_div(width, values)))


def move(plan: CentPlan, opcode: Opcode, part: Spread, bank: int, row: int, values: int = 0) -> Iterator[Instruction]:
    """Write or read the parts in bank `bank` of every group (or `values` values of each), in steps of 16 values."""
    banks = range(bank, bank + part.units * part.stride, part.stride)
    for offset, columns in plan.row_pieces(values or part.values):
        yield from accesses(plan.place, opcode, banks, row + offset) * columns


def accesses(place: Placement, opcode: Opcode, banks: Iterable[int], row: int) -> tuple[Instruction, ...]:
    """Access a row of banks of a block, counted over its channels, in every copy."""
    found = []
    for bank in banks:
        channel, within = divmod(bank, place.banks)
        found += [_access(opcode, copy * place.channels + channel, within, row) for copy in range(place.copies)]
    return tuple(found)


def multiply(plan: CentPlan, row: int, values: int) -> Iterator[Instruction]:
    """Multiply bank 0 with bank 1 into bank 2 of every bank group."""
    for offset, columns in plan.row_pieces(values):
        yield Instruction(Opcode.EWMUL, columns, plan.all_channels, row=row + offset)


def copy_products(plan: CentPlan, source: int, target: int, values: int) -> Iterator[Instruction]:
    """Copy the products of every bank group through the global buffer to its bank 1 in another row."""
    for bank in range(GROUP_BANKS // 2, plan.place.banks, GROUP_BANKS):
        for offset, columns in plan.row_pieces(values):
            channels = plan.all_channels
            yield Instruction(Opcode.COPY_BKGB, columns, channels, bank, source + offset)
            yield Instruction(Opcode.COPY_GBBK, columns, channels, bank - 1, target + offset)


def synchronise(plan: CentPlan) -> Instruction:
    """Wait until everything before has finished."""
    return Instruction(Opcode.SYNC, channels=tuple(range(plan.place.device_channels)))


@cache
def _access(opcode: Opcode, channel: int, bank: int, row: int) -> Instruction:
    """Return one access of the host; equal ones are one object, since a trace has hundreds of thousands of them."""
    return Instruction(opcode, channels=(channel,), bank=bank, row=row)
