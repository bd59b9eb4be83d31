"""The closed form of an HBM-PIM kernel: tiles, rows, commands and the chain of waits, for ints or arrays.

Fields of `compiler.geometry.Geometry` keep their meaning: a slot is an output of every unit, a segment eight columns of
inputs, a row an even and an odd one, of which each holds a tile. Outputs and inputs are padded to whole tiles.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from compiler.chain import ChainParts
from compiler.geometry import Geometry, ceil_div, plain
from compiler.hbm_pim.tiles import whole_pairs
from compiler.schedule import PoolShape
from configs.microkernel_units import REGISTERS, ROW_COLUMNS
from simulator.hbm_pim.microkernel import WORDS_OF_WRITE
from simulator.hbm_pim.registers import RESULT_ROWS
from simulator.isa import Kind

GROUPS_OF_ROW = ROW_COLUMNS // REGISTERS
ENTRY_BANKS = 4
TILE_MULTIPLIES = REGISTERS * REGISTERS
ONE_SEGMENT_WORDS, WORDS = 9, 10
MOST_GROUPS = RESULT_ROWS * GROUPS_OF_ROW


def microkernel_geometry(pool: PoolShape, outputs: Any, inputs: Any, vectors: Any) -> Geometry:
    """Return the geometry of a kernel."""
    segments = ceil_div(ceil_div(inputs, pool.lanes), REGISTERS)
    groups = ceil_div(ceil_div(outputs, pool.banks), REGISTERS)
    eight = segments * 0 + REGISTERS
    return Geometry(
        vectors=plain(vectors),
        reuse=plain(segments * 0 + 1),
        banks=plain(pool.banks),
        total_columns=plain(segments * REGISTERS),
        segment_columns=plain(eight),
        segments=plain(segments),
        tail_columns=plain(eight),
        slots=plain(groups * REGISTERS),
        slots_per_row=plain(eight),
        tail_slots_per_row=plain(eight),
        tail_stride=plain(eight),
        group_slots=plain(groups * 0 + REGISTERS),
        groups=plain(groups),
        rows_per_segment=plain(groups),
        tail_rows=plain(groups + whole_pairs(segments * groups, pool.microkernel_words) - segments * groups),
        spills=plain(segments < 0),
        segment_stride=plain(eight),
        whole_reads=True,
        microkernel_words=plain(pool.microkernel_words),
        reserved_row=plain(pool.rows),
    )


def result_rows(shape: Geometry) -> Any:
    """Return the rows of results of one vector."""
    return ceil_div(shape.groups, GROUPS_OF_ROW)


def visits(shape: Geometry) -> Any:
    """Return how often the channel goes to all-bank mode: as often as rows of results are full."""
    at_once = np.maximum(np.minimum(shape.vectors, RESULT_ROWS // np.maximum(result_rows(shape), 1)), 1)
    return ceil_div(shape.vectors, at_once)


def microkernel_commands(shape: Geometry, preactivate: Any) -> dict[Kind, Any]:
    """Return the commands of the kernel that `compiler.hbm_pim.kernel` emits, by kind."""
    entered, groups = visits(shape), shape.vectors * shape.groups
    tiles, rows = groups * shape.segments, shape.vectors * result_rows(shape)
    words = np.where(shape.segments > 1, WORDS, ONE_SEGMENT_WORDS)
    # A tile closes its window, its odd row and its even row, the last two together where rows are not opened ahead.
    closed = np.where(preactivate, 3, 1)
    return {
        Kind.ACT: ENTRY_BANKS * entered + shape.banks * rows,
        Kind.WR: ENTRY_BANKS * entered,
        Kind.RD: shape.banks * shape.slots * shape.vectors,
        Kind.PREA: 3 * entered + rows + np.where(preactivate, 0, tiles),
        Kind.ACT8: 5 * entered + 3 * tiles + 2 * groups,
        Kind.PRE8: entered + closed * tiles + 2 * groups,
        Kind.RD8: TILE_MULTIPLIES * tiles,
        Kind.WR8: (ceil_div(words, WORDS_OF_WRITE) + 4) * entered + REGISTERS * tiles + 2 * groups,
        Kind.ST8: REGISTERS * groups,
    }


def microkernel_chain(shape: Geometry, timing: Mapping[str, Any], preactivate: Any) -> ChainParts:
    """Return the chain of waits from a kernel's first activate to its last read: gaps between commands in order.

    Every gap has rows open, which a refresh closes and opens again, so that nothing of it hides.
    """
    cadence, burst = timing["nCCDL"], timing["nCCDS"]
    to_write = timing["nCL"] + timing["nBL"] + timing["nRTRS"] - timing["nCWL"]
    to_read = timing["nCWL"] + timing["nBL"] + timing["nWTRL"]
    to_close = timing["nCWL"] + timing["nBL"] + timing["nWR"]
    to_window = timing["nRP"] + timing["nRCDWR"]
    entered, groups = visits(shape), shape.vectors * shape.groups
    tiles = groups * shape.segments
    opened = np.where(preactivate, 0, 1 + timing["nRP"] + timing["nRCDRD"] - cadence)
    behind = np.where(preactivate, to_write, timing["nRTP"] + to_window)
    reads = shape.vectors * shape.slots * shape.banks
    enter = timing["nRCDWR"] + to_close + to_window + cadence
    leave = to_close + to_window + to_close + timing["nRP"] + timing["nRCDRD"]
    return ChainParts(
        multiply=tiles * (TILE_MULTIPLIES - 1) * cadence,
        rows=tiles * opened,
        boundaries=tiles * (behind + to_read) + groups * (to_close + to_window),
        registers=(tiles + groups) * (REGISTERS - 1) * cadence + (reads - entered) * burst,
        ends=entered * (enter + leave),
        activation_limit=0 * tiles,
        row_chain=0 * tiles,
        closed=0 * tiles,
        visit=0 * tiles,
        gap=0 * tiles,
        last=0 * tiles,
    )
