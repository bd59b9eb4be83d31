"""Do the fast and the reference engine agree on cycles, counts, signals and final state; does each log obey the table?

The table is checked pair by pair on the raw rows of the device file, without anything of the engines.
"""

from random import Random

import numpy as np
import pytest

from configs.device import Constraint, Device
from configs.expression import evaluate
from simulator.addressing import LEVELS, addressing
from simulator.channel import NEXT_REFRESH, NO_EVENTS, ChannelState, IllegalProgram, fresh_state, longest_window
from simulator.engine import Engine, Skipping
from simulator.isa import CODE_OF, EVENT_KINDS, KINDS, REFRESHES, Affine, Command, Kind, Loop, Program, Scope, walk
from simulator.program_code import flatten
from simulator.reference_engine import LogEntry, run_reference
from tests.engine_devices import AIM, COLUMN_WINDOWS, COMPAT, DEVICES, FEW_BANKS
from tests.random_programs import random_events, random_program
from tests.repeating_programs import repeating_program

PROGRAMS_PER_DEVICE = 600
LOOPS_PER_DEVICE = 8


def _random_phase(random: Random, engine: Engine) -> ChannelState:
    state = engine.fresh_state()
    if engine.device.refresh:
        state.scalars[NEXT_REFRESH] = random.randint(1, engine.timing.refresh_interval)
    return state


@pytest.mark.parametrize("number", range(len(DEVICES)))
def test_all_engines_equal_the_reference_engine(number: int) -> None:
    device, random = DEVICES[number], Random(number)
    engines = [Engine(device, skipping, explain=True) for skipping in Skipping]
    window = longest_window(engines[0].table)
    refreshes = 0
    for _ in range(PROGRAMS_PER_DEVICE):
        expected_state = _random_phase(random, engines[0])
        states = [expected_state.copy() for _ in engines]
        # A second program goes on from the state that the first one left.
        for _ in range(random.choice((1, 1, 2))):
            program, events = random_program(random, device), random_events(random)
            expected = run_reference(program, device, expected_state, events, table=engines[0].table)
            code = flatten(program)
            for engine, state in zip(engines, states, strict=True):
                assert engine.run(code, state, events) == expected, (engine.skipping, program)
                assert state.same_future(expected_state, window), (engine.skipping, program)
            refreshes += expected.refreshes
    assert (refreshes > 50) == bool(device.refresh)


@pytest.mark.parametrize("number", range(len(DEVICES)))
def test_skipping_repeated_loop_states_changes_nothing(number: int) -> None:
    device, random = DEVICES[number], Random(100 + number)
    engines = [Engine(device, skipping, explain=True) for skipping in (Skipping.RUNS, Skipping.LOOPS)]
    table, skipped = engines[0].table, [0, 0]
    if not table.has(Kind.MAC16):
        pytest.skip("repeating programs are written for processing units")
    for _ in range(LOOPS_PER_DEVICE):
        expected_state = _random_phase(random, engines[0])
        states = [expected_state.copy() for _ in engines]
        program, code = (given := repeating_program(random, device)), flatten(given)
        expected = run_reference(program, device, expected_state, NO_EVENTS, table=table)
        for index, (engine, state) in enumerate(zip(engines, states, strict=True)):
            report = engine.run(code, state, NO_EVENTS)
            assert report == expected, (engine.skipping, program)
            assert state.same_future(expected_state, longest_window(table)), (engine.skipping, program)
            skipped[index] += report.skipped
    assert skipped[1] > skipped[0]


def test_channels_that_take_turns_on_one_engine_do_not_disturb_each_other() -> None:
    random, engine = Random(5), Engine(AIM, explain=True)
    channels = [(engine.fresh_state(), engine.fresh_state()) for _ in range(4)]
    for _ in range(60):
        state, expected_state = random.choice(channels)
        program, events = random_program(random, AIM), random_events(random)
        expected = run_reference(program, AIM, expected_state, events, table=engine.table)
        assert engine.run(flatten(program), state, events) == expected, program
        assert state.same_future(expected_state, longest_window(engine.table)), program


def test_every_cycle_is_an_issue_a_stall_or_due_to_refresh() -> None:
    random, engine = Random(11), Engine(AIM, explain=True)
    for _ in range(60):
        program, events = random_program(random, AIM), random_events(random)
        commands = sum(command.kind not in EVENT_KINDS for command in walk(program))
        report = engine.run(flatten(program), engine.fresh_state(), events)
        if commands:
            assert report.last_issue + 1 == commands + sum(report.stalls) + report.refresh_cycles, program


def test_a_long_loop_is_skipped_across_its_refreshes() -> None:
    row = Affine(0, ((0, 1),))
    visit = (Command(Kind.ACT16, row=row), Loop(64, (Command(Kind.MAC16, row=row),)), Command(Kind.PREA))
    program, engine = Program((Loop(2000, visit),)), Engine(AIM)
    state, expected_state = engine.fresh_state(), engine.fresh_state()
    report = engine.run(flatten(program), state, NO_EVENTS)
    walked = Engine(AIM, Skipping.NOTHING).run(flatten(program), expected_state, NO_EVENTS)
    assert report == walked
    assert report.refreshes > 100
    assert sum(report.counts) - report.skipped < 5000
    assert state.same_future(expected_state, longest_window(engine.table))


