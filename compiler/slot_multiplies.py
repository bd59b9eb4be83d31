"""The multiplies of a row: columns of its slots with every vector that shares the row, and their scales."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.emission import Block, plus, repeat, times
from compiler.geometry import Geometry, ceil_div, plain
from simulator.isa import ZERO, Affine, Command, Kind

Emit = Callable[[Affine, int], Block]


@dataclass(frozen=True, slots=True)
class Place:
    """Where columns of a slot lie: in a row, and in the buffer behind the vector's first; the slot's accumulator."""

    row: Affine
    column: Affine
    input_column: Affine
    register: Affine

    def moved(self, columns: Affine) -> "Place":
        """Return the place of columns further on."""
        return Place(self.row, plus(self.column, columns), plus(self.input_column, columns), self.register)


@dataclass(frozen=True, slots=True)
class SlotMultiplies:
    """Emits the multiplies of slots of one geometry."""

    shape: Geometry

    def of(self, row: Affine, start: Affine, columns: int, register: Affine, depth: int) -> Block:
        """Multiply `columns` columns from `start` on; `register` is the accumulator of the first vector."""
        multiply = self.scaled if self.shape.packing.has_scales else self.plain
        return multiply(row, start, columns, register, depth)

    def plain(self, row: Affine, start: Affine, columns: int, register: Affine, depth: int) -> Block:
        """Multiply the columns of one slot with every vector of the group."""
        place = Place(row, start, Affine(), register)
        return repeat(self.shape.turns, depth, lambda turn, inside: self._multiply(place, columns, turn, inside))

    def halves(
        self, row: Affine, slots: int, columns: int, stride: int, register: Affine, depth: int
    ) -> tuple[Block, Block]:
        """Multiply a whole row in two parts about alike: some of its slots, of the vectors, or of the columns each.

        `register` is the accumulator of the first vector of the first slot, a slot is `stride` columns long.
        """
        shape = self.shape

        def of_slot(slot: Affine, inside: int) -> Block:
            return self.of(row, times(slot, stride), columns, plus(register, times(slot, shape.reuse)), inside)

        def of_turn(turn: Affine, inside: int) -> Block:
            return self._multiply(Place(row, Affine(), Affine(), register), columns, turn, inside)

        if slots > 1:
            return _in_halves(slots, slots // 2, depth, of_slot)
        if shape.turns > 1:
            return _in_halves(shape.turns, shape.turns // 2, depth, of_turn)
        place, first = Place(row, Affine(), Affine(), register), first_half(1, 1, columns)
        rest = place.moved(Affine(first))
        return self._multiply(place, first, ZERO, depth), self._multiply(rest, columns - first, ZERO, depth)

    def scaled(self, row: Affine, start: Affine, columns: int, register: Affine, depth: int) -> Block:
        """Load the scales of each chunk of a slot's columns, then multiply the chunk with every vector."""
        packed = self.shape.packing

        def chunk(index: Affine, inside: int, length: int) -> Block:
            scales = plus(start, times(index, packed.chunk + packed.per_column))
            place = Place(row, scales.plus(packed.per_column), times(index, packed.chunk), register)
            loaded = Command(Kind.SCALE16, row=row, column=scales)
            vectors = repeat(self.shape.turns, inside, lambda turn, deeper: self._groups(place, length, turn, deeper))
            return (loaded, *vectors)

        full, ragged = divmod(columns, packed.chunk)
        head = repeat(full, depth, lambda index, inside: chunk(index, inside, packed.chunk))
        return (*head, *(chunk(Affine(full), depth, ragged) if ragged else ()))

    def _groups(self, place: Place, columns: int, turn: Affine, depth: int) -> Block:
        """Multiply the columns of one chunk with the vectors of one turn, each group of columns with its scale."""
        size = self.shape.packing.group

        def group(index: Affine, inside: int, length: int) -> Block:
            return self._multiply(place.moved(times(index, size)), length, turn, inside, index.plus(1))

        full, ragged = divmod(columns, size)
        head = repeat(full, depth, lambda index, inside: group(index, inside, size))
        return (*head, *(group(Affine(full), depth, ragged) if ragged else ()))

    def _multiply(self, place: Place, columns: int, turn: Affine, depth: int, scale: Affine = ZERO) -> Block:
        """Multiply columns that follow each other with those of the vectors in the buffer that one multiply serves."""
        shape = self.shape
        vector = times(turn, shape.together)
        register = plus(place.register, vector)
        first = plus(place.input_column, times(vector, shape.segment_columns))
        return repeat(
            columns,
            depth,
            lambda column, _: (
                Command(
                    Kind.MACL16 if shape.latched else Kind.MAC16,
                    row=place.row,
                    column=plus(place.column, column),
                    lane=scale,
                    buffer=plus(first, column),
                    register=register,
                    data=Affine(shape.segment_columns) if shape.together > 1 else ZERO,
                ),
            ),
        )


def first_half(slots: Any, turns: Any, columns: Any) -> Any:
    """Return the multiplies in the first of the two parts of a row; ints or arrays."""
    of_one_slot = np.where(np.asarray(turns) > 1, turns // 2 * columns, ceil_div(columns, 2))
    return plain(np.where(np.asarray(slots) > 1, slots // 2 * turns * columns, of_one_slot))


def _in_halves(count: int, first: int, depth: int, body: Emit) -> tuple[Block, Block]:
    """Return the first so many repetitions of body(index, depth inside), and the others."""
    rest = repeat(count - first, depth, lambda index, inside: body(index.plus(first), inside))
    return repeat(first, depth, body), rest
