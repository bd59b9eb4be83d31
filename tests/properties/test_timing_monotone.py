"""Does a looser table ever make a program slower?

Without refresh never, for any single command: each issues at the latest of what came before, and every part of that is
no later. That holds for the distances between commands; a latency that a row subtracts (the write latency gives back
time when the data bus turns from reads to writes) lengthens that row when it shrinks, and is no loosening.

With refresh it does not hold: commands that come earlier meet refreshes at other places. It holds again once the
refreshes stay at their places in the order of commands, so that nothing but their phase is to blame.
"""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from configs.device import Device
from simulator.channel import NEXT_REFRESH, NO_EVENTS
from simulator.dram_replay import without_refresh
from simulator.engine import Engine
from simulator.isa import KINDS, Affine, Command, Instruction, Kind, Program
from simulator.issue_log import IssueLog
from simulator.program_code import flatten
from simulator.timing_table import resolved_rules, timing_table
from tests.engine_devices import AIM, COMPAT, DDR5, DDR5_RANKS, GDDR6, HBM2, HBM3, LPDDR5, LPDDR5_RANKS
from tests.random_programs import random_events, random_program

DEVICES = (AIM, COMPAT, HBM2, HBM3, GDDR6, LPDDR5, LPDDR5_RANKS, DDR5, DDR5_RANKS)
TABLES = {"gddr6-aim": AIM, "gddr6-aim-compat": COMPAT, "hbm2": HBM2, "hbm3": HBM3} | {
    "gddr6": GDDR6,
    "lpddr5": LPDDR5,
    "ddr5": DDR5,
}
# Latencies that some row of the table subtracts.
SUBTRACTED = {
    "gddr6-aim": {"nCWL", "nCWLGB", "nCWLREG"},
    "gddr6-aim-compat": {"nCWL", "nCWLGB", "nCWLREG"},
    "hbm2": {"nCWL"},
    "hbm3": set(),
    "gddr6": set(),
    "lpddr5": {"nCWL"},
    "ddr5": {"nCL", "nCWL"},
}
LOOSENINGS = 12
PROGRAMS = 3


def _with_timing(device: Device, name: str, cycles: int) -> Device:
    return device.model_copy(update={"timing": device.timing | {name: cycles}})


def _distances(device: Device) -> dict[tuple[int, int, int, int, bool], int]:
    rules = resolved_rules(device)
    return {(rule.level, rule.preceding, rule.following, rule.window, rule.sibling): rule.cycles for rule in rules}


@pytest.mark.parametrize("name", TABLES)
def test_a_smaller_value_loosens_every_row_but_those_that_subtract_it(name: str) -> None:
    device = TABLES[name]
    before, lengthening = _distances(device), set()
    for parameter, cycles in device.timing.items():
        after = _distances(_with_timing(device, parameter, cycles - 1))
        if any(after[key] > before[key] for key in before):
            lengthening.add(parameter)
    assert lengthening == SUBTRACTED[name]


def _loosened(device: Device, random: Random) -> Iterator[Device]:
    """Yield tables with a smaller value, or without a row that no command needs to exist."""
    names = sorted(set(device.timing) - SUBTRACTED[device.name])
    kinds = {kind for kind in KINDS if timing_table(device).has(kind)}
    for _ in range(LOOSENINGS):
        parameter = random.choice(names)
        yield _with_timing(device, parameter, random.randint(0, device.timing[parameter]))
        rows = list(device.constraints)
        rows.pop(random.randrange(len(rows)))
        fewer = device.model_copy(update={"constraints": tuple(rows)})
        if {kind for kind in KINDS if timing_table(fewer).has(kind)} == kinds:
            yield fewer


@pytest.mark.parametrize("device", DEVICES, ids=[f"{index}-{device.name}" for index, device in enumerate(DEVICES)])
def test_no_command_of_any_program_is_later_on_a_looser_table(device: Device) -> None:
    random, table = Random(17), without_refresh(device)
    engine = Engine(table)
    work = [(flatten(random_program(random, table)), random_events(random)) for _ in range(PROGRAMS)]
    logs = [engine.run_logged(code, engine.fresh_state(), events)[1] for code, events in work]
    earlier = 0
    for looser in _loosened(table, random):
        other = Engine(looser)
        for (code, events), log in zip(work, logs, strict=True):
            report, found = other.run_logged(code, other.fresh_state(), events)
            assert (found.cycle <= log.cycle).all()
            earlier += int((found.cycle < log.cycle).any())
            assert report.last_issue <= log.cycle.max(initial=-1)
    assert earlier > 0


def _as_it_went(log: IssueLog, fixed: set[int]) -> tuple[Program, list[int]]:
    """Return the commands of a log as a program that waits where the log had to: for events, and for due refreshes."""
    body: list[Instruction] = []
    events: list[int] = []
    for cycle, code, bank, row in zip(
        *(column.tolist() for column in (log.cycle, log.kind, log.bank, log.row)), strict=True
    ):
        if cycle in fixed:
            body.append(Command(Kind.WAIT, event=Affine(len(events))))
            events.append(cycle)
        body.append(Command(KINDS[code], Affine(bank), Affine(max(0, row))))
    return Program(tuple(body)), events


@pytest.mark.parametrize("device", [AIM, HBM2, GDDR6, LPDDR5_RANKS], ids=["aim", "hbm2", "gddr6", "lpddr5"])
def test_with_refreshes_at_their_places_no_command_is_later_on_a_looser_table(device: Device) -> None:
    random, engine = Random(23), Engine(device)
    # The rows that hold where a controller refreshes stay, the controller goes.
    still = without_refresh(device.model_copy(update={"constraints": device.active_constraints}))
    refreshes = 0
    while refreshes < 8:
        state, events = engine.fresh_state(), random_events(random)
        state.scalars[NEXT_REFRESH] = due = random.randint(1, engine.timing.refresh_interval)
        report, log = engine.run_logged(flatten(random_program(random, device)), state, events)
        if not report.refreshes:
            continue
        refreshes += report.refreshes
        dues = set(range(due, state.next_refresh, engine.timing.refresh_interval))
        program, waits = _as_it_went(log, dues | set(events.tolist()))
        arrivals = np.array(waits, dtype=np.int64)
        code, same = flatten(program), Engine(still)
        again = same.run_logged(code, same.fresh_state(), arrivals)[1]
        np.testing.assert_array_equal(again.cycle, log.cycle)
        for looser in _loosened(still, random):
            other = Engine(looser)
            assert (other.run_logged(code, other.fresh_state(), arrivals)[1].cycle <= log.cycle).all()


def test_with_refresh_a_looser_table_can_be_slower() -> None:
    """An activate that still slips in before a refresh falls due costs its row's closing and opening around it."""
    program = Program(
        (
            *(Command(Kind.ACT), *(Command(Kind.RD),) * 40, Command(Kind.RDA)),
            *(Command(Kind.ACT, row=Affine(1)), Command(Kind.RD, row=Affine(1))),
        )
    )
    last = []
    for device in (GDDR6, _with_timing(GDDR6, "nRTP", GDDR6.timing["nRTP"] - 1)):
        engine = Engine(device)
        state = engine.fresh_state()
        # The second activate would issue in this very cycle.
        state.scalars[NEXT_REFRESH] = 30 + 40 * GDDR6.timing["nCCDL"] + GDDR6.timing["nRTP"] + GDDR6.timing["nRP"]
        last.append(engine.run(flatten(program), state, NO_EVENTS).last_issue)
    as_it_is, looser = last
    assert looser == as_it_is + GDDR6.timing["nRAS"] + GDDR6.timing["nRP"] - 1
