"""The kernel for HBM-PIM: what it emits is what its closed form counts, no faster than its chain, right on values."""

from collections import Counter

import numpy as np
import pytest

from compiler.chain import chain_cycles
from compiler.device_table import device_table
from compiler.hbm_pim.geometry import MOST_GROUPS, microkernel_chain, microkernel_commands, microkernel_geometry
from compiler.hbm_pim.kernel import MicrokernelKernel, microkernel
from compiler.hbm_pim.tiles import VISITED, bank_parity, first_column, other_row
from compiler.kernel_events import written_columns
from compiler.legality import reasons, rules
from compiler.linear import LinearShape
from compiler.matvec import Operands
from compiler.numerics.linear import check_linear_case
from compiler.numerics.report import as_lowered
from compiler.numerics.small_sizes import FIRST_ROW, LinearCase
from compiler.schedule import LinearSchedule, PoolShape, pool_shape
from configs.device import load_device
from simulator.channel import fresh_state
from simulator.engine import Engine
from simulator.isa import ZERO, Kind, Program, walk
from simulator.program_code import flatten
from simulator.reference_engine import run_reference

DEVICE = load_device("hbm-pim")
POOL = pool_shape(DEVICE, 1)
SHAPES = [(64, 128, 1), (64, 1024, 1), (192, 384, 1), (512, 640, 2), (300, 200, 3), (64 * 70, 256, 5)]


def _kernel(outputs, inputs, vectors, preactivate):
    shape = microkernel_geometry(POOL, outputs, inputs, vectors)
    return shape, Program(MicrokernelKernel(shape, Operands(ZERO, ZERO, ZERO), preactivate).emit())


def _arrived(shape):
    return np.zeros(len(written_columns(shape)), dtype=np.int64)


@pytest.mark.parametrize("preactivate", [True, False])
@pytest.mark.parametrize("sizes", SHAPES)
def test_the_closed_form_counts_every_command(sizes, preactivate):
    shape, program = _kernel(*sizes, preactivate)
    found = Counter(command.kind for command in walk(program))
    del found[Kind.WAIT], found[Kind.SIGNAL]
    assert found == {kind: int(count) for kind, count in microkernel_commands(shape, preactivate).items()}


@pytest.mark.parametrize("preactivate", [True, False])
@pytest.mark.parametrize("sizes", SHAPES)
def test_no_kernel_is_faster_than_its_chain_nor_much_slower(sizes, preactivate):
    shape, program = _kernel(*sizes, preactivate)
    engine = Engine(DEVICE)
    report = engine.run(flatten(program), engine.fresh_state(), _arrived(shape))
    timing = device_table([DEVICE], 1).timing
    least = float(np.ravel(chain_cycles(microkernel_chain(shape, timing, preactivate), timing))[0])
    assert least <= report.completed <= 1.35 * least + 200


def test_both_engines_agree_on_the_kernel_across_refreshes():
    shape, program = _kernel(192, 1024, 2, True)
    engine, state = Engine(DEVICE), fresh_state(DEVICE)
    fast = engine.run(flatten(program), engine.fresh_state(), _arrived(shape))
    slow = run_reference(program, DEVICE, state, _arrived(shape))
    assert (fast.completed, fast.counts, fast.refreshes) == (slow.completed, slow.counts, slow.refreshes)
    assert fast.refreshes > 1


def test_an_open_even_row_hides_the_change_of_the_odd_one():
    """A tile takes 8 writes, 64 multiplies and both turns of the bus: no row is waited for."""
    still = DEVICE.model_copy(update={"timing": DEVICE.timing | {"nREFI": 900_000}})
    engine, cycles = Engine(still), {}
    for count in (2, 12):
        shape, program = _kernel(64, 128 * count, 1, True)
        cycles[count] = engine.run(flatten(program), engine.fresh_state(), _arrived(shape)).completed
    assert cycles[12] - cycles[2] == 10 * (7 * 4 + 19 + 63 * 4 + 15)


@pytest.mark.parametrize("tile", [0, 1])
def test_every_value_of_a_tile_has_a_place_of_its_own(tile):
    places = {
        (bank_parity(tile, column), first_column(tile, column) + output) for column in range(8) for output in range(8)
    }
    assert len(places) == 64
    assert sorted(VISITED[tile]) == list(range(8))
    # The register that the address names is the one in which the column is kept.
    for column in range(8):
        row = tile + bank_parity(tile, column) * other_row(tile)
        assert (row % 2) * 4 + first_column(tile, column) // 8 == VISITED[tile][column]


def test_a_microkernel_fits_in_the_words_of_a_unit():
    assert len(microkernel(1000)) < DEVICE.unit.microkernel_words


@pytest.mark.parametrize("preactivate", [True, False])
@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("groups", [1, 2, 4, 5])
@pytest.mark.parametrize("segments", [1, 2, 4])
def test_groups_and_segments_of_every_parity_compute_what_they_should(groups, segments, split, preactivate):
    units, lanes = 4, 16
    outputs = 2 * (groups * 8 * units - units // 2) - 1
    inputs = split * (segments * 8 * lanes - lanes // 2) - (split > 1)
    schedule = LinearSchedule(reduction_split=split, segment_columns=8, registers=8, preactivate=preactivate)
    pool = PoolShape(2 * split, units, 0, 64, lanes, 8, 8, microkernel_words=32)
    case = LinearCase("parity", LinearShape("parity", (outputs,), inputs, 2), schedule, pool)
    rows = FIRST_ROW + sum(item.rows for item in case.passes)
    case = LinearCase(
        case.name, case.shape, schedule, PoolShape(2 * split, units, rows, 64, lanes, 8, 8, microkernel_words=32)
    )
    assert check_linear_case(case, as_lowered) == 2 * split


def test_more_results_than_there_are_rows_for_are_refused_with_amounts():
    shape = LinearShape("wide", (POOL.channels * 64 * (MOST_GROUPS + 1),), 128, 1)
    schedule = LinearSchedule(segment_columns=8, registers=8)
    found = reasons(shape.name, schedule.place, rules(shape, schedule, POOL))
    assert any("257 groups of results" in text and "256" in text for text in found)


def test_a_batch_that_shares_rows_is_refused():
    shape = LinearShape("batch", (POOL.channels * 64,), 128, 2)
    found = reasons(shape.name, "pim", rules(shape, LinearSchedule(segment_columns=8, registers=8, reuse=2), POOL))
    assert any("2 vectors share a row, but a microkernel takes 1" in text for text in found)
