"""Sensitivity of a finished run: a move is one knob, figures follow from simulated designs, and it can be resumed."""

import io
import json
from math import log

import numpy as np
import pytest

from autotune.architect import sensitivity
from autotune.architect.effects import Simulated, interactions_of
from autotune.architect.importance import rank_agreement
from autotune.architect.neighbours import Centre, Move, Neighbour, moves_from, widened
from autotune.architect.sensitivity import DESIGNS, analyse, designs_of
from autotune.architect.sensitivity_report import sensitivity_json, write_sensitivity
from autotune.architect.stored_run import stored_run
from autotune.explore import explore
from autotune.interrupt import StopFlag
from autotune.problem import HARDWARE_GROUP, Evaluation, Knob
from autotune.run_settings import RunSettings
from configs.errors import UserError
from tests.small_workloads import small_problem
from tests.tiny_models import raw_config

SIZES = {"hidden_size": 128, "intermediate_size": 384, "vocab_size": 600, "max_position_embeddings": 512}


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """A small run that left two knobs as they are, and what surrounds its fastest point."""
    folder = tmp_path_factory.mktemp("run")
    model = folder.with_suffix(".json")
    model.write_text(json.dumps(raw_config("llama", **SIZES)), encoding="utf-8")
    fixed = ("temperature_c=85", "harvested_banks=0")
    explore(RunSettings(str(model), context=300, budget=12, restrictions=fixed), out=folder, workers=1)
    return folder, analyse(folder, 1, 1, io.StringIO())


def test_every_design_beside_a_point_differs_from_it_by_the_knobs_moved(analysed):
    _, found = analysed
    hardware = found.around.layout.hardware
    for item in found.plan:
        centre = np.array(found.around.centres[item.centre].codes)
        for codes in item.designs:
            moved = {int(column) for column in hardware if codes[column] != centre[column]}
            made = {move.column for move in item.moves}
            # A knob may bring others to the base device's values where these no longer have an effect.
            names = {found.around.problem.knobs[column].name for column in moved - made}
            assert names <= {"banks_per_unit", "command_banks", "buffer_ports"}
            assert made <= moved
            assert found.around.problem.legal(np.array([codes]))[0]


def test_knobs_that_the_run_fixed_are_moved_too(analysed):
    _, found = analysed
    assert set(found.fixed) == {"temperature_c", "harvested_banks"}
    moved = {move.knob for item in found.plan for move in item.moves}
    assert set(found.fixed) <= moved


def test_every_knob_is_moved_or_said_to_have_no_effect_or_not_to_fit(analysed):
    _, found = analysed
    moved = {move.knob for item in found.plan for move in item.moves}
    assert moved == {knob.name for knob in found.around.problem.knobs if knob.group == HARDWARE_GROUP}
    assert all(item.designs or item.reason for item in found.plan)


def test_changes_are_those_of_the_designs_they_name(analysed):
    _, found = analysed
    for effect in found.effects:
        for change in effect.at:
            own, moved = (found.simulated[number].evaluation for number in (change.reference, change.design))
            assert change.latency == pytest.approx(moved.latency_ns / own.latency_ns - 1)
            assert change.objectives[1] == pytest.approx(log(moved.energy_pj / own.energy_pj))
            assert change.area == pytest.approx(moved.area_mm2 / own.area_mm2 - 1)
    sizes = [item.latency_size for item in found.effects]
    assert sizes == sorted(sizes, reverse=True)


def test_designs_of_an_interaction_give_its_figure(analysed):
    _, found = analysed
    assert found.interactions
    for item in found.interactions:
        if item.latency is not None:
            both, first, second, own = (found.simulated[number].evaluation.latency_ns for number in item.designs)
            assert item.latency == pytest.approx(both * own / (first * second) - 1)


def test_files_are_plain_and_name_only_designs_that_were_simulated(analysed):
    folder, found = analysed
    paths = write_sensitivity(found)
    assert all(path.stat().st_size > 0 for path in paths)
    content = json.loads((folder / "sensitivity.json").read_text())
    assert content == json.loads(json.dumps(sensitivity_json(found)))
    assert content["schema"] == "sensitivity/1"
    numbers = {item["design"] for item in content["designs"]}
    assert {change["design"] for item in content["effects"] for change in item["at"]} <= numbers
    assert len((folder / DESIGNS).read_text().splitlines()) == len(numbers)


def test_a_second_analysis_simulates_nothing_and_finds_the_same(analysed):
    folder, found = analysed
    told = io.StringIO()
    again = analyse(folder, 1, 1, told)
    assert "simulating" not in told.getvalue()
    assert sensitivity_json(again) == sensitivity_json(found)


