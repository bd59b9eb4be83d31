"""Energy is conserved: on simulated steps the places add up, work scales it, and idle channels only stand by."""

from dataclasses import replace

import numpy as np
import pytest

from autotune.layout import clean, layout_of
from autotune.sampling import stratified
from autotune.system_energy import HOST_LINE, energy_lines, total_pj
from compiler.device_table import device_table
from compiler.lowering import lower_steps
from configs.device import Basis
from configs.refresh import RefreshPolicy
from simulator.energy import command_energy, on_basis
from simulator.isa import CODE_OF, Kind
from simulator.timeline import StepSimulator
from tests.small_workloads import small_problem

DYNAMIC = ("energy_rows_pj", "energy_columns_pj", "energy_data_bus_pj", "energy_controller_pj", "energy_phy_pj")
PLACES = {*DYNAMIC, "energy_refresh_pj", "energy_standby_pj", "energy_link_pj", HOST_LINE}


@pytest.fixture(scope="module")
def steps():
    """Some designs, each with its problem, device, one-row table and simulated report."""
    problem = small_problem()
    donors = clean(problem, problem.baselines())
    designs = stratified(problem, layout_of(problem), np.random.default_rng(5), 40, donors)[:12]
    found = []
    for design in designs:
        system = problem.scenario.system(design)
        (step,) = lower_steps(problem.scenario.workload, problem.space.schedules(design), system, ((),))
        table = device_table((system.device,), problem.scenario.devices)
        found.append((problem.scenario, system.device, table, StepSimulator(system.device).run(step)))
    return found


@pytest.fixture(scope="module")
def evaluations():
    problem = small_problem("mixtral", 4)
    donors = clean(problem, problem.baselines())
    designs = stratified(problem, layout_of(problem), np.random.default_rng(6), 20, donors)[:8]
    return [problem.evaluate(design) for design in designs]


def test_every_place_has_its_own_line(steps):
    for step in steps:
        assert set(energy_lines(*step)) == PLACES


def test_the_sum_over_commands_is_the_dynamic_total(steps):
    for scenario, device, table, report in steps:
        lines = energy_lines(scenario, device, table, report)
        counts = report.counts.copy()
        counts[[CODE_OF[Kind.REFab], CODE_OF[Kind.REFpb]]] = 0
        one_by_one = sum(count * price for count, price in zip(counts, command_energy(device).total, strict=True))
        assert sum(lines[name] for name in DYNAMIC) == pytest.approx(one_by_one, rel=1e-12)


def test_twice_the_commands_take_twice_the_dynamic_energy_and_nothing_else(steps):
    for scenario, device, table, report in steps:
        once = energy_lines(scenario, device, table, report)
        twice = energy_lines(scenario, device, table, replace(report, counts=2 * report.counts))
        for name in PLACES:
            assert twice[name] == pytest.approx((2 if name in DYNAMIC else 1) * once[name], rel=1e-12), name


@pytest.mark.parametrize("idle", [1, 7, 32])
def test_idle_channels_cost_exactly_their_standby_and_refresh(steps, idle):
    for scenario, device, table, report in steps:
        wider = replace(table, pool=replace(table.pool, channels=table.pool.channels + idle))
        before, after = energy_lines(scenario, device, table, report), energy_lines(scenario, device, wider, report)
        latency_ns = device.nanoseconds(report.latency_cycles)
        per_bank = device.refresh.policy is RefreshPolicy.PER_BANK
        kind, turns = (Kind.REFpb, device.organisation.banks) if per_bank else (Kind.REFab, 1)
        refreshes = report.latency_cycles // (device.refresh_interval_cycles // turns)
        added = {
            "energy_standby_pj": idle * latency_ns * device.energy.standby_precharged_mw,
            "energy_refresh_pj": idle * refreshes * command_energy(device).total[CODE_OF[kind]],
        }
        for name in PLACES:
            assert after[name] - before[name] == pytest.approx(added.get(name, 0.0), rel=1e-9), name


def test_the_host_is_in_no_total(steps):
    for step in steps:
        lines = energy_lines(*step)
        assert total_pj(lines) == pytest.approx(sum(lines.values()) - lines[HOST_LINE])


def test_a_device_without_refresh_has_no_line_for_it(steps):
    scenario, device, table, report = steps[0]
    unrefreshed = device.model_copy(update={"refresh": type(device.refresh)(policy="none")})
    lines = energy_lines(replace(scenario, base=unrefreshed), unrefreshed, table, report)
    assert set(lines) == PLACES - {"energy_refresh_pj"}


def test_the_objective_is_the_datasheet_total_and_lies_above_the_typical_band(evaluations):
    for evaluation in evaluations:
        details = dict(evaluation.details)
        places = [details[name] for name in PLACES - {HOST_LINE}]
        assert evaluation.energy_pj == pytest.approx(sum(places), rel=1e-12)
        band = [details[f"energy_typical{case}_pj"] for case in ("_low", "", "_high")]
        assert 0 < band[0] < band[1] < band[2] < evaluation.energy_pj


def test_typical_lines_are_all_typical(steps):
    for scenario, device, table, report in steps:
        typical = on_basis(device, Basis.TYPICAL)
        before = energy_lines(scenario, device, table, report)
        after = energy_lines(scenario, typical, device_table((typical,), scenario.devices), report)
        for name, factor in (("energy_rows_pj", 0.485), ("energy_standby_pj", 0.485)):
            assert after[name] == pytest.approx(factor * before[name]), name
        refreshes = report.latency_cycles // table.refreshes_every
        phy = refreshes * table.pool.channels * device.energy.phy_command_pj
        assert after["energy_refresh_pj"] - phy == pytest.approx(0.485 * (before["energy_refresh_pj"] - phy))
        for name in ("energy_data_bus_pj", "energy_controller_pj", "energy_phy_pj", "energy_link_pj", HOST_LINE):
            assert after[name] == before[name], name
