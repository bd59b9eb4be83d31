"""The writes of the newest tokens' K and V on a channel that holds one or more of them."""

from dataclasses import dataclass

from compiler.attention import AttentionGeometry, AttentionShape
from compiler.emission import Block, plus, repeat, times
from compiler.hbm_pim.append import microkernel_key_writes, microkernel_value_writes
from compiler.schedule import AttentionSchedule, PoolShape
from simulator.isa import Affine, Command, Kind


@dataclass(frozen=True, slots=True)
class AppendPlaces:
    """What an append needs: the operator, its geometry, and the first rows of the channel's K and V regions.

    `part` says which of the channels that share a unit's tokens it is.
    """

    shape: AttentionShape
    schedule: AttentionSchedule
    pool: PoolShape
    sizes: AttentionGeometry
    first_key_row: int
    first_value_row: int
    part: int

    @property
    def newest(self) -> tuple[int, ...]:
        """The places of the newest tokens that this part holds, among its own."""
        split = self.schedule.token_split
        first = self.shape.tokens - self.shape.queries
        return tuple(token // split for token in range(first, self.shape.tokens) if token % split == self.part)


def key_writes(at: AppendPlaces) -> Block:
    """Write each unit's K: columns of the device in one slot of one bank for every token."""
    if at.pool.runs_microkernels:
        return microkernel_key_writes(at)
    score = at.sizes.last_score
    per_column = score.packing.per_column

    def token(number: int, index: Affine, depth: int) -> Block:
        slot, bank = divmod(at.newest[number], at.pool.banks)
        row, place = divmod(slot, score.slots_per_row)
        bank_row = plus(Affine(at.first_key_row + row), times(index, at.sizes.key_rows))
        data = times(index, len(at.newest) * score.total_columns).plus(number * score.total_columns)
        writes = repeat(
            score.total_columns // per_column,
            depth,
            lambda column, _: (
                Command(
                    Kind.WR,
                    bank=Affine(bank),
                    row=bank_row,
                    column=times(column, per_column).plus(place * score.segment_stride),
                    data=plus(data, times(column, per_column)),
                ),
            ),
        )
        opened = Command(Kind.ACT, bank=Affine(bank), row=bank_row)
        return (opened, *writes, Command(Kind.PRE, bank=Affine(bank), row=bank_row))

    def unit(index: Affine, depth: int) -> Block:
        return tuple(item for number in range(len(at.newest)) for item in token(number, index, depth))

    return repeat(at.sizes.units_per_channel, 0, unit)


def value_writes(at: AppendPlaces, values_per_write: int) -> Block:
    """Write each unit's V: for every token one value of each dimension, every bank at once.

    Values narrower than a byte are written with those of the token that shares it, which the controller has kept.
    """
    if at.pool.runs_microkernels:
        return microkernel_value_writes(at)
    context = at.sizes.last_context

    def token(place: int, entries: Affine, index: Affine, depth: int) -> Block:
        column, lane = divmod(place, at.pool.lanes)
        segment, inside = divmod(column, context.segment_columns)
        first = at.first_value_row + segment * context.rows_per_segment
        first_lane = lane - lane % values_per_write

        def row_of(number: Affine, deeper: int, slots: int) -> Block:
            row = plus(plus(Affine(first), times(index, at.sizes.value_rows)), number)
            data = plus(entries, times(number, context.slots_per_row))
            return repeat(
                slots,
                deeper,
                lambda slot, _: (
                    Command(Kind.ACT16, row=row),
                    Command(
                        Kind.WRA16,
                        row=row,
                        column=times(slot, context.segment_stride).plus(inside),
                        lane=Affine(first_lane),
                        data=times(plus(data, slot), values_per_write),
                    ),
                ),
            )

        full, ragged = divmod(context.slots, context.slots_per_row)
        rows = repeat(full, depth, lambda number, deeper: row_of(number, deeper, context.slots_per_row))
        return (*rows, *row_of(Affine(full), depth, ragged))

    def unit(index: Affine, depth: int) -> Block:
        first = times(index, len(at.newest) * context.slots)
        tokens = enumerate(at.newest)
        return tuple(
            item for number, place in tokens for item in token(place, first.plus(number * context.slots), index, depth)
        )

    return repeat(at.sizes.units_per_channel, 0, unit)
