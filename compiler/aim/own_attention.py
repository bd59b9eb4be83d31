"""Our attention as instructions: scores, contexts and the append of the newest token, from the shared kernel.

K rows hold tokens, V rows hold dimensions along the tokens; token t lies in channel t mod token_split of its unit, a KV
head. Behind a unit's dimensions stands one more slot that holds ones: its result is the sum of exponentials, so that
no accelerator adds them; the softmax divides afterwards.
"""

from dataclasses import dataclass, replace

from compiler.aim.block import BlockShape, Placement
from compiler.aim.emit import emit
from compiler.emission import Block, plus, repeat, times
from compiler.geometry import Geometry, ceil_div, geometry
from compiler.matvec import MatVecKernel, Operands
from compiler.schedule import AttentionSchedule, LoopOrder, PoolShape, schedule_text
from simulator.aim.instructions import Instruction
from simulator.isa import Affine, Command, Kind, Program


@dataclass(frozen=True, slots=True)
class OwnAttention:
    """One block's attention; the cache has room for `room` tokens and begins at `first_row` of every bank."""

    shape: BlockShape
    place: Placement
    pool: PoolShape
    schedule: AttentionSchedule
    room: int
    first_row: int = 0

    @property
    def groups(self) -> int:
        """Groups of channels that share the tokens of their units."""
        return self.place.channels // self.schedule.token_split

    @property
    def units(self) -> int:
        """KV heads of one channel."""
        return int(ceil_div(self.shape.kv_heads, self.groups))

    @property
    def channels(self) -> tuple[int, ...]:
        """The channels that work: those of groups that have units, in every copy."""
        used = int(ceil_div(self.shape.kv_heads, self.units))
        return self.place.first_channels(used * self.schedule.token_split)

    @property
    def score(self) -> Geometry:
        """The score kernel of one unit on one channel."""
        columns = ceil_div(self.shape.head_dim, self.pool.lanes)
        return self._kernel(self._local(self.shape.context), self.shape.head_dim, columns, self.schedule.score_reuse)

    @property
    def context(self) -> Geometry:
        """The context kernel of one unit on one channel, its last slot the ones."""
        outputs = int(ceil_div(self.shape.head_dim, self.pool.banks)) * self.pool.banks + self.pool.banks
        columns, reuse = self.schedule.context_segment_columns, self.schedule.context_reuse
        return self._kernel(outputs, self._local(self.shape.context), columns, reuse, growing=True)

    @property
    def key_rows(self) -> int:
        """Rows of one unit's K."""
        return int(ceil_div(ceil_div(self._local(self.room), self.pool.banks), self.score.slots_per_row))

    @property
    def value_rows(self) -> int:
        """Rows of one unit's V."""
        columns = ceil_div(self._local(self.room), self.pool.lanes)
        return int(ceil_div(columns, self.schedule.context_segment_columns) * self.context.rows_per_segment)

    @property
    def rows(self) -> int:
        """Rows of every bank that K and V occupy."""
        return self.units * (self.key_rows + self.value_rows)

    def scores(self) -> tuple[Instruction, ...]:
        """Multiply the query heads with K."""
        return self._over_units("score", self.score, self.first_row, self.key_rows)

    def contexts(self) -> tuple[Instruction, ...]:
        """Multiply the exponentials with V and with ones."""
        return self._over_units("context", self.context, self._first_value_row, self.value_rows)

    def append(self) -> tuple[Instruction, ...]:
        """Write the newest token's K and V in the channels that hold it."""
        split = self.schedule.token_split
        newest = (self.shape.context - 1) % split
        holders = tuple(channel for channel in self.channels if channel % self.place.channels % split == newest)
        local = (self.shape.context - 1) // split
        body = repeat(self.units, 0, lambda unit, depth: self._key(unit, depth, local))
        body += repeat(self.units, 0, lambda unit, depth: self._value(unit, depth, local))
        return emit(Program(body, f"append {schedule_text(self.schedule)}"), holders)

    @property
    def _first_value_row(self) -> int:
        return self.first_row + self.units * self.key_rows

    def _local(self, tokens: int) -> int:
        return int(ceil_div(tokens, self.schedule.token_split))

    def _kernel(self, outputs: int, inputs: int, columns: int, reuse: int, growing: bool = False) -> Geometry:
        sizes = geometry(
            self.pool,
            outputs,
            inputs,
            self.shape.group,
            segment_columns=columns,
            reuse=reuse,
            registers=self.schedule.registers,
            order=LoopOrder.RELOAD,
            growing=growing,
        )
        return replace(sizes, whole_reads=True)

    def _over_units(self, name: str, kernel: Geometry, first_row: int, rows: int) -> tuple[Instruction, ...]:
        def unit(index: Affine, depth: int) -> Block:
            operands = Operands(
                row=plus(Affine(first_row), times(index, rows)),
                input_column=times(index, kernel.vectors * kernel.total_columns),
                output=times(index, kernel.vectors * kernel.slots),
                depth=depth,
            )
            return MatVecKernel(kernel, operands, self.schedule.preactivate).emit()

        return emit(Program(repeat(self.units, 0, unit), f"{name} {schedule_text(self.schedule)}"), self.channels)

    def _key(self, unit: Affine, depth: int, token: int) -> Block:
        """Write one unit's K: its columns in one slot of one bank."""
        score = self.score
        slot, bank = divmod(token, self.pool.banks)
        offset, position = divmod(slot, score.slots_per_row)
        at, row = Affine(bank), plus(Affine(self.first_row + offset), times(unit, self.key_rows))
        first = position * score.segment_columns

        def write(column: Affine, _: int) -> Block:
            data = plus(times(unit, score.total_columns), column)
            return (Command(Kind.WR, bank=at, row=row, column=column.plus(first), data=data),)

        opened, closed = Command(Kind.ACT, bank=at, row=row), Command(Kind.PRE, bank=at, row=row)
        return (opened, *repeat(score.total_columns, depth, write), closed)

    def _value(self, unit: Affine, depth: int, token: int) -> Block:
        """Write one unit's V, one value of every dimension; the ones stay as they are."""
        context = self.context
        column, lane = divmod(token, self.pool.lanes)
        segment, inside = divmod(column, context.segment_columns)
        first = plus(Affine(self._first_value_row + segment * context.rows_per_segment), times(unit, self.value_rows))
        found: list[Command] = []
        for slot in range(context.slots - 1):
            offset, position = divmod(slot, context.slots_per_row)
            row, data = first.plus(offset), times(unit, context.slots - 1).plus(slot)
            place = Affine(position * context.segment_columns + inside)
            found.append(Command(Kind.ACT16, row=row))
            found.append(Command(Kind.WRA16, row=row, column=place, lane=Affine(lane), data=data))
        return tuple(found)
