"""Pareto arithmetic and batch choice against values worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.acquisition import choose, gain
from autotune.pareto import Box, box_of, contributions, hypervolume, knee, nondominated, scaled_hypervolume

UNIT = Box((1.0, 1.0, 1.0), (np.e, np.e, np.e))


def test_the_ideal_point_fills_the_box_to_the_reference() -> None:
    assert hypervolume(np.array([[1.0, 1.0, 1.0]]), UNIT) == pytest.approx(1.1**3)


def test_hypervolume_of_two_points_is_their_union() -> None:
    points = np.exp(np.array([[0.1, 0.6, 0.5], [0.6, 0.1, 0.5]]))
    # Boxes of 1.0 x 0.5 x 0.6 and 0.5 x 1.0 x 0.6 that share 0.5 x 0.5 x 0.6.
    assert hypervolume(points, UNIT) == pytest.approx(0.3 + 0.3 - 0.15)
    assert contributions(points, UNIT) == pytest.approx([0.15, 0.15])


def test_points_beyond_the_reference_add_nothing() -> None:
    assert hypervolume(np.exp(np.array([[0.0, 0.0, 1.2]])), UNIT) == 0.0
    assert hypervolume(np.zeros((0, 3)), UNIT) == 0.0


def test_an_axis_without_width_is_kept() -> None:
    front = np.array([[1.0, 4.0, 7.0], [2.0, 2.0, 7.0]])
    assert box_of(front).scale(front).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


def test_nondominated_keeps_one_of_equal_rows() -> None:
    points = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [0.5, 9.0, 9.0]])
    assert nondominated(points).tolist() == [True, False, False, True]
    assert nondominated(np.zeros((0, 3))).tolist() == []


def test_the_knee_is_nearest_to_the_ideal() -> None:
    front = np.exp(np.array([[0.0, 1.0, 0.5], [0.2, 0.2, 0.5], [1.0, 0.0, 0.5]]))
    assert knee(front) == 1


@given(st.integers(0, 10_000))
def test_gain_is_the_growth_of_the_hypervolume(seed: int) -> None:
    points = np.random.default_rng(seed).random((8, 3)) * 1.3
    grown = scaled_hypervolume(points) - scaled_hypervolume(points[1:])
    assert gain(points[1:], points[0]) == pytest.approx(grown, abs=1e-12)


@given(st.integers(0, 10_000))
def test_lazy_greedy_choice_equals_plain_greedy_choice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    front, candidates = rng.random((5, 3)) * 0.8 + 0.3, rng.random((30, 3)) * 0.8 + 0.1
    current = front
    for row in choose(front, candidates, 4):
        gains = [gain(current, candidate) for candidate in candidates]
        if max(gains) > 0:
            assert gains[row] == pytest.approx(max(gains))
        current = np.concatenate([current, candidates[row : row + 1]])


def test_candidates_that_add_nothing_follow_nearest_first() -> None:
    front = np.array([[0.2, 0.2, 0.2]])
    candidates = np.array([[0.9, 0.9, 0.9], [0.1, 0.3, 0.2], [0.3, 0.3, 0.3]])
    assert choose(front, candidates, 3) == [1, 2, 0]
