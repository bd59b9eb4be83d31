"""Values of an HBM-PIM kernel in and out: matrices in the banks of units, columns of V, results from partial sums."""

import numpy as np
from numpy.typing import NDArray

from compiler.geometry import Geometry
from compiler.hbm_pim.tiles import bank_parity, first_column, other_row
from configs.microkernel_units import BANKS_OF_UNIT, REGISTERS
from simulator.bf16 import round_to_bf16
from simulator.functional_reference import tree_sum
from simulator.hbm_pim.state import MicrokernelChannel

Floats = NDArray[np.float32]


def half(values: NDArray[np.floating]) -> Floats:
    """Return float32 values rounded to nearest even fp16."""
    rounded: Floats = values.astype(np.float16).astype(np.float32)
    return rounded


def place_microkernel_matrix(channel: MicrokernelChannel, first_row: int, weights: Floats, shape: Geometry) -> None:
    """Write weights[n, k] of one channel where its kernel reads them, zeros in all padding."""
    units, lanes = channel.sizes.banks, channel.sizes.lanes
    whole = np.zeros((shape.slots * units, shape.total_columns * lanes), dtype=np.float32)
    whole[: weights.shape[0], : weights.shape[1]] = half(weights)
    values = whole.reshape(shape.groups, REGISTERS, units, shape.segments, REGISTERS, lanes)
    for segment in range(shape.segments):
        for group in range(shape.groups):
            tile = segment * shape.groups + group
            for column in range(REGISTERS):
                parity, first = bank_parity(tile, column), first_column(tile, column)
                row = first_row + tile + parity * other_row(tile)
                own = values[group, :, :, segment, column]  # [output, unit, lane]
                channel.cells[row, first : first + REGISTERS, :, parity::BANKS_OF_UNIT] = own.transpose(0, 2, 1)


def added_lanes(entries: Floats, shape: Geometry) -> Floats:
    """Return the host's bf16 sums y[v, n] of output entries: lanes added in fp32 by a balanced tree, adjacent first."""
    return round_to_bf16(tree_sum(entries.T)).reshape(shape.vectors, -1)


def column_of_values(values: Floats, slots: int, units: int, lanes: int) -> Floats:
    """Return the host entries of one column of V: values[token, dimension] of up to as many tokens as lanes."""
    column = np.zeros((slots * units, lanes), dtype=np.float32)
    column[: values.shape[1], : values.shape[0]] = values.T
    return column
