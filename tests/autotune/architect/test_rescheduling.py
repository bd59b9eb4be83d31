"""Schedules of least bound: legal, no slower by bounds than any known one, made to fit where memory is short."""

import numpy as np

from autotune.architect.rescheduling import least_bounds
from autotune.layout import layout_of
from autotune.problem import HARDWARE_GROUP
from autotune.sampling import stratified
from tests.small_workloads import small_problem

PROBLEM = small_problem()


def _designs(count: int):
    layout = layout_of(PROBLEM)
    return stratified(PROBLEM, layout, np.random.default_rng(3), count, PROBLEM.baselines())[:count]


def test_least_bounds_are_no_larger_than_those_of_any_schedule_of_the_device():
    designs = _designs(12)
    hardware = [column for column, knob in enumerate(PROBLEM.knobs) if knob.group == HARDWARE_GROUP]
    found = least_bounds(PROBLEM, designs)
    assert len(found) == len(designs)
    assert (found[:, hardware] == designs[:, hardware]).all()
    assert (PROBLEM.bound_cycles(found) <= PROBLEM.bound_cycles(designs) * (1 + 1e-12)).all()


def test_operators_give_way_where_rows_are_short(monkeypatch):
    design = PROBLEM.baselines()[:1]
    quick = least_bounds(PROBLEM, design)
    needed, table = PROBLEM.rows(quick)[0], PROBLEM.scenario.candidates.table
    # A device of so few rows that the schedules of least bounds do not fit.
    monkeypatch.setattr(PROBLEM.scenario.candidates, "table", lambda codes: _with_rows(table(codes), int(needed * 0.6)))
    fitted = least_bounds(PROBLEM, design)
    assert len(fitted) == 1
    assert PROBLEM.rows(fitted)[0] <= needed * 0.6
    assert PROBLEM.bound_cycles(fitted)[0].sum() > PROBLEM.bound_cycles(quick)[0].sum()


def _with_rows(table, rows: int):
    from dataclasses import replace

    return replace(table, pool=replace(table.pool, rows=np.full_like(table.pool.rows, rows)))
