"""From a workload and one schedule per scheduled operator to the step that a system of devices executes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from compiler.attention import AttentionShape
from compiler.attention_lowering import AttentionLowering
from compiler.emission import Block, repeat
from compiler.geometry import ceil_div
from compiler.host_cost import host_work_ns, mixed_work_ns
from compiler.linear import LinearShape, linear_phases, with_vectors
from compiler.routing import ExpertLoad
from compiler.schedule import AttentionSchedule, LinearSchedule, PoolShape, Schedule, pool_shape
from compiler.workload import (
    VALUE_BYTES,
    AppendShape,
    EmbeddingShape,
    ExpertsShape,
    FreeShape,
    HostShape,
    RoutedShape,
    Shape,
    Workload,
)
from configs.device import Device, Host
from simulator.isa import Affine, Command, Instruction, Kind, Program
from simulator.step import HOST_OWNER, HostPhase, Phase, PimPhase, Step, TaskPhases

EMBEDDING_OWNER = "embedding"


@dataclass(frozen=True, slots=True)
class System:
    """Identical devices behind one host."""

    device: Device
    devices: int

    @property
    def pool(self) -> PoolShape:
        """The channels of all devices, as schedules see them."""
        return pool_shape(self.device, self.devices)

    @property
    def host(self) -> Host:
        """The host processor; raises ValueError where the device names none."""
        if self.device.host is None:
            raise ValueError(f"{self.device.name} has no host section")
        return self.device.host


def lower_steps(
    workload: Workload, schedules: Mapping[str, Schedule], system: System, draws: tuple[tuple[ExpertLoad, ...], ...]
) -> tuple[Step, ...]:
    """Lower one decode step per routing draw; a draw names the load of each choice of experts, by `routings`.

    Steps share what they have in common: a task is lowered once per expert load.
    """
    lowered: dict[tuple[int, ExpertLoad], int] = {}
    tasks: list[TaskPhases] = []
    sequences = []
    for loads in draws:
        sequence = []
        for index, routing in zip(workload.sequence, workload.routings, strict=True):
            shape = workload.shapes[index]
            load = () if routing is None else loads[routing]
            if (index, load) not in lowered:
                lowered[index, load] = len(tasks)
                tasks.append(TaskPhases(shape.name, lower_task(shape, schedules, system, load)))
            sequence.append(lowered[index, load])
        sequences.append(tuple(sequence))
    return tuple(Step(tuple(tasks), sequence, workload.dependencies) for sequence in sequences)


def lower_task(
    shape: Shape, schedules: Mapping[str, Schedule], system: System, load: ExpertLoad = ()
) -> tuple[Phase, ...]:
    """Lower one operator; raises KeyError for a scheduled operator without a schedule."""
    match shape:
        case LinearShape():
            return linear_phases(shape, _linear(schedules, shape.name), system.pool, system.devices, system.host)
        case AttentionShape():
            return _attention(shape, schedules, system).attend_phases()
        case AppendShape(attention=attention):
            return _attention(attention, schedules, system).append_phases()
        case EmbeddingShape():
            return (embedding_phase(shape, system),)
        case ExpertsShape():
            return expert_phases(shape, schedules, system, load)
        case RoutedShape(linear=linear):
            return tuple(phase for vectors in load for phase in _expert_linear(linear, schedules, system, vectors))
        case FreeShape():
            return ()
        case HostShape():
            work_ns = mixed_work_ns(system.host, shape.moved_bytes, shape.operations, shape.matrix_operations)
            return (HostPhase(shape.name, HOST_OWNER, work_ns, launch=True),)


def embedding_columns(shape: EmbeddingShape, pool: PoolShape) -> Any:
    """Return the columns of the device that each channel has of one table row (records may hold arrays)."""
    return ceil_div(shape.width, pool.channels * pool.lanes * pool.column_accesses)


def embedding_phase(shape: EmbeddingShape, system: System) -> PimPhase:
    """Read one table row per sequence, each channel its part; sequences take banks in turn."""
    pool = system.pool
    columns = embedding_columns(shape, pool)
    body: list[Instruction] = [Command(Kind.WAIT)]
    for sequence in range(shape.batch):
        bank = Affine(sequence % pool.banks)
        read = partial(_read_column, bank)
        body += [Command(Kind.ACT, bank=bank), *repeat(columns, 0, read), Command(Kind.PRE, bank=bank)]
    program = Program((*body, Command(Kind.SIGNAL)), f"{shape.name} of {shape.batch} tokens")
    token_bytes = 4 * shape.batch
    values = columns * pool.lanes * pool.column_accesses
    up = shape.batch * values * VALUE_BYTES * pool.channels // system.devices
    return PimPhase(shape.name, EMBEDDING_OWNER, program, (token_bytes,), (up,), pool.channels)


def _read_column(bank: Affine, column: Affine, depth: int) -> Block:
    return (Command(Kind.RD, bank=bank, column=column, data=column),)


def expert_phases(
    shape: ExpertsShape, schedules: Mapping[str, Schedule], system: System, load: ExpertLoad
) -> tuple[Phase, ...]:
    """Run every active expert: all gate/up matrices, the activations on the host, all down matrices, the sum."""
    gate_up: list[Phase] = []
    down: list[Phase] = []
    for vectors in load:
        gate_up.extend(_expert_linear(shape.gate_up, schedules, system, vectors))
        down.extend(_expert_linear(shape.down, schedules, system, vectors))
    tokens = sum(load)
    activated = tokens * shape.gate_up.outputs
    combined = tokens * shape.down.outputs
    activation_ns = host_work_ns(system.host, activated * VALUE_BYTES * 1.5, 8 * activated / 2)
    combine_ns = host_work_ns(system.host, combined * VALUE_BYTES * 2, 2 * combined)
    return (
        *gate_up,
        HostPhase("expert activation", HOST_OWNER, activation_ns, launch=True),
        *down,
        HostPhase("expert sum", HOST_OWNER, combine_ns, launch=True),
    )


def _expert_linear(
    shape: LinearShape, schedules: Mapping[str, Schedule], system: System, vectors: int
) -> tuple[Phase, ...]:
    own_shape, own_schedule = with_vectors(shape, _linear(schedules, shape.name), vectors)
    return linear_phases(own_shape, own_schedule, system.pool, system.devices, system.host)


def _linear(schedules: Mapping[str, Schedule], name: str) -> LinearSchedule:
    schedule = schedules[name]
    assert isinstance(schedule, LinearSchedule)
    return schedule


def _attention(shape: AttentionShape, schedules: Mapping[str, Schedule], system: System) -> AttentionLowering:
    schedule = schedules[shape.name]
    assert isinstance(schedule, AttentionSchedule)
    return AttentionLowering(shape, schedule, system.pool, system.devices, system.host)
