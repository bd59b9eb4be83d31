"""The multiplies of one slot of a row: its columns with every vector that shares the open row, and their scales."""

from dataclasses import dataclass

from compiler.emission import Block, plus, repeat, times
from compiler.geometry import Geometry
from simulator.isa import ZERO, Affine, Command, Kind


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
        return repeat(self.shape.reuse, depth, lambda vector, inside: self._multiply(place, columns, vector, inside))

    def scaled(self, row: Affine, start: Affine, columns: int, register: Affine, depth: int) -> Block:
        """Load the scales of each chunk of a slot's columns, then multiply the chunk with every vector."""
        packed = self.shape.packing

        def chunk(index: Affine, inside: int, length: int) -> Block:
            scales = plus(start, times(index, packed.chunk + packed.per_column))
            place = Place(row, scales.plus(packed.per_column), times(index, packed.chunk), register)
            loaded = Command(Kind.SCALE16, row=row, column=scales)
            vectors = repeat(
                self.shape.reuse, inside, lambda vector, deeper: self._groups(place, length, vector, deeper)
            )
            return (loaded, *vectors)

        full, ragged = divmod(columns, packed.chunk)
        head = repeat(full, depth, lambda index, inside: chunk(index, inside, packed.chunk))
        return (*head, *(chunk(Affine(full), depth, ragged) if ragged else ()))

    def _groups(self, place: Place, columns: int, vector: Affine, depth: int) -> Block:
        """Multiply the columns of one chunk with one vector, each group of columns with its scale."""
        size = self.shape.packing.group

        def group(index: Affine, inside: int, length: int) -> Block:
            return self._multiply(place.moved(times(index, size)), length, vector, inside, index.plus(1))

        full, ragged = divmod(columns, size)
        head = repeat(full, depth, lambda index, inside: group(index, inside, size))
        return (*head, *(group(Affine(full), depth, ragged) if ragged else ()))

    def _multiply(self, place: Place, columns: int, vector: Affine, depth: int, scale: Affine = ZERO) -> Block:
        """Multiply columns that follow each other with those of one vector in the buffer."""
        register = plus(place.register, vector)
        first = plus(place.input_column, times(vector, self.shape.segment_columns))
        return repeat(
            columns,
            depth,
            lambda column, _: (
                Command(
                    Kind.MAC16,
                    row=place.row,
                    column=plus(place.column, column),
                    lane=scale,
                    buffer=plus(first, column),
                    register=register,
                ),
            ),
        )
