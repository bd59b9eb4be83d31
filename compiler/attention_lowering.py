"""Attention lowered: append, score and context programs for the channels, softmax and joins for the host.

One block of tokens runs scores, softmax and context in turn. Several blocks form a pipeline: while the host works on
the scores of one, the channels compute those of the next and the context of the one before.

    scores 0 | V append | scores 1 | softmax 0 | context 0 | scores 2 | softmax 1 | context 1 | ... | join
"""

from dataclasses import dataclass
from functools import lru_cache

from compiler.attention import AttentionGeometry, AttentionShape, BusiestDevice, attention_geometry, busiest_device
from compiler.attention_append import AppendPlaces, key_writes, value_writes
from compiler.attention_host import context_sum_ns, host_attention_ns, rounding_ns, softmax_ns
from compiler.emission import Block, plus, repeat, times
from compiler.geometry import Geometry, ceil_div
from compiler.host_cost import host_work_ns
from compiler.kernel_events import read_slots, written_columns
from compiler.kernels import kernel_body, lane_sums_ns, values_of_result
from compiler.matvec import Operands
from compiler.schedule import AttentionSchedule, Place, PoolShape, schedule_text
from configs.device import Host
from configs.number_format import INPUT_BITS
from simulator.isa import Affine, Command, Kind, Program
from simulator.step import HostPhase, Phase, PimPhase

SOON = ()  # what starts as soon as its task may


@lru_cache(maxsize=256)
def _geometry(shape: AttentionShape, schedule: AttentionSchedule, pool: PoolShape) -> AttentionGeometry:
    """Return the geometry of one operator, which every part of its lowering asks for."""
    return attention_geometry(shape, schedule, pool)


