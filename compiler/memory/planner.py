"""Makes the memory plan of a design: regions one after the other, caches with room to grow, and what still fits.

Operators have their rows in the order of `compiler.memory.capacity`; copies of an operator stand together, so that a
copy is a constant number of rows behind the one before. The maximum context is the one asked for, or else the longest
that fits and that the model has positions for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from compiler.attention import AttentionShape, attention_geometry
from compiler.lowering import System
from compiler.memory.cache import largest_batch, largest_context, with_room
from compiler.memory.capacity import capacity_plan, copies_of, rooms_of
from compiler.memory.check import verify_plan
from compiler.memory.held import held_bytes
from compiler.memory.loading import Loader
from compiler.memory.plan import CachePages, Loading, MemoryPlan, PlannedScenario, PlannedSystem, Region
from compiler.memory.rooms import CACHES, Tensor, page_sizes
from compiler.schedule import AttentionSchedule, Place, Schedule
from compiler.workload import ExpertsShape, RoutedShape, Workload
from configs.errors import UserError
from configs.model_config import ModelConfig


def plan_of(
    workload: Workload,
    schedules: Mapping[str, Schedule],
    system: System,
    max_context: int | None = None,
    model: ModelConfig | None = None,
) -> MemoryPlan:
    """Return the plan of a design; `model` says how many positions and which window there are, where it is known.

    Raises UserError, with amounts, when the present or the maximum context does not fit.
    """
    window = model.sliding_window if model is not None else None
    positions = model.maximum_context if model is not None else None
    largest = largest_context(workload, schedules, system, window)
    maximum = _maximum_context(workload, max_context, largest, positions)
    roomy = with_room(workload, maximum, window)
    _require_room(roomy, schedules, system, maximum, largest)
    organisation = system.device.organisation
    plan = MemoryPlan(
        scenario=PlannedScenario(
            model=workload.model,
            batch=workload.batch,
            context=workload.context,
            maximum_context=maximum,
            largest_context=largest,
            largest_batch=largest_batch(workload, schedules, system),
        ),
        system=PlannedSystem(
            device=system.device.name,
            devices=system.devices,
            channels=organisation.channels,
            banks=organisation.banks,
            rows=organisation.rows,
            row_bytes=organisation.row_bytes,
        ),
        pages=tuple(_pages(roomy, schedules, system)),
        loadings=tuple(_loadings(roomy, schedules, system)),
        held=tuple(held_bytes(roomy, schedules, system)),
        regions=tuple(_regions(roomy, schedules, system)),
    )
    verify_plan(plan)
    return plan


def _maximum_context(workload: Workload, wanted: int | None, largest: int | None, positions: int | None) -> int:
    """Return the context to keep room for: the one asked for, or the longest that fits and has positions."""
    if wanted is None:
        bounds = [bound for bound in (largest, positions) if bound is not None]
        return max(min(bounds, default=workload.context), workload.context)
    if wanted < workload.context:
        raise UserError(
            where=_where(workload),
            expected=f"at least the context of {workload.context} tokens",
            found=str(wanted),
            way_out="ask for a longer one",
        )
    return wanted


def _require_room(
    workload: Workload, schedules: Mapping[str, Schedule], system: System, maximum: int, largest: int | None
) -> None:
    """Raise UserError, with amounts, when the workload with room for its maximum context does not fit."""
    plan = capacity_plan(workload, schedules, system)
    if not plan.fits:
        fitting = f"{largest} tokens fit: ask for no more, or " if largest else ""
        raise UserError(
            where=_where(workload),
            expected=f"{plan.rows_available} rows of every bank to be enough for {maximum} tokens",
            found=f"{plan.rows_needed} needed",
            way_out=f"{fitting}add devices or take schedules with less padding",
        )


def _where(workload: Workload) -> str:
    return f"memory plan of {workload.model} with batch {workload.batch}, maximum context"


def _regions(workload: Workload, schedules: Mapping[str, Schedule], system: System) -> Iterator[Region]:
    copies, experts = copies_of(workload), _experts_of(workload)
    row = 0
    for shape, rooms in rooms_of(workload, schedules, system):
        for number in range(copies[shape.name]):
            for room in rooms:
                copy = divmod(number, experts[shape.name]) if shape.name in experts else (number,)
                yield Region(shape.name, copy, row, room)
                row += room.rows


def _experts_of(workload: Workload) -> dict[str, int]:
    """Return the experts of each layer by the names of their matrices."""
    mixtures = [shape for shape in workload.shapes if isinstance(shape, ExpertsShape)]
    routed = {shape.linear.name: shape.experts for shape in workload.shapes if isinstance(shape, RoutedShape)}
    return routed | {name: shape.experts for shape in mixtures for name in (shape.gate_up.name, shape.down.name)}


def _pages(workload: Workload, schedules: Mapping[str, Schedule], system: System) -> Iterator[CachePages]:
    copies = copies_of(workload)
    for shape, schedule in _attentions(workload, schedules):
        sizes = attention_geometry(shape, schedule, system.pool)
        token = replace(shape, tokens=1, queries=1)
        for size in page_sizes(shape, schedule, system.pool):
            yield CachePages(
                operator=shape.name,
                size=size,
                copies=copies[shape.name],
                units=shape.units,
                units_per_channel=int(sizes.units_per_channel),
                token_bytes=token.k_bytes if size.tensor is Tensor.KEY else token.v_bytes,
                tokens=shape.tokens,
                room=shape.room,
            )


def _attentions(
    workload: Workload, schedules: Mapping[str, Schedule]
) -> Iterator[tuple[AttentionShape, AttentionSchedule]]:
    """Yield the attention operators on the devices with their schedules."""
    for shape in workload.schedulables:
        match shape, schedules[shape.name]:
            case AttentionShape(), AttentionSchedule(place=Place.PIM) as schedule:
                yield shape, schedule


def _loadings(workload: Workload, schedules: Mapping[str, Schedule], system: System) -> Iterator[Loading]:
    """Yield the loading of everything but caches, then of each cache's tokens."""
    loader, copies = Loader(system), copies_of(workload)
    fixed = [region for region in _regions(workload, schedules, system) if region.room.tensor not in CACHES]
    size, rows = sum(region.room.size.stored for region in fixed), sum(region.room.rows for region in fixed)
    yield loader.weights(size, rows)
    for shape, schedule in _attentions(workload, schedules):
        yield from loader.prefill(shape, schedule, copies[shape.name])
