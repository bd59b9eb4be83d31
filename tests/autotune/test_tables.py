"""Tables: one row per evaluation, units in the names, not modelled is empty, equal runs give equal bytes."""

from dataclasses import replace

import pandas as pd

from autotune.finished import front_of, hand_point
from autotune.problem import Knob
from autotune.tables import knob_column, pareto_frame, tasks_frame, tex_escape, trials_frame, write_tables
from tests.autotune.finished_runs import empty_run, finished_run

UNITS = ("_ns", "_pj", "_mm2", "_w", "_cycles", ".cycles", "_bytes", "_per_s", "_per_device", "_per_token")
# Counts and shares have no unit; every other figure must name one.
DIMENSIONLESS = (
    "_share",
    "_factor",
    "_duty",
    "_per_bank",
    "_per_channel",
    "_simulated",
    "_stored",
    "point",
    "is_pareto",
    "is_feasible",
    "violation",
    "numerics",
)


def test_every_column_names_its_unit(tmp_path):
    run = finished_run(tmp_path)
    knobs = {knob_column(knob) for knob in run.problem.knobs}
    columns = set(trials_frame(run.problem, run.evaluations).columns)
    assert knobs < columns
    assert [name for name in columns - knobs if not name.endswith((*UNITS, *DIMENSIONLESS))] == []


def test_a_knob_with_a_unit_gets_it_unless_its_name_says_it():
    assert knob_column(Knob("row_bytes", "hardware", (1024,), "B")) == "row_bytes"
    assert knob_column(Knob("clock", "hardware", (800,), "MHz")) == "clock_MHz"


def test_rows_are_evaluations_in_order(tmp_path):
    run = finished_run(tmp_path)
    trials = trials_frame(run.problem, run.evaluations)
    assert trials["point"].tolist() == list(range(len(run.evaluations)))
    assert trials["latency_ns"].tolist() == [item.latency_ns for item in run.evaluations]
    assert tuple(trials.index[trials["is_pareto"]]) == tuple(sorted(front_of(run)))
    assert len(tasks_frame(run.problem, run.evaluations)) == len(run.evaluations) * len(run.problem.tasks)


def test_no_operator_beats_the_bound_over_all_schedules(tmp_path):
    run = finished_run(tmp_path)
    tasks = tasks_frame(run.problem, run.evaluations)
    assert (tasks["lower_bound_any_schedule_cycles"] <= tasks["cycles"]).all()
    shares = tasks["lower_bound_any_schedule_share"]
    assert shares.between(0, 1, inclusive="right").all()
    assert shares.median() > 0.3
    assert (tasks["raw_bandwidth_bound_cycles"] <= tasks["raw_row_bound_cycles"]).all()
    assert tasks_frame(run.problem, ()).columns.tolist() == tasks.columns.tolist()


def test_front_is_sorted_by_latency_with_its_verdicts(tmp_path):
    run = finished_run(tmp_path)
    pareto = pareto_frame(run.problem, run.evaluations, run.numerics)
    assert pareto["latency_ns"].is_monotonic_increasing
    assert pareto["point"].tolist() == list(front_of(run))
    assert set(pareto["numerics"]) == {"passed"}


def test_what_is_not_modelled_is_empty_and_never_zero(tmp_path):
    run = finished_run(tmp_path)
    first, *others = run.evaluations
    bare = replace(first, details=tuple(pair for pair in first.details if pair[0] != "energy_link_pj"))
    run = replace(run, result=replace(run.result, evaluations=(bare, *others)))
    write_tables(run)
    assert pd.read_parquet(tmp_path / "trials.parquet")["energy_link_pj"].isna().tolist() == [True] + [False] * len(
        others
    )
    text = (tmp_path / "trials.csv").read_text().splitlines()
    assert text[1].split(",")[text[0].split(",").index("energy_link_pj")] == ""


def test_equal_runs_give_equal_bytes(tmp_path):
    names = ("pareto.csv", "trials.csv", "tasks.csv", "tables/pareto.tex")
    for folder in ("one", "two"):
        write_tables(finished_run(tmp_path / folder))
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_latex_escapes_what_has_a_meaning():
    assert tex_escape("50%_of {x} & #1 \\") == r"50\%\_of \{x\} \& \#1 \textbackslash{}"


def test_a_run_without_evaluations_leaves_tables_without_rows(tmp_path):
    write_tables(empty_run(tmp_path))
    assert len(pd.read_parquet(tmp_path / "trials.parquet")) == 0
    assert len((tmp_path / "pareto.csv").read_text().splitlines()) == 1


def test_hand_mapping_is_found_among_the_points(tmp_path):
    assert hand_point(finished_run(tmp_path)) == 0