@pytest.mark.parametrize("device", [AIM, COMPAT, FEW_BANKS, COLUMN_WINDOWS], ids=["aim", "compat", "few", "windows"])
def test_logs_of_random_programs_obey_every_row_of_the_table(device: Device) -> None:
    random, checked = Random(7), 0
    while checked < 6:
        program, events = random_program(random, device), random_events(random)
        log: list[LogEntry] = []
        run_reference(program, device, _random_phase(random, Engine(device)), events, log)
        if not 20 < len(log) < 800:
            continue
        checked += 1
        bounds = _bounds(device, log)
        _check_cycles(log, bounds, events.tolist())


def _check_cycles(log: list[LogEntry], bounds: list[int], events: list[int]) -> None:
    """Every command stays behind its bound, and none waits for nothing: an event or a refresh explains the rest."""
    previous = -1
    own = {Kind.PREA, Kind.PRE} | REFRESHES
    for entry, bound in zip(log, bounds, strict=True):
        earliest = max(bound, previous + 1)
        assert entry.cycle >= earliest, entry
        assert entry.cycle == earliest or entry.cycle in events or entry.kind in own, entry
        previous = entry.cycle


def _bounds(device: Device, log: list[LogEntry]) -> list[int]:
    """Return the first cycle the rows allow each command, by looking at every earlier one."""
    bounds = []
    for index, entry in enumerate(log):
        bound = 0
        for row in device.constraints:
            if entry.kind in row.following:
                bound = max(bound, _row_bound(device, row, log[:index], entry))
        bounds.append(bound)
    return bounds


def _row_bound(device: Device, row: Constraint, earlier: list[LogEntry], entry: LogEntry) -> int:
    """Return the bound of one row; each preceding command of a windowed row is counted by itself."""
    cycles, bound = evaluate(row.cycles, device.timing), 0
    for preceding in row.preceding:
        found = [past.cycle for past in earlier if past.kind == preceding and _meets(device, row, past, entry)]
        if len(found) >= row.window:
            bound = max(bound, found[-row.window] + cycles)
    return bound


def _meets(device: Device, row: Constraint, past: LogEntry, entry: LogEntry) -> bool:
    """Return whether both commands reach down to the row's level, at the same place."""
    tree, level = addressing(device), LEVELS.index(Scope(row.level))
    if min(tree.reach[CODE_OF[past.kind]], tree.reach[CODE_OF[entry.kind]]) <= level:
        return False
    return past.bank // tree.banks_below[level] == entry.bank // tree.banks_below[level]


def test_empty_program_changes_nothing() -> None:
    state = fresh_state(AIM)
    code, events = flatten(Program(())), np.zeros(0, dtype=np.int64)
    report = Engine(AIM, explain=True).run(code, state, events)
    assert report == run_reference(Program(()), AIM, fresh_state(AIM), events)
    assert (report.first_issue, report.last_issue, report.completed) == (-1, -1, 0)
    assert state.same_future(fresh_state(AIM), 0)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (Program((Command(Kind.WAIT, event=Affine(3)),)), "expected one of 0 known events, found event 3"),
        (Program((Command(Kind.PRE, Affine(16)),)), "expected bank in 0..15, found"),
        (Program((Command(Kind.SIGNAL, event=Affine(-1)),)), "expected an event number of at least 0, found event -1"),
    ],
)
def test_both_engines_refuse_what_would_leave_the_arrays(program: Program, message: str) -> None:
    with pytest.raises(IllegalProgram, match=message):
        run_reference(program, AIM, fresh_state(AIM), NO_EVENTS)
    with pytest.raises(IllegalProgram, match=message):
        Engine(AIM).run(flatten(program), fresh_state(AIM), NO_EVENTS)


def test_both_engines_give_up_when_refreshes_leave_no_room() -> None:
    crowded = AIM.model_copy(update={"timing": AIM.timing | {"nREFI": 300}})
    program = Program((Command(Kind.ACT16), Loop(200, (Command(Kind.MAC16),))))
    with pytest.raises(IllegalProgram, match="MAC16: expected room between two refreshes"):
        run_reference(program, crowded, fresh_state(crowded), NO_EVENTS)
    with pytest.raises(IllegalProgram, match="MAC16: expected room between two refreshes"):
        Engine(crowded).run(flatten(program), fresh_state(crowded), NO_EVENTS)


def test_random_programs_meet_every_command_of_the_device() -> None:
    random, kinds, table = Random(3), set(), Engine(AIM).table
    for _ in range(60):
        kinds |= {command.kind for command in walk(random_program(random, AIM))}
    assert kinds == {kind for kind in KINDS if table.has(kind)} - REFRESHES | {Kind.SIGNAL, Kind.WAIT}
