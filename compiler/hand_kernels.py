"""Matrix-vector kernels written by hand, beside the generated one: a registry that linear schedules name.

A kernel gets the same geometry and operands as `compiler.matvec` and keeps the same contract: values lie where
`compiler.numerics.layout` puts them, it waits for and signals the events of `compiler.kernel_events`, begins and ends
in memory mode with all rows closed. What checks, times, plans and emits a generated kernel does it to these too.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compiler.emission import Block, repeat
from compiler.geometry import Geometry
from compiler.kernel_events import PIECE_COLUMNS, pieces
from compiler.matvec import Operands
from compiler.schedule import GENERATED, LinearSchedule, LoopOrder
from simulator.isa import Affine, Command, Instruction, Kind


@dataclass(frozen=True, slots=True)
class HandKernel:
    """`emit` writes the program, `reasons` says why it cannot serve a schedule; `source` is where it comes from."""

    name: str
    source: str
    emit: Callable[[Geometry, Operands], Block]
    reasons: Callable[[LinearSchedule], tuple[str, ...]]


def cent_gemv(shape: Geometry, at: Operands) -> Block:
    """Multiply slice after slice of the input; for each, groups of sums go in, their rows are visited, they go out."""
    body: list[Instruction] = [Command(Kind.TMOD)]
    for vector in range(shape.vectors):
        for segment in range(shape.segments):
            body += _slice_of_input(shape, at, vector, segment)
            for group in range(shape.groups):
                body += _group(shape, at, vector, segment, group)
    return (*body, Command(Kind.TMOD))


def _slice_of_input(shape: Geometry, at: Operands, vector: int, segment: int) -> Iterator[Instruction]:
    """Write one slice of a vector to the global buffer, each piece when it has come."""
    columns = shape.tail_columns if segment == shape.segments - 1 else shape.segment_columns
    full = len(pieces(shape.segment_columns))
    per_vector = (shape.segments - 1) * full + len(pieces(shape.tail_columns))
    first = vector * shape.total_columns + segment * shape.segment_columns
    for number, length in enumerate(pieces(columns)):
        done = number * PIECE_COLUMNS
        yield Command(Kind.WAIT, event=at.wait_event.plus(vector * per_vector + segment * full + number))
        yield from _columns(length, at.depth, Command(Kind.WRGB, data=at.input_column.plus(first)), done)


def _columns(count: int, depth: int, command: Command, done: int) -> Block:
    """Repeat a buffer write over columns that follow each other."""

    def write(column: Affine, _: int) -> Block:
        place = column.plus(done)
        data = Affine(command.data.constant + place.constant, (*command.data.terms, *place.terms))
        return (Command(Kind.WRGB, buffer=place, data=data),)

    return repeat(count, depth, write)


def _group(shape: Geometry, at: Operands, vector: int, segment: int, group: int) -> Iterator[Instruction]:
    """Move a group of sums in, multiply its rows with the slice, move the sums out."""
    last = segment == shape.segments - 1
    first_slot = group * shape.group_slots
    slots = range(first_slot, min(first_slot + shape.group_slots, shape.slots))
    entries = [at.output.plus(vector * shape.slots + slot) for slot in slots]
    if shape.spills or segment == 0:
        for register, entry in enumerate(entries):
            yield Command(Kind.WRMAC16, register=Affine(register), data=entry)
    yield Command(Kind.TMOD)
    per_row = shape.tail_slots_per_row if last else shape.slots_per_row
    for row in range(slots.start // per_row, -(-slots.stop // per_row)):
        inside = range(max(row * per_row, slots.start), min((row + 1) * per_row, slots.stop))
        yield from _row(shape, at, segment, row, [slot - slots.start for slot in inside])
    yield Command(Kind.TMOD)
    if shape.spills or last:
        for register, entry in enumerate(entries):
            yield Command(Kind.RDMAC16, register=Affine(register), data=entry)
    if last:
        yield Command(Kind.SIGNAL, event=at.signal_event.plus(vector * shape.groups + group))


def _row(shape: Geometry, at: Operands, segment: int, row: int, registers: list[int]) -> Iterator[Instruction]:
    """Open a row, multiply the slots in it, close it."""
    last = segment == shape.segments - 1
    columns = shape.tail_columns if last else shape.segment_columns
    stride = shape.tail_stride if last else shape.segment_stride
    place = at.row.plus(segment * shape.rows_per_segment + row)
    yield Command(Kind.ACT16, row=place)
    for number, register in enumerate(registers):

        def multiply(column: Affine, _: int, start: int = number * stride, register: int = register) -> Block:
            operands = {"column": column.plus(start), "buffer": column, "register": Affine(register)}
            return (Command(Kind.MAC16, row=place, **operands),)

        yield from repeat(columns, at.depth, multiply)
    yield Command(Kind.PREA)


def _cent_reasons(schedule: LinearSchedule) -> tuple[str, ...]:
    wanted = {"order": LoopOrder.SPILL, "reuse": 1, "preactivate": False}
    return tuple(
        f"the kernel cent needs {name} {value}, the schedule has {getattr(schedule, name)}"
        for name, value in wanted.items()
        if getattr(schedule, name) != value
    )


KERNELS = {
    kernel.name: kernel
    for kernel in (
        HandKernel("cent", "CENT (ASPLOS'25), cent_simulation: the matrix-vector product", cent_gemv, _cent_reasons),
    )
}
NAMES = (GENERATED, *KERNELS)
