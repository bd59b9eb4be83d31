"""What every part of CENT's generator reads: the block, its place, its memory map, and which corrections apply."""

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.aim.block import BlockShape, Placement
from compiler.aim.cent_corrections import Correction
from compiler.aim.cent_rows import CENT_CACHE_TOKENS, CentRows, cent_rows
from compiler.geometry import ceil_div
from simulator.aim.instructions import Instruction, Opcode


@dataclass(frozen=True, slots=True)
class CentPlan:
    """One block, mapped; `cache_tokens` is the room of the cache."""

    shape: BlockShape
    place: Placement
    corrections: frozenset[Correction]
    cache_tokens: int
    rows: CentRows

    def corrects(self, correction: Correction) -> bool:
        """Return whether a correction applies."""
        return correction in self.corrections

    @property
    def all_channels(self) -> tuple[int, ...]:
        """Every channel of every copy."""
        return self.place.first_channels(self.place.channels)

    @property
    def head_columns(self) -> int:
        """Columns of one head's key."""
        return self.place.columns_of(self.shape.head_dim)

    @property
    def dimension_groups(self) -> int:
        """Dimensions of one head in each bank."""
        return int(ceil_div(self.shape.head_dim, self.place.banks))

    @property
    def heads_per_channel(self) -> int:
        """KV heads whose values one channel holds."""
        return int(ceil_div(self.shape.kv_heads, self.place.channels))

    @property
    def token_rows(self) -> int:
        """Rows reserved for one value dimension."""
        return int(ceil_div(self.cache_tokens, self.place.row_values))

    @property
    def key_rows(self) -> int:
        """Rows of one token's key, all heads."""
        return int(ceil_div(self.shape.kv_width, self.place.row_values))

    def channels_of(self, count: int) -> tuple[int, ...]:
        """Return the channels that a step on `count` channels of each block addresses."""
        if self.corrects(Correction.BLOCK_CHANNELS):
            return self.place.first_channels(count)
        device = self.place.device_channels
        return tuple(range(device // count * count))

    def row_pieces(self, values: int) -> Iterator[tuple[int, int]]:
        """Yield (row offset, columns) of a vector's part in one bank: whole rows, then the rest."""
        columns = self.place.columns_of(values)
        if not self.corrects(Correction.LONG_VECTORS):
            yield 0, columns
            return
        for row in range(int(ceil_div(columns, self.place.columns))):
            yield row, min(self.place.columns, columns - row * self.place.columns)


def cent_plan(shape: BlockShape, place: Placement, corrections: frozenset[Correction]) -> CentPlan:
    """Return the plan of a block with some corrections; the map is not checked against the bank."""
    room = CENT_CACHE_TOKENS
    if Correction.CACHE_ROOM in corrections:
        room = max(room, int(ceil_div(shape.context, place.row_values)) * place.row_values)
    rows = cent_rows(shape, place, room, Correction.LONG_VECTORS in corrections)
    return CentPlan(shape, place, corrections, room, rows)


def configure(plan: CentPlan, register: int, data: int) -> Iterator[Instruction]:
    """Set a configuration register, which CENT leaves out."""
    if plan.corrects(Correction.CONFIGURATION):
        yield Instruction(Opcode.WRITE_CFR, register=register, data=data)
