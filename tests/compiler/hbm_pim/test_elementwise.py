"""Element-wise kernels on HBM-PIM: exact in half precision, for whole and ragged blocks, faster than the reference."""

import numpy as np
import pytest

from compiler.hbm_pim.elementwise import OperandRows, blocks_of, elementwise_program
from compiler.schedule import PoolShape, pool_shape
from configs.device import load_device
from simulator.channel import NO_EVENTS
from simulator.engine import Engine
from simulator.functional import ChannelSizes, execute, fresh_channel, host_memory
from simulator.hbm_pim.controller import kernel_cycles, with_ranks
from simulator.hbm_pim.reference_kernels import Elementwise, elementwise_accesses
from simulator.program_code import flatten

UNITS, LANES = 4, 16
ROWS = OperandRows(2, 8, 12)
SIZES = ChannelSizes(
    banks=UNITS, rows=16, columns=64, lanes=LANES, buffer_columns=8, accumulators=8, microkernel_words=32
)
POOL = PoolShape(1, UNITS, SIZES.rows, 64, LANES, 8, 8, microkernel_words=32)
PARKING_CYCLES = 200  # that the reference kernel spends on parking all banks before and after its work
MEANING = {
    Elementwise.ADD: lambda left, right: left + right,
    Elementwise.MUL: lambda left, right: left * right,
    Elementwise.RELU: lambda left, _: np.maximum(left, np.float16(0)),
}


def _places(elements):
    """Return row, column, lane and bank of every value, counted from the first row of its operand."""
    value = np.arange(elements)
    value, lane = np.divmod(value, LANES)
    value, unit = np.divmod(value, UNITS)
    value, register = np.divmod(value, 8)
    block, parity = np.divmod(value, 2)
    return block // 4, 8 * (block % 4) + register, lane, 2 * unit + parity


@pytest.mark.parametrize("blocks", [1, 4, 5])
@pytest.mark.parametrize("kernel", Elementwise)
def test_every_value_is_that_of_half_precision(kernel, blocks):
    elements = blocks * 2 * UNITS * 8 * LANES
    assert blocks_of(elements, POOL) == blocks
    rng = np.random.default_rng(blocks)
    left, right = (rng.standard_normal(elements).astype(np.float16) for _ in range(2))
    channel = fresh_channel(SIZES)
    row, column, lane, bank = _places(elements)
    for first, values in ((ROWS.first, left), (ROWS.second, right)):
        channel.cells[first + row, column, lane, bank] = values
    execute(elementwise_program(kernel, elements, POOL, ROWS), channel, host_memory(SIZES))
    found = channel.cells[ROWS.result + row, column, lane, bank]
    assert (found == MEANING[kernel](left, right).astype(np.float32)).all()
    assert channel.register_mode[0] == 0
    assert (channel.open_row < 0).all()


@pytest.mark.parametrize("kernel", Elementwise)
def test_banks_that_take_turns_are_faster_than_the_reference_kernel(kernel):
    elements = 16384
    compat = with_ranks(load_device("hbm-pim-compat"), 1)
    engine = Engine(compat)
    program = elementwise_program(kernel, elements, pool_shape(load_device("hbm-pim"), 1), OperandRows(0, 128, 256))
    own = engine.run(flatten(program), engine.fresh_state(), NO_EVENTS).completed
    assert own + PARKING_CYCLES < kernel_cycles(elementwise_accesses(kernel, elements), compat)