def test_an_interrupted_analysis_goes_on_from_what_is_on_record(analysed, monkeypatch):
    folder, found = analysed
    lines = (folder / DESIGNS).read_text().splitlines(keepends=True)
    kept = len(lines) - 5
    (folder / DESIGNS).write_text("".join(lines[:kept]) + lines[kept][:30])
    told = io.StringIO()
    flag = StopFlag(requested=True)
    monkeypatch.setattr(sensitivity, "stop_on_interrupt", lambda: _entered(flag))
    assert analyse(folder, 1, 1, told) is None
    assert f"stopped with {kept} of" in told.getvalue()
    flag.requested = False
    assert sensitivity_json(analyse(folder, 1, 1, told)) == sensitivity_json(found)
    assert len((folder / DESIGNS).read_text().splitlines()) == len(lines)


class _entered:  # noqa: N801 - a context manager, used like a function
    def __init__(self, flag):
        self.flag = flag

    def __enter__(self):
        return self.flag

    def __exit__(self, *error):
        return None


def test_evaluations_of_another_program_are_not_mixed_in(analysed, tmp_path):
    folder, _ = analysed
    stored, told = stored_run(folder), io.StringIO()
    for name in (DESIGNS, sensitivity.MADE_FROM):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    sensitivity.begin(tmp_path, stored, told)
    assert (tmp_path / DESIGNS).exists()
    (tmp_path / sensitivity.MADE_FROM).write_text("{}\n")
    sensitivity.begin(tmp_path, stored, told)
    assert "beginning anew" in told.getvalue()
    assert not (tmp_path / DESIGNS).exists()


def test_a_point_that_is_no_longer_what_it_was_is_refused(analysed):
    folder, _ = analysed
    path = folder / "evaluations.jsonl"
    kept = path.read_text()
    path.write_text("".join(_slowed(line) for line in kept.splitlines()))
    try:
        with pytest.raises(UserError, match="the program has changed since"):
            analyse(folder, 1, 1, io.StringIO())
    finally:
        path.write_text(kept)


def _slowed(line):
    fields = json.loads(line)
    return json.dumps(fields | {"latency_ns": 1.5 * fields["latency_ns"]}) + "\n"


def test_a_folder_that_is_no_finished_run_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"no run\.yaml"):
        analyse(tmp_path, 1, 1, io.StringIO())


def test_numbers_move_to_their_neighbours_and_names_to_all_others():
    problem = small_problem()
    codes = tuple(int(code) for code in problem.baselines()[0])
    moves = moves_from(problem, codes)
    channels = [(move.before, move.after, move.step) for move in moves if move.knob == "channels"]
    assert channels == [(32, 16, "down"), (32, 64, "up")]
    levels = {move.after for move in moves if move.knob == "pim_level"}
    assert levels == {"bank-group", "buffer-die"}


def test_designs_keep_their_values_in_a_wider_space():
    narrow, wide = (Knob("a", HARDWARE_GROUP, (4, 1)),), (Knob("a", HARDWARE_GROUP, (1, 2, 4)),)
    assert widened(narrow, wide, np.array([[0], [1]])).tolist() == [[2], [0]]


def test_two_moves_that_multiply_do_not_interact_and_a_shared_limit_does():
    moves = tuple(Move(column, name, "", 1, 2, "up") for column, name in enumerate("ab"))
    plan = [Neighbour(0, lot, ((number,),)) for number, lot in enumerate([(), moves[:1], moves[1:], moves])]
    centre = (Centre("balanced", 0, (0,), by_latency=False),)

    def simulated(*latencies):
        return {
            (number,): Simulated(number, Evaluation((number,), value, 1.0, 1.0, ()), (value, 1.0, 1.0), True)
            for number, value in enumerate(latencies)
        }

    assert interactions_of(centre, plan, simulated(100, 50, 80, 40))[0].latency == pytest.approx(0)
    shared = interactions_of(centre, plan, simulated(100, 50, 50, 50))[0]
    assert shared.latency == pytest.approx(1.0)
    assert shared.notable
    assert designs_of(plan) == ((0,), (1,), (2,), (3,))


def test_rank_agreement_is_one_for_equal_orders_and_none_for_too_few_knobs():
    assert rank_agreement({"a": 3, "b": 2, "c": 1}, {"a": 0.3, "b": 0.2, "c": 0.1, "d": 9})[0] == pytest.approx(1)
    assert rank_agreement({"a": 3, "b": 2, "c": 1}, {"a": 0.1, "b": 0.2, "c": 0.3})[0] == pytest.approx(-1)
    assert rank_agreement({"a": 3, "b": 2}, {"a": 1, "b": 2}) == (None, 2)
    assert rank_agreement({"a": 3, "b": 2, "c": 1}, {"a": 0, "b": 0, "c": 0}) == (None, 3)