@dataclass(frozen=True, slots=True)
class AttentionLowering:
    """Emits the phases of one operator."""

    shape: AttentionShape
    schedule: AttentionSchedule
    pool: PoolShape
    devices: int
    host: Host
    first_row: int = 0

    @property
    def sizes(self) -> AttentionGeometry:
        """The geometry of all kernels."""
        return _geometry(self.shape, self.schedule, self.pool)

    def append_phases(self) -> tuple[Phase, ...]:
        """Write the newest token's K: its columns in one bank of each unit, on the channel that holds the token."""
        if self.schedule.place is Place.HOST:
            shape = self.shape
            width = shape.head_dim + (0 if shape.latent else shape.value_width)
            moved = ceil_div(shape.units * shape.queries * width * shape.storage.bits, 8) * 2
            return (HostPhase("kv append on host", self.shape.name, host_work_ns(self.host, moved, 0), launch=False),)
        append = self._append_phase("k append", self.key_append(), self.shape.head_dim)
        if self.shape.storage.bits == INPUT_BITS:
            return (append,)
        # Part of the host's operator that makes K and V, whose launch is counted there.
        work_ns = float(rounding_ns(self.shape, self.host))
        return (HostPhase("kv rounding", self.shape.name, work_ns, launch=False), append)

    def attend_phases(self) -> tuple[Phase, ...]:
        """Scores, the newest V while the host does its softmax, then contexts and their join where there are parts."""
        if self.schedule.place is Place.HOST:
            work_ns = float(host_attention_ns(self.shape, self.host))
            return (HostPhase("attention on host", self.shape.name, work_ns, launch=True),)
        phases: list[Phase] = []
        scores: list[int] = []
        for block in range(self.sizes.blocks + 1):
            if block < self.sizes.blocks:
                scores.append(len(phases))
                phases.append(self._score_phase(block))
            if block == 0:
                phases.append(self._append_phase("v append", self.value_append(), self.shape.value_width, SOON))
                continue
            after = scores[block - 1]
            if self.pool.runs_microkernels:
                phases.append(self._score_sums_phase(block - 1, after))
                after = len(phases) - 1
            phases.append(self._softmax_phase(block - 1, after))
            phases.append(self._context_phase(block - 1, len(phases) - 1))
        if self.pool.runs_microkernels:
            results = self.shape.vectors * self.shape.head_dim * self.schedule.token_split * self.sizes.blocks
            lanes_ns = float(lane_sums_ns(results, self.pool, self.host))
            phases.append(HostPhase("context lane sums", self.shape.name, lanes_ns, launch=False))
        if self.schedule.token_split * self.sizes.blocks > 1:
            sums_ns = float(context_sum_ns(self.shape, self.schedule.token_split, self.sizes.blocks, self.host))
            phases.append(HostPhase("context sums", self.shape.name, sums_ns, launch=True))
        return tuple(phases)

    def score_program(self, block: int = 0) -> Program:
        """Return the score kernel of a block for every unit of a channel; K regions lie unit after unit."""
        kernel, _ = self.sizes.kernels(block)
        rows = block * self.sizes.block_tokens // (kernel.slots_per_row * self.pool.banks)
        return self._over_units("score", kernel, Affine(self.first_row + rows), self.sizes.key_rows)

    def context_program(self, block: int = 0) -> Program:
        """Return the context kernel of a block for every unit of a channel; V regions lie behind all K regions."""
        _, kernel = self.sizes.kernels(block)
        segments = block * self.sizes.block_tokens // (kernel.segment_columns * self.pool.lanes)
        first_row = Affine(self.first_value_row + segments * kernel.rows_per_segment)
        return self._over_units("context", kernel, first_row, self.sizes.value_rows)

    def key_append(self, part: int | None = None) -> Program:
        """Return the writes of the newest tokens' K; by default on the part that holds the newest, and most of them."""
        return self._program("k append", (Command(Kind.WAIT), *key_writes(self.append_places(part))))

    def value_append(self, part: int | None = None) -> Program:
        """Return the writes of the newest tokens' V, like those of K."""
        writes = value_writes(self.append_places(part), self.values_per_write)
        return self._program("v append", (Command(Kind.WAIT), *writes))

    @property
    def values_per_write(self) -> int:
        """Tokens whose V one write carries: two where a value is half a byte."""
        return max(1, 8 // self.shape.storage.bits)

    @property
    def first_value_row(self) -> int:
        """The row at which the V regions begin, behind all K regions."""
        sizes = self.sizes
        return int(self.first_row + sizes.units_per_channel * sizes.key_rows)

    def append_places(self, part: int | None = None) -> AppendPlaces:
        """Return where a part appends; by default the one that holds the newest token."""
        own = (self.shape.tokens - 1) % self.schedule.token_split if part is None else part
        rows = self.first_row, self.first_value_row
        return AppendPlaces(self.shape, self.schedule, self.pool, self.sizes, *rows, own)

    def _program(self, name: str, body: Block, vectors_per_multiply: int = 1) -> Program:
        per_column = self.sizes.score.packing.per_column
        comment = f"{self.shape.name} {name} {schedule_text(self.schedule)}"
        return Program(body, comment, per_column, vectors_per_multiply)

    def _over_units(self, name: str, kernel: Geometry, first_row: Affine, rows: int) -> Program:
        waits, signals = len(written_columns(kernel)), len(read_slots(kernel))

        def unit(index: Affine, depth: int) -> Block:
            operands = Operands(
                row=plus(first_row, times(index, rows)),
                input_column=times(index, kernel.vectors * kernel.total_columns),
                output=times(index, kernel.output_entries),
                depth=depth,
                wait_event=times(index, waits),
                signal_event=times(index, signals),
            )
            return kernel_body(kernel, operands, self.schedule.preactivate)

        return self._program(name, repeat(self.sizes.units_per_channel, 0, unit), kernel.together)

    def _score_phase(self, block: int) -> PimPhase:
        """Queries go once to the channels that share a unit's tokens."""
        kernel, _ = self.sizes.kernels(block)
        return self._kernel_phase("score", self.score_program(block), kernel, int(self._busiest.query_copies), SOON)

    def _context_phase(self, block: int, after: int) -> PimPhase:
        """Weights go to each channel, its own."""
        _, kernel = self.sizes.kernels(block)
        return self._kernel_phase("context", self.context_program(block), kernel, int(self._busiest.channels), (after,))

    @property
    def _busiest(self) -> BusiestDevice:
        return busiest_device(self.sizes, self.schedule.token_split, self.pool, self.devices)

    def _kernel_phase(
        self, name: str, program: Program, kernel: Geometry, copies: int, after: tuple[int, ...]
    ) -> PimPhase:
        """Chunks are those of the busiest device's link."""
        sizes, value = self.sizes, self.shape.value_bytes
        column = self.pool.lanes * value * copies
        down = tuple(columns * column for columns in written_columns(kernel)) * sizes.units_per_channel
        entry = kernel.reuse * self.pool.banks * values_of_result(self.pool) * value * int(self._busiest.channels)
        up = tuple(slots * entry for slots in read_slots(kernel)) * sizes.units_per_channel
        name = f"{self.shape.name} {name}"
        return PimPhase(name, self.shape.name, program, down, up, sizes.active_channels, after)

    def _tokens_of(self, block: int) -> int:
        first = block * self.sizes.block_tokens * self.schedule.token_split
        return int(min(self.sizes.block_tokens * self.schedule.token_split, self.shape.tokens - first))

    def _score_sums_phase(self, block: int, after: int) -> HostPhase:
        """Add the lanes of scores: part of the host's softmax, whose launch is counted there."""
        work_ns = float(lane_sums_ns(self.shape.vectors * self._tokens_of(block), self.pool, self.host))
        return HostPhase("score lane sums", self.shape.name, work_ns, launch=False, after=(after,))

    def _softmax_phase(self, block: int, after: int) -> HostPhase:
        work_ns = float(softmax_ns(self.shape, self.host, self._tokens_of(block)))
        return HostPhase("softmax", self.shape.name, work_ns, launch=True, after=(after,))

    def _append_phase(self, name: str, program: Program, width: int, after: tuple[int, ...] | None = None) -> PimPhase:
        bits = self.shape.units * self.shape.queries * width * self.shape.storage.bits
        split = self.schedule.token_split
        fullest = ceil_div(self.shape.queries, split)  # tokens that the program appends; other parts hold fewer
        active = self.sizes.active_channels * self.shape.queries / (split * fullest)
        moved = ceil_div(bits, 8 * self.devices)
        return PimPhase(f"{self.shape.name} {name}", self.shape.name, program, (moved,), (), active, after)
