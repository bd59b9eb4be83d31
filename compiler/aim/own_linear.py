"""Our linear layers as instructions: a schedule, lowered by the kernel that the search uses, and emitted.

A layer whose outputs pass the activation function keeps half of the accumulators for the activated values, as CENT
does, but activates a whole group before it reads any of it back: the mode changes once for a group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from compiler.aim.emit import emit
from compiler.kernel_events import read_slots
from compiler.linear import LinearShape, kernel_outputs, linear_geometry
from compiler.matvec import MatVecKernel, Operands
from compiler.schedule import LinearSchedule, PoolShape, schedule_text
from simulator.aim.instructions import Instruction, Opcode
from simulator.isa import Affine, Program


@dataclass(frozen=True, slots=True)
class Emitted:
    """Instructions, and the rows of every bank that their matrix occupies."""

    instructions: tuple[Instruction, ...]
    rows: int


def linear_trace(
    shape: LinearShape,
    schedule: LinearSchedule,
    pool: PoolShape,
    channels: tuple[int, ...],
    first_row: int,
    *,
    activated: bool = False,
) -> Emitted:
    """Return one linear operator on `channels` in lock-step; `pool` is what one block sees of the device."""
    found: list[Instruction] = []
    row = first_row
    for outputs in kernel_outputs(shape, schedule.merged):
        sizes = replace(linear_geometry(shape, outputs, schedule, pool), whole_reads=True)
        kernel = MatVecKernel(sizes, Operands(Affine(row), Affine(), Affine()), schedule.preactivate)
        emitted = emit(Program(kernel.emit(), f"{shape.name} {schedule_text(schedule)}"), channels)
        found.extend(_activated(emitted, len(read_slots(sizes))) if activated else emitted)
        row += sizes.rows
    return Emitted(tuple(found), row - first_row)


def _activated(instructions: Sequence[Instruction], parts: int) -> Iterator[Instruction]:
    """Before the last `parts` runs of reads, those of whole sums: RD_MAC* --> AF* RD_AF* RD_MAC*."""
    runs = [(opcode, tuple(run)) for opcode, run in groupby(instructions, key=lambda item: item.opcode)]
    partial = sum(opcode is Opcode.RD_MAC for opcode, _ in runs) - parts
    for opcode, run in runs:
        if opcode is Opcode.RD_MAC:
            if partial <= 0:
                for inserted in (Opcode.AF, Opcode.RD_AF):
                    yield from (Instruction(inserted, channels=item.channels) for item in run)
            partial -= 1
        yield from run
