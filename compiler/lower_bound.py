"""The lower bound of a task on a device over all its schedules (not of one schedule: that is `compiler.closed_form`).

For every way to deal the task over channels the bound is the largest, over resources, of the compulsory work plus the
compulsory first fill and last read-out; of the ways the cheapest counts. Dealt alike means: every output is spread over
`split` channels, each with a part of the inputs, and all such groups of channels take equally many outputs (for
attention: channels that share the tokens of a KV head). Then some bank has at least

    ceil(outputs x split / (channels x banks)) outputs of ceil(inputs / split) inputs each,

whatever else the program does. Its channel is held by `compiler.channel_bound`. Resources, each with both trips over
the link, the first column's transfer and the last result's:

    units, rows        multiplies alone; with row switches
    channel            with register mode and refresh, all in series
    command bus, data bus, dispatcher
    link down, link up every input once per device that needs it, every result once
    host               additions of parts, scales, softmax

A task placed on the host takes exactly `host_cycles`; the bound of the task is the smaller of both. The raw bounds
count nothing but rows (each by its shortest period) or stored bytes at the bandwidth of all banks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.attention import AttentionShape
from compiler.attention_host import context_sum_ns, host_attention_ns, softmax_ns
from compiler.chain import latch_period
from compiler.channel_bound import ChannelBound, Work, channel_bound
from compiler.closed_form import SystemCosts
from compiler.device_table import DeviceTable
from compiler.geometry import ceil_div
from compiler.hbm_pim.bound import microkernel_bound, microkernel_refresh_cycles
from compiler.linear import LinearShape, host_linear_ns, reduction_ns, scale_ns
from compiler.refresh_bound import refresh_cycles
from compiler.schedule import PoolShape
from configs.number_format import INPUT_BITS, Storage, accesses_per_column
from simulator.instructions import MOST_COMMANDS_PER_INSTRUCTION

HOST_PLACE = "place on the host"


@dataclass(frozen=True, slots=True)
class LowerBound:
    """Bounds in cycles, one entry per device; `resources` are those of the best split of a task on the units."""

    resources: Mapping[str, Any]
    split: Any
    host_cycles: Any
    raw_row_cycles: Any
    raw_bandwidth_cycles: Any

    @property
    def pim_cycles(self) -> Any:
        """The bound of the task on the units."""
        return np.max(list(self.resources.values()), axis=0)

    @property
    def cycles(self) -> Any:
        """The bound of the task wherever it is placed."""
        return np.minimum(self.pim_cycles, self.host_cycles)

    def binding(self, index: int = 0) -> str:
        """Return the resource that binds on one device, of equal ones the first, or that the host is cheaper."""
        if np.ravel(self.host_cycles)[index] < np.ravel(self.pim_cycles)[index]:
            return HOST_PLACE
        return max(self.resources, key=lambda name: float(np.ravel(self.resources[name])[index]))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One split: where it is possible, and its resources."""

    split: int
    possible: Any
    resources: dict[str, Any]


def linear_lower_bound(
    shape: LinearShape, table: DeviceTable, costs: SystemCosts, since_refresh: Any = None
) -> LowerBound:
    """Return the bounds of a linear operator.

    `since_refresh` is how many cycles before its start a refresh fell due: 0 for a step of this operator alone.
    """
    pool = table.pool
    splits = _splits(pool, shape.inputs)
    candidates = [_linear_candidate(shape, split, table, costs, since_refresh) for split in splits]
    whole = _linear_work(shape, 1, pool)
    row_cycles = whole.rows * _row_period(shape.storage, table)
    accesses = shape.weight_bytes * 8 / (pool.channels * pool.banks * pool.lanes * INPUT_BITS)
    raw_bandwidth = accesses * table.timing["nCCDMAC"]
    host = costs.launched(host_linear_ns(shape, costs.host))
    return _best(candidates, host, row_cycles, raw_bandwidth)


def _splits(pool: PoolShape, most: int) -> list[int]:
    """Return every split that leaves none of some device's channels over."""
    counts = {int(count) for count in np.ravel(pool.channels)} or {1}
    largest = min(max(counts), max(most, 1))
    return [split for split in range(1, largest + 1) if any(count % split == 0 for count in counts)]


