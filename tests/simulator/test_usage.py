"""Closed forms of what a channel used, against the log of every command; where a step's time went."""

import numpy as np
import pytest

from autotune.timelines import IDLE, ISSUING, Inside, stall_frame, summary
from configs.device import load_device
from simulator.channel import NO_EVENTS
from simulator.engine import Engine
from simulator.isa import ACTIVATES, COLUMN_KINDS, KINDS
from simulator.program_code import flatten
from simulator.program_text import parse_program
from simulator.step_log import log_step
from simulator.timeline import StepSimulator
from simulator.usage import stalls_of, usage
from tests.logged_steps import small_step

PROGRAM = """
ACT16 row=3
loop 5 {
  loop 40 {
    MAC16 row=3
  }
}
PREA
ACT bank=2 row=7
ACT bank=9 row=1
loop 30 {
  RD bank=2 row=7
}
MAC bank=9 row=1
PRE bank=2
PRE bank=9
TMOD
loop 12 {
  WRGB
}
TMOD
"""


def test_row_hits_are_those_of_a_walk_over_every_bank() -> None:
    engine = Engine(load_device("gddr6-aim"))
    report, log = engine.run_logged(flatten(parse_program(PROGRAM)), engine.fresh_state(), NO_EVENTS)
    fresh = dict.fromkeys(range(16), False)
    accesses = hits = 0
    for code, bank in zip(log.kind.tolist(), log.bank.tolist(), strict=True):
        for addressed in engine.table.addressing.banks_of(KINDS[code], bank):
            if KINDS[code] in ACTIVATES:
                fresh[addressed] = True
            elif KINDS[code] in COLUMN_KINDS:
                accesses, hits = accesses + 1, hits + (not fresh[addressed])
                fresh[addressed] = False
    found = usage(engine.device, engine.table, np.array(report.counts))
    assert (found.row_accesses, found.row_hits) == (accesses, hits)
    assert found.row_activations == accesses - hits


def test_buses_and_units_are_busy_for_counts_times_their_cycles() -> None:
    engine = Engine(load_device("gddr6-aim"))
    report = engine.run(flatten(parse_program(PROGRAM)), engine.fresh_state(), NO_EVENTS)
    found, timing = usage(engine.device, engine.table, np.array(report.counts)), engine.device.timing
    assert found.command_bus_cycles == sum(report.counts)
    assert found.data_bus_cycles == 30 * timing["nBL"] + 12 * timing["nBLGB"]
    assert found.unit_cycles == 200 * timing["nCCDMAC"] + timing["nCCDL"]


def test_stalls_are_named_by_their_row_largest_first() -> None:
    engine = Engine(load_device("gddr6-aim"), explain=True)
    report = engine.run(flatten(parse_program("ACT16\nMAC16\nloop 9 {\n  MAC16\n}")), engine.fresh_state(), NO_EVENTS)
    first, second = stalls_of(engine.table, report.stalls)
    assert (first.cause, first.cycles) == ("nRCDRDMAC (channel): ACT ACT4 ACT16 to MAC16 SCALE16", 55)
    assert (second.cause, second.cycles) == ("nCCDMAC (channel): MAC16 SCALE16 to MAC16 SCALE16 MAC EWMUL16", 9)


@pytest.mark.parametrize("mapping", ["hand", "overlapped"])
def test_the_channels_time_adds_up_to_the_step(mapping: str) -> None:
    device, step = small_step(mapping)
    log = log_step(StepSimulator(device, explain=True), step)
    frame = stall_frame(log)
    cycles = dict(zip(frame["cause"], frame["cycles"], strict=True))
    last = max(int(execution.runs.last_cycle[-1]) for execution in log.executions)
    assert cycles[ISSUING] == log.report.commands_simulated - log.report.own_commands
    assert cycles[IDLE] == log.report.latency_cycles - last - 1
    assert frame["step_share"].sum() == pytest.approx(1.0)


def test_the_peak_is_that_of_all_channels_together() -> None:
    device, step = small_step("hand")
    log = log_step(StepSimulator(device, explain=True), step)
    one, many = (summary(Inside("model", log, channels))["power_peak_w"] for channels in (1, 32))
    assert many == pytest.approx(32 * float(one))
