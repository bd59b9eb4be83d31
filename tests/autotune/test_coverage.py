"""Coverage of value pairs: which pairs count, and that the greedy choice shows most new ones."""

import numpy as np

from autotune.coverage import most_new, pairs_of
from autotune.layout import layout_of
from tests.analytic_problem import large_problem, tiny_problem


def test_pairs_join_the_hardware_with_one_task_at_a_time() -> None:
    pairs = pairs_of(layout_of(large_problem()))
    # Six hardware knobs among themselves, and per task six times four and four among themselves.
    assert len(pairs.first) == 15 + 5 * (24 + 6)
    assert len({*zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}) == len(pairs.first)


def test_every_value_pair_has_its_own_number() -> None:
    layout = layout_of(tiny_problem())
    pairs = pairs_of(layout)
    everything = np.stack(np.meshgrid(*(np.arange(size) for size in layout.sizes), indexing="ij"), axis=-1)
    assert pairs.covered(everything.reshape(-1, len(layout.sizes))).all()
    one = pairs.numbers(np.zeros((1, len(layout.sizes)), dtype=np.int64))
    assert len(set(one.ravel().tolist())) == len(pairs.first)


def test_the_design_with_most_new_pairs_is_chosen_first_and_none_without() -> None:
    layout = layout_of(tiny_problem())
    pairs = pairs_of(layout)
    base = np.zeros(6, dtype=np.int64)
    near, far = base.copy(), np.array([1, 1, 1, 0, 1, 1])
    near[0] = 1
    candidates = np.stack([base, near, far])
    assert most_new(pairs, pairs.covered(base[None, :]), candidates, 3)[0] == 2
    assert most_new(pairs, pairs.covered(candidates), candidates, 3) == []
