"""Whether everything has a place: rows of every bank for weights, embedding and KV cache, and how many devices that is.

The sums of a design; `compiler.memory.planner` says what lies where.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compiler.attention import AttentionShape
from compiler.geometry import ceil_div
from compiler.linear import LinearShape
from compiler.lowering import System
from compiler.memory.rooms import Room, attention_rooms, embedding_room, linear_rooms
from compiler.schedule import AttentionSchedule, LinearSchedule, Place, Schedule
from compiler.workload import (
    VALUE_BYTES,
    EmbeddingShape,
    ExpertsShape,
    HostShape,
    RoutedShape,
    Schedulable,
    Workload,
)
from configs.errors import UserError


@dataclass(frozen=True, slots=True)
class Region:
    """One kind of tensor: `copies` of it (layers, experts), each `rows` rows of every bank; bytes without padding."""

    name: str
    copies: int
    rows: int
    tensor_bytes: int


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """The regions of a design, laid one after the other in every bank of every channel."""

    regions: tuple[Region, ...]
    rows_available: int

    @property
    def rows_needed(self) -> int:
        """Rows of every bank in use."""
        return sum(region.copies * region.rows for region in self.regions)

    @property
    def fits(self) -> bool:
        """Whether everything has a place."""
        return self.rows_needed <= self.rows_available


def copies_of(workload: Workload) -> dict[str, int]:
    """Return how many times each operator's tensors are stored: layers that have their own, and experts of each."""
    copies: dict[str, int] = {}
    for shape, count in zip(workload.shapes, workload.copies, strict=True):
        match shape:
            case LinearShape() | AttentionShape() | EmbeddingShape() | HostShape():
                copies[shape.name] = count
            case ExpertsShape(experts=experts, gate_up=gate_up, down=down):
                copies[gate_up.name] = copies[down.name] = count * experts
            case RoutedShape(experts=experts, linear=linear):
                copies[linear.name] = count * experts
            case _:
                pass
    return copies


def rooms_of(
    workload: Workload, schedules: Mapping[str, Schedule], system: System
) -> Iterator[tuple[Schedulable | EmbeddingShape, tuple[Room, ...]]]:
    """Yield the rooms of one copy of every operator that has its tensors on the devices, in the order of their rows."""
    pool, organisation = system.pool, system.device.organisation
    for shape in workload.schedulables:
        schedule = schedules[shape.name]
        if schedule.place is Place.HOST:
            continue
        match shape, schedule:
            case LinearShape(), LinearSchedule():
                yield shape, linear_rooms(shape, schedule, pool, organisation)
            case AttentionShape(), AttentionSchedule():
                yield shape, attention_rooms(shape, schedule, pool, organisation)
            case _:
                raise TypeError(f"{shape.name} cannot run {schedule}")
    for item in workload.shapes:
        if isinstance(item, EmbeddingShape):
            yield item, (embedding_room(item, pool, organisation),)


def capacity_plan(workload: Workload, schedules: Mapping[str, Schedule], system: System) -> CapacityPlan:
    """Return the plan of one design."""
    copies = copies_of(workload)
    regions = (
        Region(
            shape.name, copies[shape.name], sum(room.rows for room in rooms), sum(room.size.stored for room in rooms)
        )
        for shape, rooms in rooms_of(workload, schedules, system)
    )
    return CapacityPlan(tuple(regions), system.device.organisation.rows)


def stored_bytes(workload: Workload) -> int:
    """Return the bytes of weights, embeddings and KV cache that devices can hold, without padding."""
    copies = copies_of(workload)
    total = sum(
        copies[shape.name] * (shape.weight_bytes if isinstance(shape, LinearShape) else shape.kv_bytes)
        for shape in workload.schedulables
    )
    tables = (item for item in workload.shapes if isinstance(item, EmbeddingShape))
    return total + sum(copies[item.name] * item.vocabulary * item.width * VALUE_BYTES for item in tables)


def host_bytes(workload: Workload) -> int:
    """Return the bytes of weights and states that only the host's memory can hold: of what no unit runs."""
    copies = copies_of(workload)
    shapes = (shape for shape in workload.shapes if isinstance(shape, HostShape))
    return sum(copies[shape.name] * (shape.weight_bytes + shape.state_bytes) for shape in shapes)


def one_memory_bytes(workload: Workload) -> int:
    """Return the bytes of all weights, caches and states in a single memory, where latent caches lie once."""
    copies = copies_of(workload)
    latent = (shape for shape in workload.schedulables if isinstance(shape, AttentionShape) and shape.latent)
    twice = sum(copies[shape.name] * (shape.kv_bytes - shape.host_kv_bytes) for shape in latent)
    return stored_bytes(workload) + host_bytes(workload) - twice


def devices_needed(workload: Workload, capacity_bytes: int) -> int:
    """Return the fewest devices whose bytes hold the scenario; padding can make a schedule need more."""
    return int(ceil_div(stored_bytes(workload), capacity_bytes))


def require_capacity(workload: Workload, capacity_bytes: int, devices: int) -> None:
    """Raise UserError, with amounts, when a scenario cannot fit on so many devices."""
    needed = devices_needed(workload, capacity_bytes)
    if devices >= needed:
        return
    gib = 2**30
    raise UserError(
        where=f"capacity of {devices} device{'s' if devices > 1 else ''}",
        expected=f"{workload.model} with batch {workload.batch} and context {workload.context} to fit in "
        f"{devices * capacity_bytes / gib:.2f} GiB",
        found=f"{stored_bytes(workload) / gib:.2f} GiB of weights and KV cache",
        way_out=f"give --devices {needed} or --devices auto",
    )
