"""Does moving one constraint of a device move what the files say binds it, as their prose says?"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.architect.binding import CadenceLimit, binding_limits, limits_of, with_dispatcher
from autotune.architect.stored_run import result_of
from autotune.causes import CHANNEL_CAUSES, Cause
from autotune.constraints import prose, write_constraints
from autotune.decode_problem import DecodeProblem
from autotune.finished import FinishedRun, front_of
from autotune.goals import Goals, goals_of
from autotune.hand_mapping import hand_mapping, overlapped_mapping
from configs.knobs import base_knobs
from simulator.laws.figures import device_figures
from simulator.laws.timing import cadence_terms
from tests.autotune.finished_runs import finished_run
from tests.small_workloads import small_problem

PROBLEM = small_problem()
BINDS, KNEES = "Which limit binds", "Where each hardware knob stops paying"


def run_of(
    folder: Path, *devices: dict[str, int | str], goals: Goals | None = None, problem: DecodeProblem = PROBLEM
) -> FinishedRun:
    """Return a run whose points are devices that differ from the base by these knobs, with a plain mapping each."""
    found = []
    for knobs in devices:
        hardware = replace(base_knobs(problem.scenario.base), **knobs)
        designs = [
            problem.space.encode(hardware, mapping(problem.space.schedulables, problem.scenario.system_of_base))
            for mapping in (hand_mapping, overlapped_mapping)
        ]
        legal = [codes for codes in designs if codes is not None and problem.legal(codes[None, :])[0]]
        found.append(problem.evaluate(problem.canonical(legal[0][None, :])[0]))
    goals = goals or goals_of(("latency", "energy", "area"), (), problem.knobs)
    return FinishedRun(folder, {"model": "tiny"}, problem, result_of(found, goals), {})


def file_of(tmp_path: Path, problem: DecodeProblem = PROBLEM, **knobs: int | str) -> dict[str, Any]:
    """Return the first binding limit of the file of a run with one device, and the text beside the file."""
    (tmp_path / "run").mkdir(exist_ok=True)
    as_json, as_prose = write_constraints(run_of(tmp_path / "run", knobs, problem=problem))
    limit: dict[str, Any] = json.loads(as_json.read_text())["binding_limits"][0]
    return limit | {"text": as_prose.read_text()}


def test_a_wider_link_takes_a_smaller_share(tmp_path):
    batched = small_problem(batch=8)
    narrow, wide = (file_of(tmp_path, batched, host_link=name) for name in ("pcie5-x8", "pcie6-x16"))
    assert wide["shares_of_latency"]["link"] < narrow["shares_of_latency"]["link"]
    assert "Link is the largest part of the latency of point 0" in narrow["text"]
    assert "Link is the largest part" not in wide["text"]


def test_a_low_power_cap_sets_the_cadence_and_a_high_one_does_not(tmp_path):
    capped, free = (file_of(tmp_path, mac_power_cap_percent=value) for value in (25, 200))
    assert capped["cadence_set_by"] == ["power cap"]
    assert "power cap" not in free["cadence_set_by"]
    assert capped["shares_of_latency"]["multiply cadence"] > free["shares_of_latency"]["multiply cadence"]
    assert "is set by power cap; relaxed by a higher power cap" in capped["text"]


def test_a_slow_unit_clock_sets_the_cadence(tmp_path):
    assert file_of(tmp_path, unit_clock_mhz=500)["cadence_set_by"] == ["unit clock"]


def test_a_slow_dispatcher_without_loops_is_busier_and_binds_once_it_is_busier_than_the_channels(tmp_path):
    slow = file_of(tmp_path, instructions_per_64_cycles=1, sequencer_loop_depth=0)
    quick = file_of(tmp_path, instructions_per_64_cycles=64, sequencer_loop_depth=4)
    assert slow["dispatcher_busy_share"] > quick["dispatcher_busy_share"]
    assert slow["instructions_per_token"] > quick["instructions_per_token"]
    assert slow["cause"] == "dispatcher"
    assert "Dispatcher is the largest part of the latency" in slow["text"]
    assert quick["cause"] != "dispatcher"


def test_half_the_activation_current_adds_to_the_share_of_activates_or_rows(tmp_path):
    half, twice = (file_of(tmp_path, activation_current_percent=value) for value in (50, 200))
    assert half["shares_of_latency"]["activation budget"] >= twice["shares_of_latency"]["activation budget"]


def test_wider_read_out_takes_a_smaller_share(tmp_path):
    name = "accumulator read-out over the bus"
    narrow, wide = (file_of(tmp_path, readout_bytes=value)["shares_of_latency"][name] for value in (8, 32))
    assert wide < narrow


def test_fewer_channels_of_more_rows_keep_the_share_of_capacity(tmp_path):
    few, many = (file_of(tmp_path, channels=value)["capacity_used_share"] for value in (16, 64))
    assert few < 1
    assert many < 1


def test_a_requirement_is_tight_within_two_percent_of_its_limit(tmp_path):
    area = run_of(tmp_path, {}).evaluations[0].area_mm2
    for factor, tight in ((1.01, True), (1.03, False)):
        goals = goals_of(("latency", "energy", "area"), (f"area_mm2 <= {factor * area:.4f}",), PROBLEM.knobs)
        limit = binding_limits(run_of(tmp_path, {}, goals=goals))[0]
        assert bool(limit.tight_requirements) == tight


def test_cadence_terms_are_the_cadence_of_the_base_device():
    base = PROBLEM.scenario.base
    terms = cadence_terms(base.timing, base, base_knobs(base), base.energy.all_bank_mac_pj)
    assert terms.cycles == device_figures(base, base_knobs(base)).timing["nCCDMAC"] == base.timing["nCCDMAC"]


def test_named_terms_are_as_long_as_the_cadence(tmp_path):
    run = finished_run(tmp_path)
    for item in limits_of(run, tuple(range(len(run.evaluations)))):
        assert item.cadence_set_by
        codes = np.array([run.evaluations[item.point].codes])
        knobs, base = run.problem.space.hardware(codes[0]), run.problem.scenario.base
        figures = device_figures(base, knobs)
        terms = cadence_terms(figures.timing, base, knobs, figures.energy["all_bank_mac_pj"])
        lengths = {
            CadenceLimit.COLUMN: terms.column_access,
            CadenceLimit.PORTS: terms.buffer_ports,
            CadenceLimit.UNIT: terms.unit_clock,
            CadenceLimit.POWER: terms.power_cap,
        }
        assert all(lengths[limit] == terms.cycles for limit in item.cadence_set_by)


@pytest.mark.parametrize(("busy", "binds"), [(0.3, False), (0.59, False), (0.61, True), (0.95, True)])
def test_the_dispatcher_counts_where_it_is_busier_than_the_channels(busy, binds):
    bounds = dict.fromkeys(Cause, 0.0) | {Cause.MULTIPLY: 0.4, Cause.ROWS: 0.2, Cause.LINK: 0.05}
    shares = with_dispatcher(bounds, busy)
    assert (max(shares, key=lambda cause: shares[cause]) is Cause.DISPATCHER) == binds
    assert sum(shares.values()) <= 1 + 1e-12
    assert binds == all(shares[cause] == 0 for cause in CHANNEL_CAUSES)


def test_knobs_of_little_effect_share_a_sentence_and_the_others_have_one_each(tmp_path):
    run = finished_run(tmp_path)
    lines = next(section.lines for section in prose(run) if section.heading == KNEES)
    content = json.loads(write_constraints(run)[0].read_text())
    paying = [item for item in content["knees"] if item["spread"] >= content["least_spread"]]
    assert sum(" at lowest latency " in line for line in lines) == len(paying)
    assert len(lines) <= len(paying) + 3
    assert front_of(run)
