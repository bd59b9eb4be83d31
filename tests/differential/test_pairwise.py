"""Does every command that either engine issues on any device keep the rows of its file, and does none wait for nothing?

The judge looks at pairs of commands alone. Events and the cycles at which refreshes fall due explain every wait.
"""

from random import Random

import pytest

from configs.device import Device
from configs.refresh import Refresh, RefreshPolicy
from simulator.channel import NEXT_REFRESH, NO_EVENTS, refresh_plan
from simulator.engine import Engine
from simulator.isa import ACTIVATES, KINDS, PRECHARGES, REFRESHES, Affine, Command, Kind, Program
from simulator.program_code import flatten
from simulator.reference_engine import LogEntry, run_reference
from tests.engine_devices import AIM, COMPAT, DDR5_RANKS, DEVICES, FREQUENT_REFRESH, GDDR6, HBM2, LPDDR5
from tests.pairwise_checker import Checker, Seen
from tests.random_programs import random_events, random_program

LOGS, SHORTEST, LONGEST = 5, 20, 500
VARIANTS = (
    *(HBM2.model_copy(update={"refresh": Refresh(postponed=3, temperature_c=95)}),),
    *(device.model_copy(update={"refresh": Refresh(policy=RefreshPolicy.PER_BANK)}) for device in (GDDR6, LPDDR5)),
)
JUDGED = (*DEVICES, *VARIANTS)
# What the controller issues on its own when a refresh is due; what it reopens never waits for the due cycle.
OWN = PRECHARGES | REFRESHES


def _name(device: Device) -> str:
    return f"{device.name}-{device.refresh.policy}-{device.refresh.postponed}"


@pytest.mark.parametrize("device", JUDGED, ids=[f"{index}-{_name(device)}" for index, device in enumerate(JUDGED)])
def test_logs_of_random_programs_obey_every_row_and_wait_for_nothing_else(device: Device) -> None:
    engine, checker, random = Engine(device), Checker(device), Random(11)
    plan = refresh_plan(device, engine.table)
    judged, refreshes = 0, 0
    while judged < LOGS or (device.refresh and refreshes < 3):
        program, events = random_program(random, device), random_events(random)
        state = engine.fresh_state()
        if device.refresh:
            state.scalars[NEXT_REFRESH] = random.randint(1, min(plan.interval, 3000))
        due, twin = state.next_refresh, state.copy()
        log: list[LogEntry] = []
        report = run_reference(program, device, state, events, log)
        if not SHORTEST < len(log) < LONGEST:
            continue
        judged, refreshes = judged + 1, refreshes + report.refreshes
        seen = [Seen(entry.cycle, entry.kind.value, entry.bank) for entry in log]
        assert checker.violations(seen) == []
        dues = set(range(due, state.next_refresh, plan.interval)) if device.refresh else set()
        _nothing_waits_for_nothing(checker, seen, set(events.tolist()), dues)
        _, fast = engine.run_logged(flatten(program), twin, events)
        assert fast.cycle.tolist() == [entry.cycle for entry in log]
        assert [KINDS[code] for code in fast.kind.tolist()] == [entry.kind for entry in log]


def _nothing_waits_for_nothing(checker: Checker, log: list[Seen], events: set[int], dues: set[int]) -> None:
    for entry, bound in zip(log, checker.bounds(log), strict=True):
        explained = entry.cycle in events or (Kind(entry.kind) in OWN and entry.cycle in dues)
        assert entry.cycle == bound or explained, (entry, bound)


@pytest.mark.parametrize("device", [AIM, COMPAT, HBM2, DDR5_RANKS], ids=["aim", "compat", "hbm2", "ddr5"])
def test_the_judge_notices_a_command_that_is_one_cycle_early(device: Device) -> None:
    engine, checker, random = Engine(device), Checker(device), Random(5)
    caught = 0
    while caught < 10:
        log: list[LogEntry] = []
        run_reference(random_program(random, device), device, engine.fresh_state(), random_events(random), log)
        if len(log) > LONGEST:
            continue
        seen = [Seen(entry.cycle, entry.kind.value, entry.bank) for entry in log]
        bounds = checker.bounds(seen)
        tight = [index for index in range(1, len(seen)) if seen[index].cycle == bounds[index] > seen[index - 1].cycle]
        if not tight:
            continue
        index = random.choice(tight)
        early = [*seen[:index], seen[index]._replace(cycle=seen[index].cycle - 1)]
        assert len(checker.violations(early)) >= 1
        caught += 1


def _without(device: Device, command: str) -> Device:
    """Return the device with all that its rows say of a command left out."""
    rows = []
    for row in device.constraints:
        preceding = tuple(name for name in row.preceding if name != command)
        following = tuple(name for name in row.following if name != command)
        if preceding and following:
            rows.append(row.model_copy(update={"preceding": preceding, "following": following}))
    return device.model_copy(update={"constraints": tuple(rows)})


@pytest.mark.parametrize("device", [AIM, FREQUENT_REFRESH], ids=["aim", "frequent"])
def test_rows_of_refreshing_one_bank_change_nothing_where_all_are_refreshed(device: Device) -> None:
    random, engines = Random(4), [Engine(device), Engine(_without(device, "REFpb"))]
    assert [engine.table.has(Kind.REFpb) for engine in engines] == [True, False]
    refreshes = 0
    for _ in range(60):
        code, events = flatten(random_program(random, device)), random_events(random)
        ours, theirs = (engine.run_logged(code, engine.fresh_state(), events) for engine in engines)
        assert ours[0] == theirs[0]
        assert ours[1].cycle.tolist() == theirs[1].cycle.tolist()
        refreshes += ours[0].refreshes
    assert refreshes > 10


def test_a_bank_under_refresh_is_opened_by_no_activate() -> None:
    refreshed = AIM.timing["nRFCpb"]
    for kind, bank, gap in (
        *((Kind.ACT, 5, refreshed), (Kind.ACT4, 6, refreshed), (Kind.ACT16, 0, refreshed)),
        *((Kind.ACT, 6, AIM.timing["nRREFD"]), (Kind.ACT4, 8, AIM.timing["nRREFD"])),
        *((Kind.REFpb, 5, refreshed), (Kind.REFpb, 6, AIM.timing["nRREFD"])),
        *((Kind.REFab, 0, refreshed), (Kind.PREA, 0, refreshed), (Kind.PRE, 5, refreshed), (Kind.PRE4, 4, refreshed)),
    ):
        program = Program((Command(Kind.REFpb, Affine(5)), Command(kind, Affine(bank))))
        assert run_reference(program, AIM, Engine(AIM).fresh_state(), NO_EVENTS).last_issue == gap, kind


def test_random_programs_of_plain_devices_open_rows_and_refresh_by_themselves() -> None:
    for device in (HBM2, GDDR6, LPDDR5, DDR5_RANKS):
        random, kinds, table = Random(2), set(), Engine(device).table
        for _ in range(60):
            engine_events, log = random_events(random), list[LogEntry]()
            run_reference(random_program(random, device), device, Engine(device).fresh_state(), engine_events, log)
            kinds |= {entry.kind for entry in log}
        assert kinds == {kind for kind in KINDS if table.has(kind)}
        assert kinds & ACTIVATES
