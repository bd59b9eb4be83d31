"""The report, the sheet of provenance and the whole of what a run leaves."""

import json
import re
from dataclasses import replace

import pytest

from autotune.finished import front_of, written_points
from autotune.outputs import write_outputs
from autotune.provenance import commented_keys, device_constants, provenance
from autotune.report import area_cases_mm2, write_report
from configs.device import load_device
from tests.autotune.finished_runs import empty_run, finished_run


def test_hostile_names_are_escaped(tmp_path):
    name = "<script>alert('model')</script>"
    run = finished_run(tmp_path, model=name, hardware='"><img src=x onerror=alert(1)>')
    text = write_report(run, ()).read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The run's folder with the folder of a point that is no longer on the front, and everything written into it."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "points" / "9999").mkdir(parents=True)
    (folder / "points" / "9999" / "device.yaml").touch()
    run = finished_run(folder)
    return run, write_outputs(run)


def test_report_needs_no_network(written):
    run, paths = written
    text = paths.report.read_text()
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", text)
    assert text.count("data:image/svg+xml;base64,") >= 7
    assert str(run.folder) not in text


def test_outputs_are_all_there(written):
    run, paths = written
    every = (*paths.tables, *paths.figures, *paths.constraints, paths.provenance, paths.report)
    assert all(path.stat().st_size > 0 for path in every)
    assert sorted(path.name for path in (run.folder / "points").iterdir()) == sorted(
        str(point) for point in written_points(run)
    )


def test_an_interrupted_run_without_evaluations_still_has_a_report(tmp_path):
    assert "No design was evaluated" in write_outputs(empty_run(tmp_path)).report.read_text()


def test_nominal_area_case_is_the_reported_area(tmp_path):
    run = finished_run(tmp_path)
    for point in front_of(run):
        cases = area_cases_mm2(run, point)
        assert len(cases) == 3
        assert cases[1] == pytest.approx(run.evaluations[point].area_mm2)


def test_numerics_that_were_not_checked_say_so(tmp_path):
    run = replace(finished_run(tmp_path), numerics={})
    assert "not checked" in write_report(run, ()).read_text()


def test_comments_are_found_beside_and_above_their_keys():
    text = "# the file\na: 1  # one\nb:\n  # of the block\n  {c: 2,\n   # later\n   d: 3}\ne: 4\n"
    assert commented_keys(text) == {"a": "one", "b.c": "of the block", "b.d": "later"}


def test_every_constant_of_the_device_with_a_comment_has_a_source():
    constants = {item.name: item for item in device_constants(load_device("gddr6-aim"), "gddr6-aim")}
    assert constants["unit.lanes"].value == 16
    assert "ISSCC'22" in constants["unit.lanes"].source
    assert "tREFI" in constants["timing.nREFI"].source
    assert constants["area.unit_mm2.high"].source == constants["area.unit_mm2.low"].source != ""


def test_provenance_names_versions_and_no_paths(tmp_path):
    sheet = provenance(finished_run(tmp_path, hardware="/home/someone/device.yaml"))
    assert {"numpy", "torch"} <= set(sheet["packages"])
    assert "/home/" not in json.dumps(sheet)
    assert sheet["seed"] == 0


def test_report_and_provenance_say_on_which_basis_energy_was_minimised(tmp_path):
    run = finished_run(tmp_path)
    text = write_report(run, ()).read_text()
    details = dict(run.evaluations[front_of(run)[0]].details)
    nominal, low, high = (f"{details[f'energy_typical{case}_pj'] * 1e-9:.4g}" for case in ("", "_low", "_high"))
    assert f"{nominal} ({low} to {high})" in text
    assert "minimised the energy with datasheet currents" in text
    assert provenance(run)["energy_basis"] == {"energy_pj": "datasheet", "energy_typical_pj": "typical"}
