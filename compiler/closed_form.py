"""A task under many schedules on many devices at once: legality, rows, commands, lower bound, without any Program.

The schedule records and the device table hold arrays, one entry per candidate. What these forms say of commands and
rows is exact (tested against lowered programs); the time is a lower bound of what the simulator finds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.attention import AttentionGeometry, AttentionShape, attention_geometry, busiest_device
from compiler.attention_host import context_sum_ns, host_attention_ns, rounding_ns, softmax_ns
from compiler.chain import ChainParts, chain_cycles, chains_in_turn
from compiler.device_table import DeviceTable
from compiler.ends import kernel_ends
from compiler.geometry import Geometry, KernelCounts, kernel_counts
from compiler.hbm_pim.geometry import microkernel_commands
from compiler.host_cost import mixed_work_ns
from compiler.kernels import chain_of, lane_sums_ns, values_of_result
from compiler.linear import (
    LinearShape,
    host_linear_ns,
    input_parts,
    kernel_outputs,
    linear_geometry,
    reduction_ns,
    scale_ns,
)
from compiler.schedule import AttentionSchedule, LinearSchedule, Place
from configs.device import Host, Link
from configs.microkernel_units import BANKS_OF_UNIT, REGISTERS
from configs.number_format import INPUT_BITS
from simulator.isa import CODE_OF, KINDS, Kind

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinkFigures:
    """What a link takes: floats, or arrays with one entry per candidate."""

    bandwidth_gb_per_s: Any
    latency_ns: Any


@dataclass(frozen=True, slots=True)
class SystemCosts:
    """Host, link and clock in one place: what turns bytes and operations into device cycles."""

    host: Host
    link: Link | LinkFigures
    cycle_ps: float
    devices: int

    def cycles(self, nanoseconds: Any) -> Any:
        """Convert ns to whole cycles, rounded up."""
        return np.ceil(np.asarray(nanoseconds) * 1000 / self.cycle_ps)

    def transfer(self, moved_bytes: Any) -> Any:
        """Return the cycles that bytes occupy one direction of a link, not rounded: a bound for any chunks."""
        return moved_bytes / self.link.bandwidth_gb_per_s * 1000 / self.cycle_ps

    def paced(self, slowdown: Any) -> "SystemCosts":
        """Return the costs when the host sends and takes chunks `slowdown` times slower than the link allows."""
        return replace(self, link=LinkFigures(self.link.bandwidth_gb_per_s / slowdown, self.link.latency_ns))

    @property
    def latency(self) -> Any:
        """Cycles a transfer takes on top of its bytes."""
        return self.cycles(self.link.latency_ns)

    def launched(self, nanoseconds: Any) -> Any:
        """Return the cycles of host work that starts on arrived data."""
        return self.cycles(nanoseconds + self.host.launch_ns)


@dataclass(frozen=True, slots=True)
class TaskForm:
    """One task under n candidates: float or int arrays of length n.

    `commands` float[n, kinds] over all channels of the system, `bound` cycles of one occurrence, and where they come
    from: `parts` by cause, for the cost model.
    """

    commands: Floats
    bound: Floats
    parts: Mapping[str, Floats]


def linear_form(shape: LinearShape, schedule: LinearSchedule, table: DeviceTable, costs: SystemCosts) -> TaskForm:
    """Return the closed form of a linear operator; `merged` is an array of bools."""
    merged = _linear_passes(shape, schedule, table, costs, kernel_outputs(shape, True))
    if len(shape.parts) > 1:
        merged = _choose(schedule.merged, merged, _linear_passes(shape, schedule, table, costs, shape.parts))
    return _on_host_where(schedule.place, merged, costs.launched(host_linear_ns(shape, costs.host)))


def _linear_passes(
    shape: LinearShape, schedule: LinearSchedule, table: DeviceTable, costs: SystemCosts, passes: tuple[int, ...]
) -> TaskForm:
    forms = [_linear_pass(shape, outputs, schedule, table, costs) for outputs in passes]
    split = schedule.reduction_split
    results = shape.outputs * shape.vectors * split
    lanes = costs.cycles(lane_sums_ns(results, table.pool, costs.host))
    finished = costs.cycles(scale_ns(shape, costs.host)) if shape.finished_by_host else 0.0
    sums = lanes + np.where(split > 1, costs.launched(reduction_ns(shape, split, costs.host)), finished)
    total = forms[0]
    for form in forms[1:]:
        total = _add(total, form)
    if shape.heads > 1:
        total = _times(total, shape.heads)
    return _add(total, TaskForm(np.zeros_like(total.commands), sums, {"host": sums}))


def _linear_pass(
    shape: LinearShape, outputs: int, schedule: LinearSchedule, table: DeviceTable, costs: SystemCosts
) -> TaskForm:
    sizes = linear_geometry(shape, outputs, schedule, table.pool)
    chain = chain_of(sizes, table.timing, schedule.preactivate)
    copies = input_parts(schedule.reduction_split, costs.devices)
    down = shape.vectors * sizes.total_columns * table.pool.lanes * shape.value_bytes * copies
    entries = shape.vectors * sizes.slots * table.pool.banks * values_of_result(table.pool)
    up = entries * shape.value_bytes * (table.pool.channels // costs.devices)
    ends = kernel_ends(sizes, table.timing, schedule.preactivate, table.pool.latched)
    column = table.pool.lanes * shape.value_bytes * copies
    slot = sizes.reuse * table.pool.banks * values_of_result(table.pool) * shape.value_bytes
    slot = slot * (table.pool.channels // costs.devices)
    apart = _Apart(
        costs.transfer(ends.first_columns * column), ends.first_signal, costs.transfer(ends.last_slots * slot)
    )
    bound, parts = _pass_bound(chain, down, up, apart, table, costs)
    commands = _kernel_commands(sizes, schedule.preactivate, table.pool.channels)
    return TaskForm(commands, bound, parts)


@dataclass(frozen=True, slots=True)
class _Apart:
    """Cycles of what goes before and behind everything else: first input, way to the first signal, last results."""

    first_input: Any
    first_signal: Any
    last_results: Any


def _pass_bound(
    chain: ChainParts, down: Any, up: Any, apart: _Apart, table: DeviceTable, costs: SystemCosts
) -> tuple[Floats, dict[str, Floats]]:
    """Join channel and link: both directions' latency, and whichever of the channel and either direction takes longer.

    The channel starts behind the first input and ends before the last results; results go up from the first signal on.
    """
    channel = chain_cycles(chain, table.timing)
    through_channel = apart.first_input + channel + apart.last_results
    through_results = apart.first_input + apart.first_signal + costs.transfer(up)
    through_inputs = costs.transfer(down) + apart.last_results
    bound = 2 * costs.latency + np.maximum(np.maximum(through_channel, through_results), through_inputs)
    return bound, {
        "channel": channel,
        "multiply": chain.multiply,
        "rows": chain.rows,
        "boundaries": chain.boundaries,
        "registers": chain.registers,
        "activation_limit": chain.activation_limit,
        "down": costs.transfer(down),
        "up": costs.transfer(up),
        "host": np.zeros(len(bound)),
    }


def attention_form(
    shape: AttentionShape, schedule: AttentionSchedule, table: DeviceTable, costs: SystemCosts
) -> TaskForm:
    """Return the closed form of an attention operator with its appends.

    One block goes through scores, softmax and contexts in turn. Several are bounded by the busiest of channel, link and
    host, and by the way of the first scores to the last context.
    """
    sizes = attention_geometry(shape, schedule, table.pool)
    busy = busiest_device(sizes, schedule.token_split, table.pool, costs.devices)
    scores = _Blocks(sizes.score, sizes.last_score, busy.query_copies, busy.channels)
    contexts = _Blocks(sizes.context, sizes.last_context, busy.channels, busy.channels)
    first, _ = _blocks_bound(scores, sizes, np.minimum(sizes.blocks - 1, 1), shape, schedule, table, costs)
    score_bound, score_parts = _blocks_bound(scores, sizes, sizes.blocks, shape, schedule, table, costs)
    context_bound, context_parts = _blocks_bound(contexts, sizes, sizes.blocks, shape, schedule, table, costs)
    parts = {name: score_parts[name] + context_parts[name] for name in score_parts}
    split = schedule.token_split
    block_ns = _scores_ns(shape, table, costs, np.minimum(sizes.block_tokens * split, shape.tokens))
    last_ns = _scores_ns(shape, table, costs, shape.tokens - (sizes.blocks - 1) * sizes.block_tokens * split)
    softmax = (sizes.blocks - 1) * costs.launched(block_ns) + costs.launched(last_ns)
    join_ns = context_sum_ns(shape, split, sizes.blocks, costs.host)
    join = np.where(split * sizes.blocks > 1, costs.launched(join_ns), 0.0)
    results = shape.vectors * shape.head_dim * split * sizes.blocks
    join = join + costs.cycles(lane_sums_ns(results, table.pool, costs.host))
    in_turn = score_bound + softmax + context_bound
    busiest = np.max([parts["channel"], parts["up"], parts["down"], softmax], axis=0) + 2 * costs.latency
    through = np.maximum(busiest, first + costs.launched(block_ns) + context_bound)
    bound = np.where(sizes.blocks > 1, through, in_turn) + join
    rounding = costs.cycles(rounding_ns(shape, costs.host)) if shape.storage.bits < INPUT_BITS else 0.0
    commands = _attention_commands(sizes, schedule.preactivate) + _append_commands(shape, schedule, sizes)
    form = TaskForm(commands, bound + rounding, parts | {"host": softmax + join + rounding})
    return _on_host_where(schedule.place, form, costs.launched(host_attention_ns(shape, costs.host)))


def _scores_ns(shape: AttentionShape, table: DeviceTable, costs: SystemCosts, tokens: Any) -> Any:
    """Return the host's time for the scores of so many tokens: their lanes and the softmax."""
    return softmax_ns(shape, costs.host, tokens) + lane_sums_ns(shape.vectors * tokens, table.pool, costs.host)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The kernels of all blocks but the last, and of the last; copies of inputs and results that cross a link."""

    full: Geometry
    last: Geometry
    down_copies: Any
    up_copies: Any


def _blocks_bound(
    kernels: _Blocks,
    sizes: AttentionGeometry,
    blocks: Any,
    shape: AttentionShape,
    schedule: AttentionSchedule,
    table: DeviceTable,
    costs: SystemCosts,
) -> tuple[Floats, dict[str, Floats]]:
    """Bound the first so many blocks of one kernel for all units of a channel."""
    lasts = np.where(blocks == sizes.blocks, 1, 0)
    repeats = ((kernels.full, blocks - lasts), (kernels.last, lasts))
    units = sizes.units_per_channel
    chain = chains_in_turn(
        [(chain_of(kernel, table.timing, schedule.preactivate), units * count) for kernel, count in repeats]
    )
    lanes = table.pool.lanes * shape.value_bytes
    banks = table.pool.banks * values_of_result(table.pool) * shape.value_bytes
    down = sum(units * count * kernel.vectors * kernel.total_columns * lanes for kernel, count in repeats)
    up = sum(units * count * kernel.vectors * kernel.slots * banks for kernel, count in repeats)
    ends = kernel_ends(kernels.full, table.timing, schedule.preactivate, table.pool.latched)
    last = kernel_ends(kernels.last, table.timing, schedule.preactivate, table.pool.latched)
    read = np.minimum(ends.last_slots * kernels.full.reuse, last.last_slots * kernels.last.reuse)
    some = np.where(blocks > 0, 1, 0)
    apart = _Apart(
        some * costs.transfer(ends.first_columns * lanes * kernels.down_copies),
        some * ends.first_signal,
        some * costs.transfer(read * banks * kernels.up_copies),
    )
    down, up = down * kernels.down_copies, up * kernels.up_copies
    return _pass_bound(chain, down, up, apart, table, costs)


def _attention_commands(sizes: AttentionGeometry, preactivate: Any) -> Floats:
    """Commands of all score and context kernels over all channels."""
    units = sizes.units_per_channel * sizes.active_channels
    full = _kernel_commands(sizes.score, preactivate, units) + _kernel_commands(sizes.context, preactivate, units)
    last = _kernel_commands(sizes.last_score, preactivate, units)
    last = last + _kernel_commands(sizes.last_context, preactivate, units)
    return np.asarray(sizes.blocks - 1)[..., None] * full + last


def _append_commands(shape: AttentionShape, schedule: AttentionSchedule, sizes: AttentionGeometry) -> Floats:
    """K: one row of one bank per unit; V: every slot of every bank per unit; on the channel that holds the token."""
    context, score = sizes.last_context, sizes.last_score
    if score.runs_microkernels:
        return _microkernel_append_commands(shape, schedule, context)
    one = np.ones(np.broadcast(context.slots, score.total_columns).shape)
    commands = np.zeros((*one.shape, len(KINDS)))
    for kind, count in (
        (Kind.ACT, one),
        (Kind.PRE, one),
        (Kind.WR, score.total_columns // score.packing.per_column),
        (Kind.ACT16, context.slots),
        (Kind.WRA16, context.slots),
    ):
        commands[..., CODE_OF[kind]] = shape.units * shape.queries * count
    return commands


def _microkernel_append_commands(shape: AttentionShape, schedule: AttentionSchedule, context: Geometry) -> Floats:
    """K: an even and an odd row of one unit; V: the columns of the newest tokens in one bank of every unit.

    Newest tokens of a part may share a column; each is counted as if it did not where there are several.
    """
    rows = BANKS_OF_UNIT + context.groups * context.banks + 0 * np.asarray(schedule.token_split)
    columns = REGISTERS + context.slots * context.banks + 0 * rows
    tokens = shape.units * shape.queries
    return _by_kind({Kind.ACT: tokens * rows, Kind.PRE: tokens * rows, Kind.WR: tokens * columns})


def _kernel_commands(sizes: Geometry, preactivate: Any, channels: Any) -> Floats:
    if sizes.runs_microkernels:
        by_kind = microkernel_commands(sizes, preactivate)
        return _by_kind({kind: count * channels for kind, count in by_kind.items()})
    return _lockstep_commands(kernel_counts(sizes), channels)


def _by_kind(counts: Mapping[Kind, Any]) -> Floats:
    commands = np.zeros((*np.broadcast(*counts.values()).shape, len(KINDS)))
    for kind, count in counts.items():
        commands[..., CODE_OF[kind]] = count
    return commands


def _lockstep_commands(counts: KernelCounts, channels: Any) -> Floats:
    n = np.broadcast(counts.mac, channels).shape
    commands = np.zeros((*n, len(KINDS)))
    latched = np.asarray(counts.latch) > 0
    for kind, count in (
        (Kind.ACT16, counts.activate),
        (Kind.PREA, np.where(latched, 0, counts.activate)),
        (Kind.LATCH16, counts.latch),
        (Kind.MAC16, np.where(latched, 0, counts.mac)),
        (Kind.MACL16, np.where(latched, counts.mac, 0)),
        (Kind.SCALE16, counts.scale),
        (Kind.WRGB, counts.buffer_write),
        (Kind.WRMAC16, counts.register_write),
        (Kind.RDMAC16, counts.register_read),
        (Kind.TMOD, counts.mode_change),
    ):
        commands[..., CODE_OF[kind]] = count * channels
    return commands


def _add(left: TaskForm, right: TaskForm) -> TaskForm:
    names = {**left.parts, **right.parts}
    nothing = np.zeros(1)
    parts = {name: left.parts.get(name, nothing) + right.parts.get(name, nothing) for name in names}
    return TaskForm(left.commands + right.commands, left.bound + right.bound, parts)


def _times(form: TaskForm, count: int) -> TaskForm:
    parts = {name: count * values for name, values in form.parts.items()}
    return TaskForm(count * form.commands, count * form.bound, parts)


def _choose(condition: Any, yes: TaskForm, no: TaskForm) -> TaskForm:
    pick = np.asarray(condition, dtype=bool)
    return TaskForm(
        np.where(pick[:, None], yes.commands, no.commands),
        np.where(pick, yes.bound, no.bound),
        {name: np.where(pick, yes.parts[name], no.parts[name]) for name in yes.parts},
    )


def _on_host_where(place: Any, form: TaskForm, host_cycles: Any) -> TaskForm:
    """On the host a task takes no commands, and exactly the host's time."""
    on_host = np.asarray(place == Place.HOST)
    parts = {name: np.where(on_host, 0.0, values) for name, values in form.parts.items()}
    parts["host"] = np.where(on_host, host_cycles, form.parts["host"])
    return TaskForm(
        np.where(on_host[:, None], 0.0, form.commands),
        np.where(on_host, host_cycles, form.bound),
        parts,
    )


def host_occurrence_cycles(
    moved_bytes: int, operations: float, costs: SystemCosts, matrix_operations: float = 0
) -> float:
    """Return the cycles of one operator that always runs on the host."""
    return float(costs.launched(mixed_work_ns(costs.host, moved_bytes, operations, matrix_operations)))
