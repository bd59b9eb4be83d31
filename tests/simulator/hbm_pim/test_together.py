"""Multiplies over columns that follow each other are the same one by one and at once."""

import numpy as np
import pytest

from compiler.emission import repeat
from simulator.functional import execute, fresh_channel, host_memory
from simulator.functional_errors import UnwrittenValueError
from simulator.hbm_pim.microkernel import Place, jump, multiply_accumulate
from simulator.isa import Affine, Command, Kind, Loop, Program
from tests.simulator.hbm_pim.test_unit import EVEN, SIZES, command, inputs_written, loaded

EVERY_EVEN = multiply_accumulate(Place.EVEN_BANK)


def _looped(first, count):
    def one(column: Affine, _: int) -> tuple[Command, ...]:
        return (Command(Kind.RD8, bank=Affine(EVEN), row=Affine(0), column=column.plus(first)),)

    return repeat(count, 0, one)


def _one_by_one(body):
    flat = []
    for item in body:
        if isinstance(item, Loop):
            (leaf,) = item.body
            flat += [
                Command(Kind.RD8, bank=leaf.bank, row=leaf.row, column=Affine(leaf.column.at((index,))))
                for index in range(item.count)
            ]
        else:
            flat.append(item)
    return tuple(flat)


def _run(body, cells):
    channel = fresh_channel(SIZES)
    channel.cells[:] = cells
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((8, 16)).astype(np.float16).astype(np.float32)
    start = (*loaded(EVERY_EVEN, jump(100, 1)), *inputs_written(), command(Kind.ACT8, bank=EVEN, row=0))
    issued = execute(Program((*start, *body)), channel, host_memory(SIZES, inputs, half=True))
    return channel, issued - len(start)


@pytest.mark.parametrize("seed", range(20))
def test_runs_of_any_length_give_the_same_sums_and_standing(seed):
    rng = np.random.default_rng(seed)
    cells = rng.standard_normal((SIZES.rows, 32, 16, 8)).astype(np.float16)
    body = []
    for _ in range(6):
        first = int(rng.integers(0, 30))
        body += _looped(first, int(rng.integers(1, 33 - first)))
    together, issued = _run(tuple(body), cells)
    apart, counted = _run(_one_by_one(body), cells)
    assert issued == counted
    for name in ("sums", "standing", "jumps"):
        assert np.array_equal(getattr(together, name), getattr(apart, name)), name


def test_the_first_column_that_was_never_written_is_named():
    cells = np.ones((SIZES.rows, 32, 16, 8), dtype=np.float32)
    cells[0, 13] = np.nan
    messages = []
    for body in (_looped(0, 32), _one_by_one(_looped(0, 32))):
        with pytest.raises(UnwrittenValueError) as error:
            _run(body, cells)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
