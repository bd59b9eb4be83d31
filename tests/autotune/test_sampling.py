"""Legal designs: spread over hardware, found where uniform draws fail, and proposals that stay legal."""

import numpy as np
import pytest

from autotune.enumerate import enumerate_legal
from autotune.layout import clean, distinct, keys, layout_of
from autotune.problem import Codes, Knob
from autotune.proposals import children, composites, cross, mutate
from autotune.sampling import redraw, stratified, uniform
from configs.errors import UserError
from tests.analytic_problem import AnalyticProblem, AnalyticTask, infeasible_problem, large_problem, tiny_problem


def strict_problem() -> AnalyticProblem:
    """A problem of eight tasks of which about one uniform design in 5,000 is legal."""
    hardware = (Knob("channels", "hardware", (8, 16)), Knob("buffer_bytes", "hardware", (256, 512), "B"))
    schedule = (
        ("tile_rows", (1, 2, 4, 8)),
        ("split", (1, 2, 4, 8)),
        ("order", ("spill",)),
        ("double_buffer", ("off", "on")),
    )
    specs = tuple(AnalyticTask(f"task{index}", "linear", 1 << 22, 3000 + index, 1) for index in range(8))
    return AnalyticProblem(hardware, specs, schedule, ((0, 0) + (0, 0, 0, 0) * 8,))


def test_stratified_designs_are_legal_canonical_distinct_and_spread_over_hardware() -> None:
    problem = large_problem()
    codes = stratified(problem, layout_of(problem), np.random.default_rng(0), 1000, problem.baselines())
    assert len(codes) > 900
    assert (clean(problem, codes) == codes).all()
    smallest_buffer = np.mean(codes[:, 2] == 0)
    drawn = clean(problem, uniform(layout_of(problem), np.random.default_rng(0), 5000))
    assert smallest_buffer > 0.2 > 0.1 > np.mean(drawn[:, 2] == 0)


def test_rarely_legal_spaces_are_sampled_through_donated_schedules() -> None:
    problem = strict_problem()
    layout = layout_of(problem)
    codes = stratified(problem, layout, np.random.default_rng(0), 500, problem.baselines())
    assert len(codes) > 300
    assert problem.legal(codes).all()
    assert problem.legal(uniform(layout, np.random.default_rng(0), 1000)).sum() < 5


def test_no_legal_design_gives_no_sample() -> None:
    problem = infeasible_problem()
    codes = stratified(problem, layout_of(problem), np.random.default_rng(0), 100, problem.baselines())
    assert len(codes) == 0


def test_redraw_keeps_designs_legal_and_the_hardware() -> None:
    problem = large_problem()
    layout = layout_of(problem)
    codes = stratified(problem, layout, np.random.default_rng(0), 200, problem.baselines())
    redrawn = redraw(problem, layout, np.random.default_rng(1), codes)
    assert problem.legal(redrawn).all()
    assert (redrawn[:, layout.hardware] == codes[:, layout.hardware]).all()
    assert (redrawn != codes).any()


def test_mutation_changes_one_group_by_codes_in_range() -> None:
    layout = layout_of(large_problem())
    parents = uniform(layout, np.random.default_rng(0), 300)
    young = mutate(layout, np.random.default_rng(1), parents)
    assert ((young >= 0) & (young < layout.sizes)).all()
    groups_changed = sum((young != parents)[:, columns].any(axis=1).astype(int) for columns in layout.groups)
    assert np.max(groups_changed) == 1


def test_crossover_takes_groups_whole() -> None:
    layout = layout_of(large_problem())
    first, second = np.zeros((50, len(layout.sizes)), dtype=np.int64), np.ones((50, len(layout.sizes)), dtype=np.int64)
    young = cross(layout, np.random.default_rng(0), first, second)
    assert all(np.ptp(young[:, columns], axis=1).max() == 0 for columns in layout.groups)
    assert 0.3 < young.mean() < 0.7


def test_children_are_legal_and_distinct() -> None:
    problem = large_problem()
    young = children(problem, layout_of(problem), np.random.default_rng(0), problem.baselines(), 400)
    assert (clean(problem, young) == young).all()


def test_composites_join_the_fastest_schedule_of_each_task() -> None:
    problem = large_problem()
    layout = layout_of(problem)
    donors = stratified(problem, layout, np.random.default_rng(0), 200, problem.baselines())
    hardware = np.array([[1, 2, 3, 2, 0, 1]])
    best = composites(problem, layout, hardware, donors, problem.true_cycles)
    moved = donors.copy()
    moved[:, layout.hardware] = hardware
    moved = moved[problem.legal(moved)]
    assert (problem.true_cycles(best)[0] == problem.true_cycles(moved).min(axis=0)).all()


def test_enumeration_gives_exactly_the_legal_canonical_designs() -> None:
    legal = {tuple(codes) for codes in enumerate_legal(tiny_problem()).tolist()}
    # Channels are free; 256 B hold one row once; 512 B hold two rows once; one row is never double-buffered.
    tiles = {(0, 0), (1, 0), (1, 1)}
    expected = {(c, b, t, 0, o, 0) for c in (0, 1) for b, t in tiles for o in (0, 1)}
    assert legal == expected


def test_enumeration_refuses_what_is_too_large() -> None:
    with pytest.raises(UserError, match="fix some knobs"):
        enumerate_legal(large_problem())


def test_distinct_keeps_the_first_of_equal_designs_in_order() -> None:
    codes: Codes = np.array([[300, 1], [2, 2], [300, 1], [0, 5]])
    assert distinct(codes).tolist() == [[300, 1], [2, 2], [0, 5]]
    assert len(set(keys(codes))) == 3
