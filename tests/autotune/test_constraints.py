"""Constraints: shares add up, knees follow their definition, and the prose names only points that were simulated."""

import json
import re

import numpy as np
import pytest

from autotune.architect.binding import binding_limits
from autotune.certificate import cover_factors
from autotune.constraints import constraints_json, prose, write_constraints
from autotune.findings import BestAtValue, knee_of, knob_steps
from autotune.finished import front_of, hardware_values
from autotune.front_gap import bounds_front, gap
from tests.autotune.finished_runs import empty_run, finished_run


def test_causes_add_up_to_the_bound_of_the_latency(tmp_path):
    run = finished_run(tmp_path)
    codes = np.array([item.codes for item in run.evaluations])
    by_cause = run.problem.cause_cycles(codes)
    bound_ns = run.problem.metrics(codes, run.problem.bound_cycles(codes))[:, 0]
    total_ns = sum(by_cause.values()) * run.problem.scenario.base.nanoseconds(1)
    np.testing.assert_allclose(total_ns, bound_ns, rtol=1e-12)
    assert all((cycles >= 0).all() for cycles in by_cause.values())


def test_shares_of_a_point_with_its_waiting_make_its_whole_latency(tmp_path):
    for item in binding_limits(finished_run(tmp_path)):
        assert sum(share for _, share in item.shares) + item.waiting == pytest.approx(1)
        assert item.waiting >= -1e-9
        assert item.share == max(share for _, share in item.shares)


def _best(**latency_by_value: float) -> tuple[BestAtValue, ...]:
    return tuple(BestAtValue(int(name[1:]), 0, latency) for name, latency in latency_by_value.items())


def test_knee_is_the_value_beyond_which_doublings_gain_less_than_five_percent():
    assert knee_of(_best(v8=100, v16=60, v32=59, v64=58.5)) == 16
    assert knee_of(_best(v8=100, v16=99)) == 8
    # Two doublings from 16 to 64 that gain 10 % together gain a little more than 5 % each.
    assert knee_of(_best(v8=100, v16=60, v64=54)) is None


def test_a_knob_that_still_pays_or_was_not_varied_has_no_knee():
    assert knee_of(_best(v8=100, v16=60)) is None
    assert knee_of(_best(v8=100)) is None


def test_knob_steps_change_one_knob_by_one_value(tmp_path):
    run = finished_run(tmp_path)
    for step in knob_steps(run):
        before, after = hardware_values(run, step.start), hardware_values(run, step.end)
        assert [name for name in before if before[name] != after[name]] == [step.knobs[0][0]]
        assert step.knobs[0][1] < step.knobs[0][2]


def test_cover_factor_is_the_worst_ratio_of_an_objective():
    front, bound = np.array([[2.0, 3.0, 4.0]]), np.array([[1.0, 2.0, 4.0], [4.0, 6.0, 8.0]])
    assert cover_factors(front, bound).tolist() == [[2.0], [1.0]]


def test_scaled_roofline_front_is_covered_by_the_front(tmp_path):
    run = finished_run(tmp_path)
    found = gap(run)
    front = np.array([run.evaluations[point].metrics for point in front_of(run)])
    for bound in bounds_front(run) * found.factor * (1 + 1e-9):
        assert (front <= bound).all(axis=1).any()


def test_no_evaluated_design_is_better_than_all_lower_bounds(tmp_path):
    run = finished_run(tmp_path)
    bounds = bounds_front(run)
    for item in run.evaluations:
        assert (bounds <= np.array(item.metrics) * (1 + 1e-9)).all(axis=1).any()


def test_prose_names_only_points_that_exist(tmp_path):
    run = finished_run(tmp_path)
    text = write_constraints(run)[1].read_text()
    lists = re.findall(r"points? (\d+(?:, \d+)*)", text)
    named = {int(number) for numbers in lists for number in numbers.split(", ")}
    assert named
    assert named <= set(range(len(run.evaluations)))


def test_every_section_names_points_or_counts(tmp_path):
    for section in prose(finished_run(tmp_path)):
        assert all(re.search(r"\d", line) for line in section.lines)


def test_json_has_its_schema_and_is_plain(tmp_path):
    run = finished_run(tmp_path, hardware="/home/someone/my-device.yaml")
    content = json.loads(write_constraints(run)[0].read_text())
    assert content["schema"] == "constraints/2"
    assert content["settings"]["hardware"] == "my-device.yaml"
    assert [item["point"] for item in content["binding_limits"]] == list(front_of(run))


def test_a_run_without_evaluations_has_only_its_legality(tmp_path):
    content = constraints_json(empty_run(tmp_path))
    assert content["binding_limits"] == content["knees"] == content["front_steps"] == []
    assert content["gap_to_lower_bounds"] is None
