"""The smallest device for a latency, by the definitions, on runs with and without a limit of the user's."""

import json
import re
from dataclasses import replace

import pytest

from autotune.architect.sentences import smallest_lines
from autotune.architect.smallest import latency_targets, smallest_devices
from autotune.constraints import constraints_json
from autotune.finished import best_on_base
from autotune.goals import goals_of
from tests.autotune.finished_runs import empty_run, finished_run


def _asked_for(run, *requirements):
    goals = goals_of(("latency", "energy", "area"), requirements, run.problem.knobs)
    return replace(run, result=replace(run.result, goals=goals))


def test_targets_are_shares_of_the_base_device_or_the_users_limit(tmp_path):
    run = finished_run(tmp_path)
    own = run.evaluations[best_on_base(run)].latency_ns
    assert [item.latency_ns / own for item in latency_targets(run)] == pytest.approx([1, 0.75, 0.5])
    asked = _asked_for(run, "latency_ms <= 0.03", "throughput_tokens_per_s >= 50000", "area_mm2 <= 600")
    assert [item.latency_ns for item in latency_targets(asked)] == pytest.approx([20000])
    assert latency_targets(asked)[0].source == "throughput_tokens_per_s >= 50000"


def test_no_simulated_point_is_smaller_and_fast_enough_and_bounds_do_not_contradict_it(tmp_path):
    run = finished_run(tmp_path)
    for item in smallest_devices(run):
        meets = [found for found in run.evaluations if found.latency_ns <= item.target.latency_ns]
        assert (item.point is None) == (not meets)
        if meets:
            assert item.area_mm2 == min(found.area_mm2 for found in meets)
            assert item.bound_area_mm2 <= item.area_mm2
        if item.smaller is not None:
            assert item.smaller.excess > 0
            below = item.area_mm2 if meets else float("inf")
            smaller = [found.latency_ns for found in run.evaluations if found.area_mm2 < below]
            assert run.evaluations[item.smaller.point].latency_ns == min(smaller)


def test_other_requirements_have_to_be_met_too(tmp_path):
    run = finished_run(tmp_path)
    energies = sorted(item.energy_pj for item in run.evaluations)
    limit = energies[len(energies) // 2]
    slowest = max(item.latency_ns for item in run.evaluations)
    asked = _asked_for(run, f"latency_ms <= {slowest * 1e-6:.9f}", f"energy_mj <= {limit * 1e-9:.12f}")
    found = smallest_devices(asked)[0]
    assert run.evaluations[found.point].energy_pj <= limit * (1 + 1e-9)


def test_a_target_that_nothing_meets_names_the_nearest_and_what_binds_it(tmp_path):
    run = _asked_for(finished_run(tmp_path), "latency_ms <= 0.000001")
    found = smallest_devices(run)[0]
    fastest = min(item.latency_ns for item in run.evaluations)
    assert found.point is None
    assert run.evaluations[found.smaller.point].latency_ns == fastest
    assert found.bound_area_mm2 is None
    text = next(smallest_lines([found]))
    assert "is fast enough" in text
    assert f"The nearest, point {found.smaller.point} " in text
    assert str(found.smaller.binding.cause) in text


def test_every_sentence_names_simulated_points(tmp_path):
    run = finished_run(tmp_path)
    for line in smallest_lines(smallest_devices(run)):
        named = {int(number) for number in re.findall(r"point (\d+)", line)}
        assert named
        assert named <= set(range(len(run.evaluations)))


def test_the_file_holds_the_same_and_a_run_without_evaluations_none(tmp_path):
    run = finished_run(tmp_path)
    content = json.loads(json.dumps(constraints_json(run)["smallest_devices"], allow_nan=False))
    assert [item["point"] for item in content] == [item.point for item in smallest_devices(run)]
    assert constraints_json(empty_run(tmp_path))["smallest_devices"] == []
