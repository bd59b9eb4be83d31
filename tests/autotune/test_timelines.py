"""Looking inside designs: what a run leaves for the points it shows, and points read back from its folder."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from autotune.finished import front_of, shown_points, written_points
from autotune.outputs import write_outputs
from autotune.stored_points import PACING, stored_point
from autotune.tables import TRIALS_FILE
from autotune.timelines import (
    TIMELINE_FILE,
    UTILISATION_FILE,
    look_inside,
    save_timeline,
    task_frame,
    utilisation_frame,
)
from configs.errors import UserError
from simulator.channel_use import busy_cycles, channel_use
from simulator.step_trace import Detail
from simulator.utilisation import utilisation
from tests.autotune.finished_runs import finished_run


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    run = finished_run(tmp_path_factory.mktemp("run"))
    return run, write_outputs(run)


def test_every_shown_point_has_a_timeline_and_a_table_and_no_other(written):
    run, _ = written
    with_timeline = {int(path.parent.name) for path in (run.folder / "points").glob(f"*/{TIMELINE_FILE}")}
    with_table = {int(path.parent.name) for path in (run.folder / "points").glob(f"*/{UTILISATION_FILE}")}
    assert with_timeline == with_table == {item.point for item in shown_points(run)}
    assert with_timeline <= set(written_points(run))


def test_report_links_to_files_that_are_there(written):
    run, paths = written
    text = paths.report.read_text()
    for item in shown_points(run):
        for name in (TIMELINE_FILE, UTILISATION_FILE):
            link = f"points/{item.point}/{name}"
            assert f'href="{link}"' in text
            assert (run.folder / link).is_file()


def test_timelines_and_tables_are_equal_byte_for_byte_when_written_again(written, tmp_path):
    run, _ = written
    write_outputs(replace(run, folder=tmp_path))
    for item in shown_points(run):
        for name in (TIMELINE_FILE, UTILISATION_FILE):
            place = f"points/{item.point}/{name}"
            assert (run.folder / place).read_bytes() == (tmp_path / place).read_bytes()


def test_timeline_is_gzipped_json_that_names_the_model(written):
    run, _ = written
    content = gzip.decompress((run.folder / f"points/{front_of(run)[0]}/{TIMELINE_FILE}").read_bytes())
    assert json.loads(content)["traceEvents"][0]["args"]["name"].startswith(run.problem.scenario.workload.model)


def test_points_are_read_back_as_they_were_evaluated(written):
    run, _ = written
    for point, item in enumerate(run.evaluations):
        stored = stored_point(run.folder, run.problem.knobs, point)
        assert (stored.point, stored.codes, stored.latency_ns) == (point, item.codes, item.latency_ns)
        assert stored.slowdown == dict(item.details)[PACING]
    assert stored_point(run.folder, run.problem.knobs).point == front_of(run)[0]


def test_looking_inside_finds_the_latency_and_the_duty_of_the_evaluation(written):
    run, _ = written
    for item in shown_points(run):
        evaluation = run.evaluations[item.point]
        details = dict(evaluation.details)
        inside = look_inside(run.problem, evaluation.codes, int(details[PACING]))
        assert inside.latency_ns == evaluation.latency_ns
        frame = utilisation_frame(inside.log)
        assert frame["step_share"].sum() == pytest.approx(1)
        assert frame["link_down_bytes"].sum() + frame["link_up_bytes"].sum() == details["link_bytes_per_device"]
        assert _duty_of_all_channels(inside) == pytest.approx(details["mac_duty"])


def _duty_of_all_channels(inside):
    """The channel that is logged takes part in every program; others idle in some, and the evaluation is their mean."""
    units = channel_use(inside.log).units
    busy = [busy_cycles(item.runs, units) * item.phase.active_channels for item in inside.log.executions]
    return sum(busy) / inside.channels / inside.log.report.latency_cycles


def test_tasks_are_the_sums_of_their_operators(written):
    run, _ = written
    inside = look_inside(run.problem, run.evaluations[front_of(run)[0]].codes, 1)
    operators, tasks = utilisation_frame(inside.log), task_frame(inside.log)
    summed = operators.groupby("task", sort=False)[["cycles", "row_hits", "host_ns"]].sum()
    assert (tasks.set_index("task")[list(summed)] == summed).all(axis=None)
    assert tasks["occurrences"].sum() == len(utilisation(inside.log))


def test_table_without_the_point_or_of_another_version_is_a_users_mistake(written, tmp_path):
    run, _ = written
    with pytest.raises(UserError, match="point from 0 to"):
        stored_point(run.folder, run.problem.knobs, len(run.evaluations))
    with pytest.raises(UserError, match="--resume"):
        stored_point(tmp_path, run.problem.knobs)
    table = pd.read_parquet(run.folder / TRIALS_FILE)
    for changed, expected in ((table.drop(columns="lanes"), "lanes"), (table.assign(lanes=np.int64(7)), "lanes")):
        changed.to_parquet(tmp_path / TRIALS_FILE)
        with pytest.raises(UserError, match=expected):
            stored_point(tmp_path, run.problem.knobs)
    (tmp_path / TRIALS_FILE).write_bytes(b"no table")
    with pytest.raises(UserError, match="damaged"):
        stored_point(tmp_path, run.problem.knobs)


def test_any_design_of_a_search_can_be_looked_into(written, tmp_path):
    run, _ = written
    for point, evaluation in enumerate(run.evaluations[:6]):
        inside = look_inside(run.problem, evaluation.codes, int(dict(evaluation.details)[PACING]))
        save_timeline(inside, Detail.FIRST, tmp_path / f"{point}.json")
        assert json.loads((tmp_path / f"{point}.json").read_text(encoding="utf-8"))["traceEvents"]
