"""What follows from a memory plan, as lines for a person: rows, padding by cause, growth, next pages, loading times."""

from collections import defaultdict
from collections.abc import Iterator

from compiler.memory.plan import CachePages, Loading, MemoryPlan
from compiler.memory.rooms import RoomBytes

UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
NOTHING = RoomBytes(0, 0, 0, 0, 0)
NS_PER_MS = 1e6


def report_lines(plan: MemoryPlan) -> Iterator[str]:
    """Yield the report, line by line."""
    scenario, system = plan.scenario, plan.system
    total = sum((region.room.size for region in plan.regions), NOTHING)
    several = "s" if system.devices > 1 else ""
    yield "Memory plan: a region has its rows in every bank of every channel. Its split is groups of outputs, or KV"
    yield "heads, x parts of the reduction, or of the tokens: channel = group x parts + part, from 0 of the pool on."
    yield ""
    yield f"system   {system.devices} device{several} {system.device}, {system.pool_channels} channels in the pool"
    yield f"rows     {plan.rows_used} of {system.rows} of every bank taken, {plan.rows_free} free"
    yield (
        f"bytes    {_size(total.stored)} stored, {_size(total.growth)} kept for tokens to come, {_size(total.padding)}"
        f" padding: {_causes(total)}"
    )
    yield from (f"         padding of {name}: {_causes(size)}" for name, size in padded_operators(plan).items())
    yield f"growth   {plan.growth_bytes_per_token} B and {plan.growth_rows_per_token:g} rows of every bank per token"
    yield from (f"pages    {_pages(pages)}" for pages in plan.pages)
    yield f"largest  context {_or_any(scenario.largest_context)}, or batch {_or_any(scenario.largest_batch)}"
    yield from (f"loading  {_time(item)}" for item in plan.loadings)


def padded_operators(plan: MemoryPlan) -> dict[str, RoomBytes]:
    """Return the bytes over all copies of every operator that has padding."""
    sums: defaultdict[str, RoomBytes] = defaultdict(lambda: NOTHING)
    for region in plan.regions:
        sums[region.operator] += region.room.size
    return {name: size for name, size in sums.items() if size.padding}


def _causes(size: RoomBytes) -> str:
    return f"channels {_size(size.channels)}, slots {_size(size.slots)}, rows {_size(size.rows)}"


def _pages(pages: CachePages) -> str:
    """Say how a unit's pages fill: those in use, those reserved, and the contexts at which the next are needed."""
    size, upcoming = pages.size, pages.next_contexts
    heading = f"{pages.operator} {size.tensor}: {pages.used} of {pages.reserved} in use, each {_rows(size.rows)}"
    if not upcoming:
        return f"{heading} for {size.tokens} tokens"
    then = f", then every {size.tokens} up to {upcoming[-1]}" if len(upcoming) > 1 else ""
    return f"{heading} for {size.tokens} tokens; the next at context {upcoming[0]}{then}"


def _time(item: Loading) -> str:
    slower = "link" if item.link_ns >= item.channel_ns else "channels"
    link, channels = item.link_ns / NS_PER_MS, item.channel_ns / NS_PER_MS
    return f"{item.name}: {_size(item.size)}, link {link:.3f} ms, channels {channels:.3f} ms: bound by the {slower}"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _or_any(largest: int | None) -> str:
    return "without end" if largest is None else str(largest)


def _size(count: int) -> str:
    for unit, size in UNITS:
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"
