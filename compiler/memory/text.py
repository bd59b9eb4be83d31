"""The text form of a memory plan: `parse_plan(print_plan(plan)) == plan`; tables as in `compiler.memory.table_text`.

What follows from the tables stands before them in comments (`compiler.memory.report`) and is not read back.
"""

import re

from compiler.memory.check import verify_plan
from compiler.memory.plan import (
    CachePages,
    Held,
    Loading,
    MemoryPlan,
    Place,
    PlannedScenario,
    PlannedSystem,
    Region,
)
from compiler.memory.report import report_lines
from compiler.memory.rooms import PageSize, Room, RoomBytes, Tensor
from compiler.memory.table_text import Cell, Line, Section, print_section, section_reader

COPY = re.compile(r"(0|[1-9]\d{0,8})(,(0|[1-9]\d{0,8}))*", re.ASCII)
TENSOR = re.compile(rf"({'|'.join(Tensor)})(?:_([1-9]\d{{0,5}}))?", re.ASCII)
SPLIT = re.compile(r"([1-9]\d{0,8})x([1-9]\d{0,8})", re.ASCII)


def print_plan(plan: MemoryPlan) -> str:
    """Return the text of a plan, one region a line."""
    # A name may hold the end of a line.
    report = "\n".join(f"# {' '.join(line.splitlines())}".rstrip() for line in report_lines(plan))
    sections = (
        print_section(SCENARIO, (plan.scenario,)),
        print_section(SYSTEM, (plan.system,)),
        print_section(PAGES, plan.pages),
        print_section(LOADINGS, plan.loadings),
        print_section(HELD, plan.held),
        print_section(REGIONS, plan.regions),
    )
    return "\n\n".join((report, *("\n".join(lines) for lines in sections))) + "\n"


def parse_plan(text: str, source: str = "memory plan") -> MemoryPlan:
    """Return the plan that `text` denotes; raises UserError, with file and line, for a text or a plan that is wrong."""
    reader = section_reader(text, source)
    plan = MemoryPlan(
        scenario=reader.read_one(SCENARIO),
        system=reader.read_one(SYSTEM),
        pages=reader.read(PAGES),
        loadings=reader.read(LOADINGS),
        held=reader.read(HELD),
        regions=reader.read(REGIONS),
    )
    reader.end()
    verify_plan(plan, source)
    return plan


def _scenario_cells(scenario: PlannedScenario) -> tuple[Cell, ...]:
    largest = scenario.largest_context, scenario.largest_batch
    return scenario.model, scenario.batch, scenario.context, scenario.maximum_context, *largest


def _read_scenario(line: Line) -> PlannedScenario:
    name, (batch, context, maximum) = line.name(), (line.integer() for _ in range(3))
    return PlannedScenario(name, batch, context, maximum, line.integer_or_nothing(), line.integer_or_nothing())


def _system_cells(system: PlannedSystem) -> tuple[Cell, ...]:
    return system.device, system.devices, system.channels, system.banks, system.rows, system.row_bytes


def _read_system(line: Line) -> PlannedSystem:
    return PlannedSystem(line.name(), *(line.integer() for _ in range(5)))


def _pages_cells(pages: CachePages) -> tuple[Cell, ...]:
    size, units = pages.size, (pages.copies, pages.units, pages.units_per_channel)
    return pages.operator, str(size.tensor), size.rows, size.tokens, *units, pages.token_bytes, pages.tokens, pages.room


def _read_pages(line: Line) -> CachePages:
    operator, tensor = line.name(), Tensor(line.one_of(tuple(Tensor)))
    size = PageSize(tensor, line.positive(), line.positive())
    return CachePages(
        operator, size, line.integer(), line.integer(), line.positive(), *(line.integer() for _ in range(3))
    )


def _loading_cells(item: Loading) -> tuple[Cell, ...]:
    return item.name, item.size, item.link_ns, item.channel_cycles, item.channel_ns


def _read_loading(line: Line) -> Loading:
    return Loading(line.name(), line.integer(), line.number(), line.integer(), line.number())


def _held_cells(held: Held) -> tuple[Cell, ...]:
    return held.name, held.what, str(held.place), held.size


def _read_held(line: Line) -> Held:
    return Held(line.name(), line.name(), Place(line.one_of(tuple(Place))), line.integer())


def _region_cells(region: Region) -> tuple[Cell, ...]:
    room, size = region.room, region.room.size
    tensor = f"{room.tensor}_{room.matrix}" if room.matrix else str(room.tensor)
    copy, split = ",".join(map(str, region.copy)), f"{room.groups}x{room.parts}"
    padding = size.channels, size.slots, size.rows
    return region.first_row, room.rows, region.operator, copy, tensor, split, size.stored, size.growth, *padding


def _read_region(line: Line) -> Region:
    first_row, rows, operator = line.integer(), line.integer(), line.name()
    copy = tuple(map(int, line.match(COPY, "numbers joined by commas")[0].split(",")))
    tensor, matrix = line.match(TENSOR, f"one of {', '.join(Tensor)}, or weight_1 and so on").groups()
    groups, parts = line.match(SPLIT, "GROUPSxPARTS").groups()
    size = RoomBytes(*(line.integer() for _ in range(5)))
    return Region(
        operator, copy, first_row, Room(Tensor(tensor), int(matrix or 0), rows, int(groups), int(parts), size)
    )


SCENARIO = Section(
    "scenario",
    ("model", "batch", "context", "maximum_context", "largest_context", "largest_batch"),
    _scenario_cells,
    _read_scenario,
)
SYSTEM = Section("system", ("device", "devices", "channels", "banks", "rows", "row_bytes"), _system_cells, _read_system)
PAGES = Section(
    "pages",
    (
        *("operator", "tensor", "page_rows", "page_tokens", "copies", "units", "units_per_channel"),
        *("token_bytes", "tokens", "room_tokens"),
    ),
    _pages_cells,
    _read_pages,
)
LOADINGS = Section(
    "loading", ("what", "bytes", "link_ns", "channel_cycles", "channel_ns"), _loading_cells, _read_loading
)
HELD = Section("held", ("operator", "what", "place", "bytes"), _held_cells, _read_held)
REGIONS = Section(
    "regions",
    (
        *("first_row", "rows", "operator", "copy", "tensor", "split"),
        *("stored_bytes", "growth_bytes", "channel_padding", "slot_padding", "row_padding"),
    ),
    _region_cells,
    _read_region,
)
