"""A step as a trace for the public AiM simulator: the programs of its tasks, one after the other, each task once.

Link, host and events have no instruction. Which channels a phase works on matters to what is computed, not to cycles:
the first ones stand for them, as many as take part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil

from compiler.aim.emit import emit
from configs.errors import UserError
from simulator.aim.instructions import Instruction
from simulator.isa import FROM_SECOND_BUFFERS, Program
from simulator.program_code import flatten
from simulator.step import PimPhase, TaskPhases


@dataclass(frozen=True, slots=True)
class TracedPhase:
    """One program of a task as instructions, on the channels of one device."""

    task: str
    phase: str
    program: Program
    arrivals: int
    instructions: tuple[Instruction, ...]


def traced_phases(tasks: tuple[TaskPhases, ...], channels: int) -> Iterator[TracedPhase]:
    """Yield the phases on the channels; raises UserError for a program that AiM instructions cannot say."""
    for task in tasks:
        for phase in task.phases:
            if isinstance(phase, PimPhase):
                # Channels that take part lie in blocks, so that the first device has as many as any.
                taking_part = min(channels, ceil(phase.active_channels))
                yield _traced(task.task, phase, tuple(range(taking_part)))


def _traced(task: str, phase: PimPhase, channels: tuple[int, ...]) -> TracedPhase:
    program, refused = phase.program, partial(_refused, f"{task}, {phase.name}")
    if program.accesses_per_column != 1:
        found = f"{program.accesses_per_column} multiplies of a column"
        raise refused("columns of 16-bit values that one AiM instruction multiplies whole", found)
    if program.vectors_per_multiply != 1:
        raise refused("one vector, as AiM instructions multiply", f"{program.vectors_per_multiply} at a time")
    if FROM_SECOND_BUFFERS & set(flatten(program).occurring()):
        raise refused("multiplies of open rows, the only ones of AiM instructions", "those of second row buffers")
    instructions = emit(phase.program, channels)
    return TracedPhase(task, phase.name, phase.program, len(phase.down_bytes), instructions)


def _refused(where: str, expected: str, found: str) -> UserError:
    way_out = "leave --weights, --kv and the device's units and columns as AiM has them"
    return UserError(where=where, expected=expected, found=found, way_out=way_out)
