"""Where everything lives: rows of every bank for weights, embedding and KV cache, and how many devices that takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.attention import AttentionShape, attention_geometry
from compiler.geometry import ceil_div
from compiler.linear import LinearShape, linear_counts
from compiler.lowering import System, embedding_columns
from compiler.schedule import AttentionSchedule, LinearSchedule, Place, PoolShape, Schedule
from compiler.workload import EmbeddingShape, ExpertsShape, Workload
from configs.errors import UserError

NO_ROOM = 1 << 40


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


def embedding_rows(shape: EmbeddingShape, pool: PoolShape) -> Any:
    """Return the rows per bank of the embedding table (records may hold arrays)."""
    tokens_per_row = pool.columns // embedding_columns(shape, pool)
    rows = ceil_div(shape.vocabulary, pool.banks * np.maximum(tokens_per_row, 1))
    # A table row wider than a bank row has no layout: more rows than any bank has make it illegal.
    return np.where(tokens_per_row > 0, rows, NO_ROOM)


def copies_of(workload: Workload) -> dict[str, int]:
    """Return how many times each scheduled operator's tensors are stored: layers, and experts of each layer."""
    copies: dict[str, int] = {}
    for shape, multiplicity in zip(workload.shapes, workload.multiplicities, strict=True):
        match shape:
            case LinearShape() | AttentionShape() | EmbeddingShape():
                copies[shape.name] = multiplicity
            case ExpertsShape(experts=experts, gate_up=gate_up, down=down):
                copies[gate_up.name] = copies[down.name] = multiplicity * experts
            case _:
                pass
    return copies


def capacity_plan(workload: Workload, schedules: Mapping[str, Schedule], system: System) -> CapacityPlan:
    """Return the plan of one design."""
    pool, copies = system.pool, copies_of(workload)
    regions = []
    for shape in workload.schedulables:
        schedule = schedules[shape.name]
        if schedule.place is Place.HOST:
            continue
        match shape, schedule:
            case LinearShape(), LinearSchedule():
                rows, size = int(linear_counts(shape, schedule, pool).rows), shape.weight_bytes
            case AttentionShape(), AttentionSchedule():
                rows, size = int(attention_geometry(shape, schedule, pool).rows), shape.kv_bytes
            case _:
                raise TypeError(f"{shape.name} cannot run {schedule}")
        regions.append(Region(shape.name, copies[shape.name], rows, size))
    for item in workload.shapes:
        if isinstance(item, EmbeddingShape):
            size = item.vocabulary * item.width * 2
            regions.append(Region(item.name, copies[item.name], int(embedding_rows(item, pool)), size))
    return CapacityPlan(tuple(regions), system.device.organisation.rows)


def stored_bytes(workload: Workload) -> int:
    """Return the bytes of weights, embedding and KV cache, without padding."""
    copies = copies_of(workload)
    total = sum(
        copies[shape.name] * (shape.weight_bytes if isinstance(shape, LinearShape) else shape.kv_bytes)
        for shape in workload.schedulables
    )
    return total + sum(item.vocabulary * item.width * 2 for item in workload.shapes if isinstance(item, EmbeddingShape))


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
