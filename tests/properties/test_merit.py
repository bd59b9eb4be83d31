"""Figures of merit: every objective keeps lower bounds, agrees with what it shows, and is made of metrics and facts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.goals import DEFAULT_GOALS, facts_of, judge, judge_bounds
from autotune.merit import FIGURES, OBJECTIVES, Merit, Sense, die_yield, known_metrics, project
from autotune.problem import AREA, CAPACITY, DEVICES, DIES, TOKENS
from autotune.requirements import known_figures, parse_requirement
from tests.analytic_problem import small_problem

objectives = pytest.mark.parametrize("merit", OBJECTIVES.values(), ids=OBJECTIVES.keys())
positive = st.floats(1e-3, 1e12)
metric_rows = st.tuples(positive, positive, st.floats(1e-2, 1e5))
counts = st.integers(1, 1000)


def _facts(tokens: int, dies: int, area: float) -> dict[str, np.ndarray]:
    plain = {TOKENS: tokens, DEVICES: 1, DIES: dies, CAPACITY: 16, AREA: area}
    return {name: np.array([float(value)]) for name, value in plain.items()}


@objectives
@given(metric_rows, st.tuples(*[st.floats(1.0, 10.0)] * 3), counts, counts)
def test_an_objective_never_gets_better_when_a_metric_gets_worse(merit: Merit, row, factors, tokens, dies) -> None:
    before, after = np.array([row]), np.array([row]) * np.array([factors])
    facts = _facts(tokens, dies, row[2])
    assert merit.minimised(before, facts)[0] <= merit.minimised(after, facts)[0]


@objectives
@given(metric_rows, counts, counts)
def test_what_is_shown_is_the_value(merit: Merit, row, tokens, dies) -> None:
    metrics, facts = np.array([row]), _facts(tokens, dies, row[2])
    assert merit.shown(merit.minimised(metrics, facts)) == pytest.approx(merit.value(metrics, facts), rel=1e-12)


def test_default_objectives_are_the_metrics_bit_by_bit() -> None:
    metrics = np.random.default_rng(0).uniform(1, 1e9, size=(20, 3))
    assert (project(DEFAULT_GOALS.objectives, metrics, {}) == metrics).all()


def test_exact_figures_need_no_simulation() -> None:
    facts = _facts(4, 16, 600.0)
    for merit in FIGURES:
        value = merit.value(known_metrics(facts), facts)
        assert np.isnan(value).any() != merit.exact, merit.figure


def test_a_figure_of_neither_sense_is_no_objective() -> None:
    assert all(merit.sense is not Sense.NEITHER for merit in OBJECTIVES.values())


def test_cost_is_area_over_yield_of_one_die() -> None:
    facts = _facts(1, 16, 1600.0)
    cost = OBJECTIVES["cost"].value(np.array([[1.0, 1.0, 1600.0]]), facts)
    # One die of 100 mm² has 0.1 defects on average: (1 + 0.1 / 10) ** -10 of them are good.
    assert cost[0] == pytest.approx(1600.0 * 1.01**10)
    assert die_yield(np.array([0.0])) == 1.0


def test_what_bounds_rule_out_no_evaluation_satisfies() -> None:
    problem = small_problem()
    rng = np.random.default_rng(0)
    sizes = [len(knob.values) for knob in problem.knobs]
    codes = problem.canonical(rng.integers(0, sizes, size=(400, len(sizes))))
    codes = codes[problem.legal(codes)]
    truth, bounds = (
        problem.metrics(codes, problem.true_cycles(codes)),
        problem.metrics(codes, problem.bound_cycles(codes)),
    )
    known = known_figures(problem.knobs)
    facts = facts_of(problem, codes)
    for figure, merit in known.items():
        middle = float(np.median(merit.value(truth, facts)))
        for operator in ("<=", ">="):
            requirement = parse_requirement(f"{figure} {operator} {middle}", known)
            goals = type(DEFAULT_GOALS)(requirements=(requirement,))
            ruled_out = ~judge_bounds(problem, goals, codes, bounds).feasible
            assert not (judge(problem, goals, codes, truth).feasible & ruled_out).any(), str(requirement)
