"""Accelerator and link time of our mapping, by the model of `compiler.aim.latency`: no work outside the banks is free.

CENT's share is charged as it is where we do the same. What CENT does in the banks and we do not is charged besides:
squares and scale of norms, rotary products and sums, products of gate and SiLU, the division by the sum of
exponentials. That sum comes from the banks. 1/sqrt(head_dim) lies in the query's rotary table and a norm's weight in
the matrix behind it: both are constants of the model.
"""

from compiler.aim.block import BlockShape, OpName, Placement
from compiler.aim.latency import (
    CORE_ROTARY_CYCLES,
    EXPONENTIAL_CYCLES,
    LANES,
    READ_CYCLES,
    SOFTMAX_CORE_CYCLES,
    VECTOR_CYCLES,
    OffBankTime,
    norm_cycles,
    off_bank_time,
    sum_cycles,
    vector_pass,
)
from compiler.aim.own_block import OwnSchedules


def own_time(
    shape: BlockShape,
    place: Placement,
    schedules: OwnSchedules,
    cycle_ns: float,
    lanes: int,
    *,
    rotary_on_cores: bool = False,
) -> OffBankTime:
    """Return what our mapping spends outside the banks.

    A head's dimension i and i + head_dim/2 come out in the same lane, so that the rotary embedding needs no core to
    move values; `rotary_on_cores` charges CENT's core time for it all the same, beside our products and sums.
    """
    units = place.device_channels
    norm = norm_cycles(shape, units) + 2 * vector_pass(shape.hidden, units, operands=1)
    rotary = _rotary(shape, units)
    if rotary_on_cores:
        rotary += (shape.query_width + shape.kv_width) * CORE_ROTARY_CYCLES
    exponentials = vector_pass(shape.context * shape.heads, units, operands=1, operations=EXPONENTIAL_CYCLES)
    widths = shape.query_width + 2 * shape.kv_width
    # The contexts, and the 16 copies of each sum of exponentials, of the channels that share a head's tokens.
    parts = sum_cycles(shape.query_width + LANES * shape.heads, schedules.attention.token_split, units)
    cycles = {
        OpName.ATTENTION_NORM: norm,
        OpName.QUERY_KEY_VALUE: sum_cycles(widths, schedules.query_key_value.reduction_split, units),
        OpName.ROTARY: rotary,
        OpName.SOFTMAX: exponentials + shape.heads * (READ_CYCLES + SOFTMAX_CORE_CYCLES),
        OpName.CONTEXT: vector_pass(shape.query_width, units) + parts,
        OpName.ATTENTION_OUTPUT: sum_cycles(shape.hidden, schedules.output.reduction_split, units),
        OpName.MLP_NORM: norm,
        OpName.GATE_UP: sum_cycles(shape.intermediate, schedules.up.reduction_split, units),
        OpName.ACTIVATION: vector_pass(shape.intermediate, units, operands=3, operations=2 * VECTOR_CYCLES),
        OpName.DOWN: sum_cycles(shape.hidden, schedules.down.reduction_split, units),
    }
    return off_bank_time(cycles, shape, place, cycle_ns, lanes)


def _rotary(shape: BlockShape, units: int) -> float:
    """Return a, b, cos, sin --> a cos - b sin, b cos + a sin: two products and a sum for each of two results."""
    pairs = (shape.query_width + shape.kv_width) / 2
    return vector_pass(pairs, units, operands=4, operations=6 * VECTOR_CYCLES, results=2)
