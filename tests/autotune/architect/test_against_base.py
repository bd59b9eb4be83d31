"""Does the comparison with the base device hold what it says: power, capacity, host, and every case of the laws?"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune.architect.against_base import CURRENTS, AgainstBase, AtCase, Rival, against_base
from autotune.architect.sentences import against_lines
from autotune.decode_problem import DecodeProblem
from autotune.feasibility import Feasibility
from autotune.finished import FinishedRun
from autotune.layout import clean
from autotune.problem import Evaluation
from autotune.result import SearchResult, StopReason
from autotune.roofline import NO_ROOFLINE
from configs.laws import LAW_CASES
from tests.small_workloads import small_problem


def with_knobs(problem: DecodeProblem, **values: int | str) -> Evaluation:
    """Return the evaluation of the least-bound baseline with some hardware knobs changed."""
    codes = problem.named_baselines()["overlapped"].copy()
    for column, knob in enumerate(problem.knobs):
        if knob.group == "hardware" and knob.name in values:
            codes[column] = knob.values.index(values[knob.name])
    design = clean(problem, codes[None, :])
    assert len(design) == 1, problem.reasons(codes)
    return problem.evaluate(design[0])


def run_of(folder: Path, evaluations: list[Evaluation]) -> FinishedRun:
    result = SearchResult(tuple(evaluations), (), NO_ROOFLINE, None, StopReason.BUDGET, "", 0, Feasibility(0, 0, 0, ()))
    return FinishedRun(folder, {}, small_problem(), result, {})


def test_a_faster_device_of_more_power_does_not_beat_the_base(tmp_path: Path):
    problem = small_problem()
    base, wider = with_knobs(problem), with_knobs(problem, row_buffers=2)
    assert wider.latency_ns < base.latency_ns
    assert wider.energy_pj / wider.latency_ns > base.energy_pj / base.latency_ns
    found = against_base(run_of(tmp_path, [base, wider]))
    assert found is not None
    assert (found.base_point, found.beating, found.rivals) == (0, 0, ())


def test_energy_that_the_host_takes_over_does_not_count(tmp_path: Path):
    base, rival = with_knobs(small_problem()), with_knobs(small_problem(), buffer_ports=2)
    details = dict(base.details)
    rival = replace(rival, latency_ns=base.latency_ns * 0.99, energy_pj=base.energy_pj * 0.9)
    moved = replace(
        rival, details=tuple((details | {"energy_host_pj": details["energy_host_pj"] + base.energy_pj}).items())
    )
    assert against_base(run_of(tmp_path, [base, rival])).beating == 1
    assert against_base(run_of(tmp_path, [base, moved])).beating == 0


def test_a_device_that_differs_in_nothing_that_acts_is_simulated_to_the_same_at_every_case(tmp_path: Path):
    base, same = with_knobs(small_problem()), with_knobs(small_problem(), buffer_ports=2)
    same = replace(same, latency_ns=base.latency_ns * 0.99, energy_pj=base.energy_pj * 0.9)
    found = against_base(run_of(tmp_path, [base, same]))
    ratios = [(item.latency_ratio, item.energy_ratio, item.power_ratio) for item in found.rivals[0].cases]
    assert [item.case for item in found.rivals[0].cases] == list(LAW_CASES)
    assert np.array(ratios) == pytest.approx(1)
    assert not found.rivals[0].always


def test_bounds_that_are_all_above_the_base_prove_that_nothing_beats_it(tmp_path: Path):
    problem = small_problem()
    base, slower = with_knobs(problem), with_knobs(problem, unit_clock_mhz=500, rows_per_subarray=2048)
    found = against_base(run_of(tmp_path, [base, slower]))
    assert found.bounded == 2
    assert found.possible <= 1


def rival(*dominates: bool, costless: tuple[str, ...] = ()) -> AgainstBase:
    cases = tuple(AtCase(case, 0.9, 0.9, 1.0, 1.1, 0.9, fine) for case, fine in zip(LAW_CASES, dominates, strict=True))
    return AgainstBase(0, 40.0, 16.0, 1, (Rival(7, cases, all(dominates), costless),), 10, 3)


def test_a_rival_that_fails_at_one_case_is_said_to_fail_there():
    assert "does not do so at adverse constants" in list(against_lines(rival(True, True, True, False)))[1]
    assert "low, nominal, high and adverse constants alike" in list(against_lines(rival(True, True, True, True)))[1]


def test_knobs_without_a_price_are_named():
    assert "not modelled: host_link" in list(against_lines(rival(True, True, True, True, costless=("host_link",))))[1]


def test_every_case_of_the_laws_has_its_currents():
    assert set(CURRENTS) == set(LAW_CASES)
