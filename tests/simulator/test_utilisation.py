"""The log of a step agrees with its report, and the utilisation of operators with the log."""

from itertools import pairwise

import numpy as np
import pytest

from configs.device import load_device
from configs.refresh import Refresh, RefreshPolicy
from simulator.channel import NO_EVENTS
from simulator.command_runs import runs_of
from simulator.engine import Engine
from simulator.engine_timing import STEP
from simulator.isa import CODE_OF, KINDS, Kind, Program
from simulator.issue_log import IssueLog
from simulator.program_code import flatten
from simulator.program_text import parse_program
from simulator.row_log import BankWatch, OpenRow
from simulator.timeline import StepSimulator
from simulator.usage import usage
from simulator.utilisation import use_by_task, utilisation
from tests.logged_steps import logged_step, small_step
from tests.unit_devices import unit_device

MAPPINGS = ("hand", "overlapped")
DEVICE = load_device("gddr6-aim")


def _log_of(text: str) -> tuple[Engine, IssueLog]:
    engine = Engine(DEVICE)
    program: Program = parse_program(text)
    _, log = engine.run_logged(flatten(program), engine.fresh_state(), np.zeros(0, dtype=np.int64))
    return engine, log


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_logging_does_not_change_the_step(mapping):
    device, step = small_step(mapping)
    plain, logged = StepSimulator(device).run(step), logged_step(mapping).report
    assert plain.latency_cycles == logged.latency_cycles
    assert plain.owner_cycles == logged.owner_cycles
    assert (plain.counts == logged.counts).all()


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_runs_hold_every_command_of_the_report(mapping):
    log = logged_step(mapping)
    counts = sum(item.runs.counts() * float(item.phase.active_channels) for item in log.executions)
    assert counts == pytest.approx(log.report.counts)
    assert sum(item.runs.count.sum() for item in log.executions) == log.report.commands_simulated
    assert sum(item.refreshes for item in log.executions) == log.report.refreshes


def test_runs_give_back_the_cycles_of_the_log():
    engine, log = _log_of("ACT16 row=3\nloop 300 {\nMAC16 row=3\n}\nPREA\nTMOD\nloop 5 {\nWRGB\n}\nTMOD")
    runs = runs_of(log, engine.timing.kinds[:, STEP])
    assert len(runs) < len(log)
    cycles = [
        first + place * engine.timing.kinds[kind, STEP]
        for first, kind, count in zip(runs.first_cycle, runs.kind, runs.count, strict=True)
        for place in range(count)
    ]
    assert cycles == log.cycle.tolist()
    assert np.repeat(runs.kind, runs.count).tolist() == log.kind.tolist()


def test_runs_of_nothing_are_none():
    empty = np.zeros(0, dtype=np.int64)
    assert len(runs_of(IssueLog(empty, empty, empty, empty), np.zeros(len(KINDS), dtype=np.int64))) == 0


def test_first_access_of_an_open_row_is_no_hit_and_the_others_are():
    engine, log = _log_of(
        "ACT16 row=3\nloop 10 {\nMAC16 row=3\n}\nPREA\nACT16 row=4\nPREA\nACT16 row=4\nMAC16 row=4\nPREA"
    )
    use = BankWatch.of(DEVICE, engine.timing).use(runs_of(log, engine.timing.kinds[:, STEP]))
    assert (use.activations, use.accesses, use.hits) == (3, 11, 9)
    assert [(row.row, row.first_bank, row.banks) for row in use.rows] == [(3, 0, 16), (4, 0, 16), (4, 0, 16)]


def test_access_of_all_banks_is_no_hit_when_one_of_them_was_activated_since():
    text = "ACT16 row=3\nMAC16 row=3\nPRE bank=5\nACT bank=5 row=3\nMAC16 row=3\nMAC16 row=3\nPREA"
    engine, log = _log_of(text)
    use = BankWatch.of(DEVICE, engine.timing).use(runs_of(log, engine.timing.kinds[:, STEP]))
    assert (use.activations, use.accesses, use.hits) == (2, 3, 1)
    assert [(row.first_bank, row.banks) for row in use.rows] == [(5, 1), (0, 5), (5, 1), (6, 10)]


def test_first_access_of_a_latched_row_is_no_hit_whatever_is_opened_beside_it():
    device = unit_device(2, refresh=Refresh(policy=RefreshPolicy.NONE))
    multiplies = "loop 5 {\nMACL16 row=3\n}\n"
    text = f"ACT16 row=3\nLATCH16 row=3\n{multiplies}ACT16 row=4\n{multiplies}LATCH16 row=4\nMACL16 row=4\n"
    engine = Engine(device)
    report, log = engine.run_logged(flatten(parse_program(text)), engine.fresh_state(), NO_EVENTS)
    use = BankWatch.of(device, engine.timing).use(runs_of(log, engine.timing.kinds[:, STEP]))
    assert (use.activations, use.accesses, use.hits) == (2, 11, 9)
    assert [row.row for row in use.rows] == [3, 4]
    found = usage(device, engine.table, np.array(report.counts))
    assert (found.row_accesses, found.row_hits) == (11 * 16, 9 * 16)
    assert found.unit_cycles == 11 * device.timing["nCCDMAC"]


def test_row_that_is_left_open_is_told_apart():
    engine, log = _log_of("ACT bank=2 row=7\nRD bank=2 row=7\nPRE bank=2\nACT bank=3 row=1")
    watch = BankWatch.of(DEVICE, engine.timing)
    use = watch.use(runs_of(log, engine.timing.kinds[:, STEP]))
    opened, _, closed, _ = log.cycle.tolist()
    assert use.rows == (OpenRow(2, 1, 7, opened, closed),)
    assert watch.left_open(5000) == (OpenRow(3, 1, 1, int(log.cycle[-1]), 5000),)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_operators_add_up_to_the_step(mapping):
    log = logged_step(mapping)
    operators, report = utilisation(log), log.report
    total = sum((item.use for item in operators[1:]), operators[0].use)
    assert [item.operator for item in operators] == list(range(len(small_step(mapping)[1].sequence)))
    assert total.moved_cycles == report.latency_cycles
    assert total.host_cycles == report.host_busy_cycles
    assert total.link_down_bytes == report.down_bytes
    assert total.link_up_bytes == report.up_bytes
    assert total.refreshes == report.refreshes
    assert total.commands == total.command_bus_cycles == report.commands_simulated
    macs = sum(item.runs.counts()[CODE_OF[Kind.MAC16]] for item in log.executions)
    assert total.mac_cycles == macs * log.device.timing["nCCDMAC"]
    assert 0 < total.row_hits < total.column_accesses
    assert sum(times for times, _ in use_by_task(operators).values()) == len(operators)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_operators_lie_within_the_step_and_are_never_more_than_busy(mapping):
    log = logged_step(mapping)
    for item in utilisation(log):
        assert 0 <= item.start_cycle < item.end_cycle <= log.report.latency_cycles
        for cycles in (item.use.mac_cycles, item.use.data_bus_cycles, item.use.command_bus_cycles):
            assert 0 <= item.use.share(cycles) <= 1


def test_jobs_of_a_server_are_its_busy_cycles_and_follow_one_another():
    log = logged_step("hand", slowdown=2)
    for server in ("host", "down", "up"):
        jobs = [job for operator in log.operators for job in operator.jobs if job.server == server]
        assert all(one.end_cycle <= next_one.start_cycle for one, next_one in pairwise(jobs))
        busy = sum(job.end_cycle - job.start_cycle for job in jobs)
        assert busy == log.report.host_busy_cycles if server == "host" else busy <= log.report.link_busy_cycles