def _linear_work(shape: LinearShape, split: int, pool: PoolShape) -> Work:
    # Heads have inputs of their own; taken as one matrix with common inputs, they need no more than they do.
    outputs = ceil_div(ceil_div(shape.heads * shape.outputs, np.maximum(pool.channels // split, 1)), pool.banks)
    inputs = ceil_div(ceil_div(shape.inputs, split), pool.lanes)
    return _work(1, shape.vectors, outputs, inputs, shape.storage, pool)


def _work(units: Any, vectors: int, outputs: Any, inputs: Any, storage: Storage, pool: PoolShape) -> Work:
    """Rows must hold all accesses; scales in them only make them more."""
    accesses = pool.row_accesses * accesses_per_column(storage)
    rows = ceil_div(units * outputs * inputs, accesses)
    return Work(units, vectors, outputs, inputs, rows, accesses, pool.vectors_per_multiply)


def _linear_candidate(
    shape: LinearShape, split: int, table: DeviceTable, costs: SystemCosts, since_refresh: Any
) -> _Candidate:
    pool, timing, value = table.pool, table.timing, shape.value_bytes
    work = _linear_work(shape, split, pool)
    bound = _channel(work, pool, timing)
    first = costs.transfer(np.minimum(pool.lanes, shape.inputs) * value)
    # A read-out brings the results of all banks and channels; only the slot of the ragged end may bring fewer.
    in_a_slot = pool.banks * np.maximum(pool.channels // split, 1)
    total = shape.outputs if shape.heads == 1 else 1
    results = np.maximum(total - (work.outputs - 1) * in_a_slot, 1) * split / costs.devices
    of_an_output = ceil_div(shape.vectors, work.together) * work.inputs * timing["nCCDMAC"]
    last = np.minimum(costs.transfer(results * value), of_an_output)
    down = shape.vectors * (shape.inputs // split) * ceil_div(split, costs.devices) * value
    up = shape.vectors * shape.heads * shape.outputs * split * value / costs.devices
    host = costs.launched(reduction_ns(shape, split, costs.host)) if split > 1 else 0.0
    if split == 1 and shape.finished_by_host:
        host = costs.cycles(scale_ns(shape, costs.host))
    started = None if since_refresh is None else since_refresh + costs.latency + first
    refresh = _refresh(work, bound, pool, timing, started)
    trips, read = 2 * costs.latency + host, _read_out(timing)
    ends = trips + first + bound.ends + read + last
    dispatched = bound.instructions + bound.traffic.commands / MOST_COMMANDS_PER_INSTRUCTION
    return _Candidate(
        split,
        pool.channels % split == 0,
        {
            "channel": ends + np.maximum(bound.busy + refresh, bound.activates),
            "rows": ends + np.maximum(bound.multiply + bound.rows, bound.activates),
            "units": ends + bound.multiply,
            "command bus": trips + bound.commands,
            "data bus": trips + bound.traffic.cycles,
            "dispatcher": trips + _dispatch_cycles(dispatched, table),
            "link down": trips + costs.transfer(down) + bound.ends + read + last,
            "link up": trips + first + bound.first_output + read + costs.transfer(up),
            "host": trips,
        },
    )


def attention_lower_bound(shape: AttentionShape, table: DeviceTable, costs: SystemCosts) -> LowerBound:
    """Return the bounds of an attention operator, its appends not counted.

    Blocks of tokens may be worked on side by side. So the channel needs scores and contexts in series, or one of them
    beside the way of the first scores, or of the last ones, through the host.
    """
    splits = _splits(table.pool, shape.tokens - shape.queries + 1)
    candidates = [_attention_candidate(shape, split, table, costs) for split in splits]
    pool = table.pool
    accesses = shape.kv_bytes * 8 / (pool.channels * pool.banks * pool.lanes * INPUT_BITS)
    row_cycles = np.ceil(accesses / pool.row_accesses) * _row_period(shape.storage, table)
    host = costs.launched(host_attention_ns(shape, costs.host))
    return _best(candidates, host, row_cycles, accesses * table.timing["nCCDMAC"])


def _attention_work(shape: AttentionShape, split: int, pool: PoolShape) -> tuple[Work, Work]:
    # The newest queries attend to one another, the first of them to the fewest tokens.
    tokens = ceil_div(shape.tokens - shape.queries + 1, split)
    units = ceil_div(shape.units, np.maximum(pool.channels // split, 1))
    keys, values = ceil_div(shape.head_dim, pool.lanes), ceil_div(shape.value_width, pool.banks)
    score = _work(units, shape.group, ceil_div(tokens, pool.banks), keys, shape.storage, pool)
    return score, _work(units, shape.group, values, ceil_div(tokens, pool.lanes), shape.storage, pool)


def _attention_candidate(shape: AttentionShape, split: int, table: DeviceTable, costs: SystemCosts) -> _Candidate:
    pool, timing, latency = table.pool, table.timing, costs.latency
    scores, contexts = _attention_work(shape, split, pool)
    score, context = (_channel(work, pool, timing) for work in (scores, contexts))
    refresh = _refresh(scores, score, pool, timing, None) + _refresh(contexts, context, pool, timing, None)
    softmax = costs.launched(softmax_ns(shape, costs.host, shape.tokens))
    join = costs.launched(context_sum_ns(shape, split, 1, costs.host)) if split > 1 else 0.0
    read = _read_out(timing)
    launch = costs.launched(0.0)
    twice = 2 * latency + join + score.ends + read
    through = 4 * latency + join + launch + score.ends + context.ends + 2 * read
    values, tokens = shape.units * shape.group * shape.value_bytes / costs.devices, shape.tokens - shape.queries + 1
    down = values * (shape.head_dim + tokens)
    up = values * (tokens + shape.value_width * split)

    def series(cause: str) -> Any:
        own, other = getattr(score, cause), getattr(context, cause)
        return own + other

    def paths(one: Any, other: Any) -> Any:
        return np.maximum(twice + one + other, through + np.maximum(one, other))

    return _Candidate(
        split,
        pool.channels % split == 0,
        {
            "channel": np.maximum(paths(score.busy, context.busy), twice + score.busy + context.busy + refresh),
            "rows": paths(score.multiply + score.rows, context.multiply + context.rows),
            "units": paths(score.multiply, context.multiply),
            "command bus": twice + series("commands"),
            "data bus": twice + score.traffic.cycles + context.traffic.cycles,
            "dispatcher": twice + _dispatch_cycles(series("instructions"), table),
            "link down": twice + costs.transfer(down),
            "link up": twice + costs.transfer(up),
            "host": 4 * latency + softmax + join,
        },
    )


def _channel(work: Work, pool: PoolShape, timing: Mapping[str, Any]) -> ChannelBound:
    return (microkernel_bound if pool.runs_microkernels else channel_bound)(work, pool, timing)


def _refresh(work: Work, bound: ChannelBound, pool: PoolShape, timing: Mapping[str, Any], started: Any) -> Any:
    if pool.runs_microkernels:
        return microkernel_refresh_cycles(bound, timing)
    return refresh_cycles(work, bound, pool, timing, started)


def _dispatch_cycles(instructions: Any, table: DeviceTable) -> Any:
    """Return how long so many instructions are sent; a sequencer with loops may need hardly any."""
    return np.where(table.sequencer_loop_depth > 0, 0, instructions / table.instructions_per_cycle)


def _read_out(timing: Mapping[str, Any]) -> Any:
    """Return the cycles from the last read-out until its data have left the channel."""
    if "nCLREG" not in timing:  # results are read from banks
        return timing["nCL"] + timing["nBL"]
    return np.maximum(timing["nCLREG"] + timing["nBLREG"], 1)


def _row_period(storage: Storage, table: DeviceTable) -> Any:
    """Return the shortest time from one row to the next when each is multiplied from end to end."""
    timing, accesses = table.timing, table.pool.row_accesses * accesses_per_column(storage)
    if table.pool.runs_microkernels:
        return accesses * timing["nCCDL"]
    period = (accesses - 1) * timing["nCCDMAC"] + timing["nRTP"] + timing["nRP"] + timing["nRCDRDMAC"]
    if np.any(table.pool.latched):
        latched = np.maximum(accesses * timing["nCCDMAC"] + timing["nLTMAC"], latch_period(timing))
        period = np.where(table.pool.latched, latched, period)
    return np.maximum(period, np.maximum(timing["nRC"], timing["nACTALL"]))


def _best(candidates: Sequence[_Candidate], host: Any, raw_row: Any, raw_bandwidth: Any) -> LowerBound:
    """Take the cheapest split of each device."""
    names = tuple(candidates[0].resources)
    shape = np.shape(raw_row)
    resources = np.array([[np.broadcast_to(item.resources[name], shape) for name in names] for item in candidates])
    bounds = np.where([np.broadcast_to(item.possible, shape) for item in candidates], resources.max(axis=1), np.inf)
    best = bounds.argmin(axis=0)
    chosen = np.take_along_axis(resources, best[None, None], axis=0)[0]
    return LowerBound(
        resources=dict(zip(names, chosen, strict=True)),
        split=np.array([item.split for item in candidates])[best],
        host_cycles=np.broadcast_to(host, shape),
        raw_row_cycles=raw_row,
        raw_bandwidth_cycles=raw_bandwidth,
    )
