"""Features of a task: what its closed form knows, in logarithms, beside the knobs that shape what it cannot know.

No Program is built. The target is log(simulated / bound); the shares of the bound by cause tell the trees where the
slack of a candidate comes from: refresh, late inputs, turn-arounds, activation spacing.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.attention import AttentionShape, attention_geometry
from compiler.closed_form import TaskForm
from compiler.device_table import REFRESH_INTERVAL, REFRESH_STOP, DeviceTable
from compiler.geometry import Geometry
from compiler.linear import LinearShape, linear_geometry
from compiler.schedule import Place

Floats = NDArray[np.float64]
PARTS = ("channel", "multiply", "rows", "boundaries", "registers", "activation_limit", "down", "up", "host")
GEOMETRY = ("segments", "tail_columns", "slots", "slots_per_row", "groups", "group_slots", "reuse")
TIMING = ("nRCDRDMAC", "nACTALL", "nCCDMAC", "nBLREG", "nBLGB")
REFRESH = ("refresh_stops_all", "refresh_stop_share", "reopening_share")
DISPATCH = ("dispatch_share", "sequencer_loop_depth")
POOL = ("channels", "banks", "lanes", "row_buffers", "vectors_per_multiply")
SCHEDULE = ("on_host", "split", "preactivate", "registers")
SHARES = tuple(f"share_{name}" for name in PARTS)


def feature_names(kind: str) -> tuple[str, ...]:
    """Return the columns of `features` for linear or attention tasks."""
    kernels = ("kernel",) if kind == "linear" else ("score", "context")
    sizes = tuple(f"log_{kernel}_{name}" for kernel in kernels for name in GEOMETRY)
    last = ("merged", "spills") if kind == "linear" else ("units_per_channel", "active_channels", "blocks")
    return ("log_bound", *SHARES, *sizes, *TIMING, *REFRESH, *DISPATCH, *POOL, *SCHEDULE, *last)


def features(shape: LinearShape | AttentionShape, schedule: Any, table: DeviceTable, form: TaskForm) -> Floats:
    """Return float[n, f] of one task under n candidates; the records hold arrays."""
    bound = np.maximum(form.bound, 1.0)
    columns: list[Any] = [np.log(bound), *(form.parts[name] / bound for name in PARTS)]
    if isinstance(shape, LinearShape):
        sizes = linear_geometry(shape, shape.outputs, schedule, table.pool)
        columns += _sizes(sizes)
        last = [np.asarray(schedule.merged), sizes.spills]
        split = schedule.reduction_split
    else:
        both = attention_geometry(shape, schedule, table.pool)
        columns += [*_sizes(both.last_score), *_sizes(both.last_context)]
        last = [both.units_per_channel, both.active_channels, both.blocks]
        split = schedule.token_split
    columns += [table.timing[name] for name in TIMING]
    columns += [*_refresh(table), *_dispatch(table, form, bound)]
    columns += [getattr(table.pool, name) for name in POOL]
    columns += [schedule.place == Place.HOST, split, schedule.preactivate, schedule.registers, *last]
    n = len(bound)
    return np.column_stack([np.broadcast_to(np.asarray(column, dtype=np.float64), (n,)) for column in columns])


def _refresh(table: DeviceTable) -> list[Any]:
    """Return whether refresh stops all banks, for what share of the time, and how much of it opens rows again."""
    timing, every = table.timing, np.maximum(table.refreshes_every, 1)
    opening = np.where(table.refreshes_every > 0, timing["nACTALL"] + timing["nRCDRDMAC"], 0)
    return [timing[REFRESH_STOP] > 0, timing[REFRESH_STOP] / timing[REFRESH_INTERVAL], opening / every]


def _dispatch(table: DeviceTable, form: TaskForm, bound: Floats) -> list[Any]:
    """Return how much of the bound it takes to send a channel's commands one by one, and the loops of a sequencer."""
    commands = form.commands.sum(axis=1) / table.pool.channels
    return [commands / table.instructions_per_cycle / bound, table.sequencer_loop_depth]


def _sizes(sizes: Geometry) -> list[Any]:
    return [np.log(np.maximum(getattr(sizes, name), 1)) for name in GEOMETRY]
