"""The writes of the newest tokens' K and V to the banks of HBM-PIM units, in single-bank mode.

K of a token is eight columns of one unit, over an even and an odd row. Of V a token has two bytes of a column for every
dimension; the controller keeps the newest columns and writes them whole, in every unit.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compiler.emission import Block, plus, repeat, times
from compiler.hbm_pim.tiles import bank_parity, first_column, other_row
from configs.microkernel_units import BANKS_OF_UNIT, REGISTERS
from simulator.isa import Affine, Command, Kind

if TYPE_CHECKING:
    from compiler.attention_append import AppendPlaces


def microkernel_key_writes(at: "AppendPlaces") -> Block:
    """Write each unit's K: for every token one output of a tile with a single segment."""

    def region(index: Affine, depth: int) -> Block:
        return tuple(command for number in range(len(at.newest)) for command in _key(at, number, index))

    return repeat(at.sizes.units_per_channel, 0, region)


def _key(at: "AppendPlaces", number: int, index: Affine) -> Iterator[Command]:
    slot, unit = divmod(at.newest[number], at.pool.banks)
    tile, output = divmod(slot, REGISTERS)
    even_row = plus(Affine(at.first_key_row + tile), times(index, at.sizes.key_rows))
    data = times(index, len(at.newest) * REGISTERS).plus(number * REGISTERS)
    for parity in range(BANKS_OF_UNIT):
        bank, row = Affine(BANKS_OF_UNIT * unit + parity), even_row.plus(parity * other_row(tile))
        yield Command(Kind.ACT, bank=bank, row=row)
        for column in range(REGISTERS):
            if bank_parity(tile, column) == parity:
                to = Affine(first_column(tile, column) + output)
                yield Command(Kind.WR, bank=bank, row=row, column=to, data=data.plus(column))
        yield Command(Kind.PRE, bank=bank, row=row)


def microkernel_value_writes(at: "AppendPlaces") -> Block:
    """Write the columns of V that hold the newest tokens, for every dimension."""

    def region(index: Affine, depth: int) -> Block:
        columns = enumerate(newest_columns(at))
        return tuple(command for number, column in columns for command in _values(at, number, column, index))

    return repeat(at.sizes.units_per_channel, 0, region)


def newest_columns(at: "AppendPlaces") -> tuple[int, ...]:
    """Return the columns of inputs, of the whole V, that hold the newest tokens of a part."""
    return tuple(dict.fromkeys(token // at.pool.lanes for token in at.newest))


def _values(at: "AppendPlaces", number: int, column: int, index: Affine) -> Iterator[Command]:
    context = at.sizes.last_context
    segment, inside = divmod(column, REGISTERS)
    entries = context.slots * at.pool.banks
    first = times(index, len(newest_columns(at)) * entries).plus(number * entries)
    for group in range(context.groups):
        tile = segment * context.groups + group
        parity = bank_parity(tile, inside)
        row = plus(Affine(at.first_value_row + tile + parity * other_row(tile)), times(index, at.sizes.value_rows))
        for unit in range(at.pool.banks):
            bank = Affine(BANKS_OF_UNIT * unit + parity)
            yield Command(Kind.ACT, bank=bank, row=row)
            for output in range(REGISTERS):
                to = Affine(first_column(tile, inside) + output)
                data = first.plus((group * REGISTERS + output) * at.pool.banks + unit)
                yield Command(Kind.WR, bank=bank, row=row, column=to, data=data)
            yield Command(Kind.PRE, bank=bank, row=row)
