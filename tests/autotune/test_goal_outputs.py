"""What a run leaves when it was searched for other goals: columns, headings, figures, constraints, or a plain no."""

import json

import pandas as pd
import pytest

from autotune.finished import front_of, nearest_of, shown_points
from autotune.outputs import write_outputs
from autotune.stored_points import stored_point
from tests.autotune.finished_runs import finished_run, run_with_goals

REQUIREMENTS = ("area_mm2 <= 600", "power_avg_w <= 9")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    run = run_with_goals(tmp_path_factory.mktemp("other"), ("throughput", "cost"), REQUIREMENTS)
    return run, write_outputs(run)


@pytest.fixture(scope="module")
def hopeless(tmp_path_factory):
    goals = ("latency", "energy", "area", "edp"), ("latency_ms <= 1e-9", "area_mm2 <= 700")
    run = run_with_goals(tmp_path_factory.mktemp("hopeless"), *goals)
    return run, write_outputs(run)


def test_tables_have_the_objectives_and_the_verdicts(other):
    run, _ = other
    trials = pd.read_csv(run.folder / "trials.csv")
    judged = run.judged
    assert trials["cost_wafer_mm2"].tolist() == pytest.approx(judged.objectives[:, 1])
    assert trials["violation"].tolist() == pytest.approx(judged.violations)
    assert trials["is_feasible"].tolist() == judged.feasible.tolist()
    assert 0 < trials["is_feasible"].sum() < len(trials)
    assert (trials["is_feasible"] == (trials["area_mm2"] <= 600) & (trials["power_average_w"] <= 9)).all()
    assert trials["is_feasible"][trials["is_pareto"]].all()
    pareto = pd.read_csv(run.folder / "pareto.csv")
    assert pareto["point"].tolist() == list(front_of(run))
    assert pareto["throughput_tokens_per_s"].is_monotonic_decreasing
    tex = (run.folder / "tables" / "pareto.tex").read_text()
    assert r"Throughput (tokens/s) & Cost (mm\textsuperscript{2} of wafer)" in tex


def test_figures_are_of_the_first_two_objectives(other):
    run, paths = other
    names = {path.stem for path in paths.figures}
    assert "pareto_throughput_cost" in names
    assert not any("latency_energy" in name for name in names)
    assert shown_points(run)[0].name == "highest throughput"


def test_report_and_prose_say_what_was_asked_for(other):
    run, paths = other
    report = paths.report.read_text()
    assert "throughput (tokens/s)" in report
    assert "area_mm2 &lt;= 600" in report
    assert "minimised the energy" not in report
    content = json.loads(paths.constraints[0].read_text())
    first = content["requirements"][0]
    assert (first["requirement"], first["unit"], first["evaluated"]) == ("area_mm2 <= 600", "mm²", len(run.evaluations))
    above = [item for item in run.evaluations if item.area_mm2 > 600]
    assert first["violated"] == len(above)
    assert content["feasible_points"] == run.judged.feasible.sum()
    assert content["nearest_to_feasible"] == []
    assert [item["sense"] for item in content["objectives"]] == ["maximised", "minimised"]
    assert "## Requirements" in paths.constraints[1].read_text()


def test_a_run_that_meets_nothing_says_so_everywhere(hopeless):
    run, paths = hopeless
    assert front_of(run) == ()
    assert len(pd.read_csv(run.folder / "pareto.csv")) == 0
    content = json.loads(paths.constraints[0].read_text())
    assert content["feasible_points"] == 0
    nearest = content["nearest_to_feasible"]
    assert [item["point"] for item in nearest] == list(nearest_of(run))
    assert nearest[0]["misses"][0]["requirement"] == "latency_ms <= 1e-09"
    assert content["gap_to_lower_bounds"] is None
    assert "meets every requirement" in paths.report.read_text()
    assert shown_points(run)[0].name == "nearest to feasible"
    assert (run.folder / "points" / str(nearest[0]["point"]) / "device.yaml").is_file()
    assert stored_point(run.folder, run.problem.knobs).point == nearest[0]["point"]
    assert {path.stem for path in paths.figures} >= {"pareto_latency_energy", "pareto_latency_area"}


def test_default_goals_add_no_column_to_the_front(tmp_path):
    run = finished_run(tmp_path)
    write_outputs(run)
    columns = pd.read_csv(tmp_path / "pareto.csv").columns
    assert not {"is_pareto", "is_feasible", "violation"} & set(columns)
    assert pd.read_csv(tmp_path / "trials.csv")["is_feasible"].all()
