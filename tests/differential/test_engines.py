"""Do the fast engine, whatever it skips, and the reference engine agree: cycles, counts, signals, stalls, state?"""

from random import Random

import numpy as np
import pytest

from simulator.channel import NEXT_REFRESH, NO_EVENTS, ChannelState, IllegalProgram, fresh_state, longest_window
from simulator.engine import Engine, Skipping
from simulator.isa import CODE_OF, EVENT_KINDS, KINDS, REFRESHES, Affine, Command, Kind, Loop, Program, walk
from simulator.program_code import flatten
from simulator.reference_engine import run_reference
from tests.engine_devices import AIM, DEVICES
from tests.random_programs import random_events, random_program
from tests.repeating_programs import repeating_program

# What the default run takes; `--thorough` takes three times as much.
PROGRAMS_PER_DEVICE = 200
LOOPS_PER_DEVICE = 20


def _random_phase(random: Random, engine: Engine) -> ChannelState:
    state = engine.fresh_state()
    if engine.device.refresh:
        state.scalars[NEXT_REFRESH] = random.randint(1, engine.timing.refresh_interval)
    return state


@pytest.mark.parametrize("number", range(len(DEVICES)))
def test_all_engines_equal_the_reference_engine(number: int, thoroughness: int) -> None:
    device, random = DEVICES[number], Random(number)
    engines = [Engine(device, skipping, explain=True) for skipping in Skipping]
    window = longest_window(engines[0].table)
    refreshes = 0
    for _ in range(PROGRAMS_PER_DEVICE * thoroughness):
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
def test_skipping_repeated_loop_states_changes_nothing(number: int, thoroughness: int) -> None:
    device, random = DEVICES[number], Random(100 + number)
    walking, *engines = [Engine(device, skipping, explain=True) for skipping in Skipping]
    table, skipped = walking.table, [0, 0]
    for _ in range(LOOPS_PER_DEVICE * thoroughness):
        expected_state = _random_phase(random, walking)
        states = [expected_state.copy() for _ in engines]
        program, events = repeating_program(random, device, table), random_events(random)
        code = flatten(program)
        # The walking engine is held against the reference engine above; it is quicker.
        expected = walking.run(code, expected_state, events)
        for index, (engine, state) in enumerate(zip(engines, states, strict=True)):
            report = engine.run(code, state, events)
            assert report == expected, (engine.skipping, program)
            assert state.same_future(expected_state, longest_window(table)), (engine.skipping, program)
            skipped[index] += report.skipped
    # Few loops may have no repetition that spans a refresh.
    assert skipped[1] >= skipped[0]
    assert skipped[1] > 0
    assert thoroughness == 1 or skipped[1] > skipped[0]


def test_repeating_programs_are_legal_and_the_reference_engine_agrees(thoroughness: int) -> None:
    for number in range(0, len(DEVICES), 4 if thoroughness == 1 else 1):
        device = DEVICES[number]
        random, engine = Random(200 + number), Engine(device, explain=True)
        state = _random_phase(random, engine)
        expected_state = state.copy()
        program, events = repeating_program(random, device, engine.table), random_events(random)
        expected = run_reference(program, device, expected_state, events, table=engine.table)
        assert engine.run(flatten(program), state, events) == expected, (device.name, program)


def test_a_row_that_stays_open_may_be_met_once_by_those_that_move() -> None:
    """Bank 0 shares its row with the others in iteration 200 alone, where a refresh can open all with one command."""
    row = Affine(0, ((0, 1),))
    visit = (Command(Kind.ACT, row=row), Loop(2095, (Command(Kind.RD, row=row),)), Command(Kind.PRE))
    program = Program((Command(Kind.ACT16, row=Affine(200)), Command(Kind.PRE), Loop(400, visit)))
    reports = [Engine(AIM, skipping).run(flatten(program), fresh_state(AIM), NO_EVENTS) for skipping in Skipping]
    assert reports[0].counts[CODE_OF[Kind.ACT16]] == 2
    assert reports[0] == reports[1] == reports[2]


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
