"""What takes no rows: the vectors that controllers keep during a phase, and what lies in the host's memory."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from compiler.attention import AttentionShape
from compiler.attention_lowering import AttentionLowering
from compiler.linear import LinearShape, linear_phases, with_vectors
from compiler.lowering import System, embedding_phase
from compiler.memory.capacity import copies_of
from compiler.memory.plan import Held, Place
from compiler.schedule import AttentionSchedule, LinearSchedule, Schedule
from compiler.schedule import Place as Processor
from compiler.workload import EmbeddingShape, HostShape, Schedulable, Workload
from simulator.step import Phase, PimPhase


def held_bytes(workload: Workload, schedules: Mapping[str, Schedule], system: System) -> Iterator[Held]:
    """Yield the bytes of every operator in its order: on the devices by phase, at the most tokens there is room for."""
    copies = copies_of(workload)
    for shape in workload.schedulables:
        if schedules[shape.name].place is Processor.HOST:
            room = shape if isinstance(shape, LinearShape) else replace(shape, tokens=shape.room)
            size = room.weight_bytes if isinstance(room, LinearShape) else room.host_kv_bytes
            what = "weights" if isinstance(shape, LinearShape) else "cache"
            yield Held(shape.name, what, Place.HOST, copies[shape.name] * size)
        else:
            yield from _vectors(_phases(shape, schedules[shape.name], system), system.devices)
    for item in workload.shapes:
        match item:
            case EmbeddingShape():
                yield from _vectors((embedding_phase(item, system),), system.devices)
            case HostShape():
                yield from _of_host(item, copies[item.name])
            case _:
                pass


def _of_host(shape: HostShape, copies: int) -> Iterator[Held]:
    """Yield what an operator of the host keeps, and what it works on meanwhile."""
    stored = {"weights": shape.weight_bytes, "states": shape.state_bytes}
    yield from (Held(shape.name, what, Place.HOST, copies * size) for what, size in stored.items() if size)
    # States and weights are among what it moves, states twice.
    operands = shape.moved_bytes - shape.weight_bytes - 2 * shape.state_bytes
    yield Held(shape.name, "operands", Place.HOST, max(operands, 0))


def _phases(shape: Schedulable, schedule: Schedule, system: System) -> tuple[Phase, ...]:
    """Return the phases of an operator, attention at the maximum context."""
    match shape, schedule:
        case LinearShape(), LinearSchedule():
            own_shape, own_schedule = with_vectors(shape, schedule, shape.vectors)
            return linear_phases(own_shape, own_schedule, system.pool, system.devices, system.host)
        case AttentionShape(), AttentionSchedule():
            longest = replace(shape, tokens=shape.room)
            lowering = AttentionLowering(longest, schedule, system.pool, system.devices, system.host)
            return (*lowering.append_phases(), *lowering.attend_phases())
    raise TypeError(f"{shape.name} cannot run {schedule}")


def _vectors(phases: tuple[Phase, ...], devices: int) -> Iterator[Held]:
    """Yield inputs and results of each phase on the channels; passes over one input after the other share its place."""
    inputs: dict[str, int] = {}
    results: dict[str, int] = {}
    for phase in phases:
        if isinstance(phase, PimPhase):
            inputs[phase.name] = max(inputs.get(phase.name, 0), devices * sum(phase.down_bytes))
            results[phase.name] = results.get(phase.name, 0) + devices * sum(phase.up_bytes)
    for name, size in inputs.items():
        yield Held(name, "inputs", Place.CONTROLLER, size)
        if results[name]:
            yield Held(name, "results", Place.CONTROLLER, results[name])
