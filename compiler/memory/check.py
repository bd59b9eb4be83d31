"""What every memory plan keeps, one read from a file included: no row twice, none outside the banks, bytes add up."""

from compiler.memory.plan import MemoryPlan, PlannedSystem, Region
from configs.errors import UserError


def verify_plan(plan: MemoryPlan, source: str = "memory plan") -> None:
    """Raise UserError, with amounts, at a region that is wrong by itself or shares a row with another; names both."""
    last: Region | None = None
    for region in sorted(plan.regions, key=lambda item: (item.first_row, item.end_row)):
        _verify_region(region, plan.system, source)
        if last is not None and region.first_row < last.end_row:
            shared = f"rows {region.first_row} to {min(region.end_row, last.end_row) - 1} in both"
            raise _error(f"{source}, {last.name} and {region.name}", "regions without a common row", shared)
        last = region


def _verify_region(region: Region, system: PlannedSystem, source: str) -> None:
    where, room = f"{source}, {region.name}", region.room
    if room.rows <= 0 or region.first_row < 0 or region.end_row > system.rows:
        found = f"{room.rows} rows from row {region.first_row} on"
        raise _error(where, f"one or more of the rows 0 to {system.rows - 1}", found)
    if min(getattr(room.size, name) for name in type(room.size).__slots__) < 0:
        raise _error(where, "bytes of 0 or more", str(room.size))
    if room.size.total != room.rows * system.bytes_of_a_row:
        expected = f"{room.rows * system.bytes_of_a_row} B, as {room.rows} rows have in all channels"
        raise _error(where, expected, f"{room.size.total} B")
    if region.channels > system.pool_channels:
        raise _error(where, f"at most {system.pool_channels} channels", str(region.channels))


def _error(where: str, expected: str, found: str) -> UserError:
    return UserError(where=where, expected=expected, found=found, way_out="correct the plan, or have it made anew")
