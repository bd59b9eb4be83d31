"""The memory plan of a design: which rows of which channels every tensor has, how caches grow, how long loading takes.

Made by `compiler.memory.planner`, checked by `compiler.memory.check`, written and read back by
`compiler.memory.text`. All banks and channels are in
lock-step, so that a region takes the same rows in every bank of every channel of the pool, and a row number says all.

Channels of a pool of several devices are numbered per region: those of matrices and of the embedding table are dealt to
the devices in turn, so that a device needs few parts of an input; those of caches in blocks, so that the channels of a
KV head stand together (`home`).

Every unit (KV head of a sequence) of every copy of an attention operator has a part of its K and its V region, as many
rows as the maximum context takes, unit after unit. It fills page by page: the rows of one `PageSize`. No page ever
moves, and the next one is at a place that is known now.
"""

from dataclasses import dataclass
from enum import StrEnum

from compiler.memory.rooms import CACHES, PageSize, Room


@dataclass(frozen=True, slots=True)
class PlannedScenario:
    """What the plan has room for, and what would still fit with these schedules: None where rows never end.

    `largest_context` is for this batch, `largest_batch` for this context.
    """

    model: str
    batch: int
    context: int
    maximum_context: int
    largest_context: int | None
    largest_batch: int | None


@dataclass(frozen=True, slots=True)
class PlannedSystem:
    """What the plan is for: identical devices, of which each has so many channels of banks of rows."""

    device: str
    devices: int
    channels: int
    banks: int
    rows: int
    row_bytes: int

    @property
    def pool_channels(self) -> int:
        """Channels of all devices."""
        return self.devices * self.channels

    @property
    def bytes_of_a_row(self) -> int:
        """Bytes of one row of every bank of every channel of all devices."""
        return self.pool_channels * self.banks * self.row_bytes


@dataclass(frozen=True, slots=True)
class Region:
    """One copy of a tensor of an operator: rows `first_row` to `first_row + room.rows` of every bank.

    `copy` counts the operator's copies in program order, which is the layer where each layer has one; a mixture's
    matrices have the expert behind it.
    """

    operator: str
    copy: tuple[int, ...]
    first_row: int
    room: Room

    @property
    def name(self) -> str:
        """The name that errors and text use: q_proj[3].weight, experts_down[3,7].weight, attention[3].key."""
        matrix = f"_{self.room.matrix}" if self.room.matrix else ""
        return f"{self.operator}[{','.join(map(str, self.copy))}].{self.room.tensor}{matrix}"

    @property
    def end_row(self) -> int:
        """The row behind the last."""
        return self.first_row + self.room.rows

    @property
    def channels(self) -> int:
        """Channels that hold a part of the tensor, from channel 0 of the pool on."""
        return self.room.groups * self.room.parts


@dataclass(frozen=True, slots=True)
class CachePages:
    """How one cache tensor of an operator fills, alike in all `units` of all `copies`, `units_per_channel` in each one.

    `tokens` are there now, `room` is reserved; `token_bytes` is what one token adds to all units of one copy.
    """

    operator: str
    size: PageSize
    copies: int
    units: int
    units_per_channel: int
    token_bytes: int
    tokens: int
    room: int

    @property
    def used(self) -> int:
        """Pages of a unit that hold tokens."""
        return -(-self.tokens // self.size.tokens)

    @property
    def reserved(self) -> int:
        """Pages of a unit that have a place."""
        return -(-self.room // self.size.tokens)

    @property
    def next_contexts(self) -> range:
        """The contexts at which every unit needs its next page: the newest token is the first in it."""
        return range(self.used * self.size.tokens + 1, self.room + 1, self.size.tokens)


class Place(StrEnum):
    """What holds something that takes no rows: the controllers of the devices, or the host's memory."""

    CONTROLLER = "controller"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes outside the arrays: inputs and results of one phase, or tensors of an operator that the host runs.

    `size` is over all devices and copies, at the maximum context.
    """

    name: str
    what: str
    place: Place
    size: int


@dataclass(frozen=True, slots=True)
class Loading:
    """How long it takes to fill something: bytes over the links, commands in the channels; the slower one counts.

    `size` is over all devices; cycles are those of one channel, all channels being in lock-step.
    """

    name: str
    size: int
    link_ns: float
    channel_cycles: int
    channel_ns: float

    @property
    def total_ns(self) -> float:
        """Time until everything is in its place; link and channels overlap."""
        return max(self.link_ns, self.channel_ns)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Everything that has a place."""

    scenario: PlannedScenario
    system: PlannedSystem
    pages: tuple[CachePages, ...]
    loadings: tuple[Loading, ...]
    held: tuple[Held, ...]
    regions: tuple[Region, ...]

    @property
    def rows_used(self) -> int:
        """Rows of every bank that regions take."""
        return sum(region.room.rows for region in self.regions)

    @property
    def rows_free(self) -> int:
        """Rows of every bank that no region takes."""
        return self.system.rows - self.rows_used

    @property
    def growing(self) -> tuple[CachePages, ...]:
        """The cache tensors that a token makes longer; a full sliding window only changes."""
        return tuple(pages for pages in self.pages if pages.tokens == self.scenario.context)

    @property
    def growth_bytes_per_token(self) -> int:
        """Bytes that one more token of every sequence adds."""
        return sum(pages.copies * pages.token_bytes for pages in self.growing)

    @property
    def growth_rows_per_token(self) -> float:
        """Rows of every bank that one more token of every sequence takes, averaged over pages."""
        return sum(
            pages.copies * pages.units_per_channel * pages.size.rows / pages.size.tokens for pages in self.growing
        )


def home(plan: MemoryPlan, region: Region, channel: int) -> tuple[int, int]:
    """Return the device, and the channel of that device, that a channel of the pool is for a region."""
    system = plan.system
    if region.room.tensor in CACHES:
        return divmod(channel, system.channels)
    number, device = divmod(channel, system.devices)
    return device, number


def page_rows(region: Region, pages: CachePages, unit: int, page: int) -> range:
    """Return the rows of one page of a region's unit, which counts within its channel."""
    first = region.first_row + unit * (region.room.rows // pages.units_per_channel) + page * pages.size.rows
    return range(first, first + pages.size.rows)
