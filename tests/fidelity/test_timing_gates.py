"""Every row of every built-in table, on both engines: the following command is refused at t - 1 and legal at t.

The expected cycle comes from the rows of the device file alone. A hold at t - 1 makes an engine try the cycle before.
"""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from configs.constraint import Constraint
from configs.device import Device, built_in_devices, load_device
from configs.expression import evaluate
from simulator.channel import CLOSED, NEXT_REFRESH, NO_EVENTS, REGISTER_MODE, ChannelState, RunReport, fresh_state
from simulator.engine import Engine
from simulator.isa import (
    ACTIVATES,
    FROM_SECOND_BUFFERS,
    PRECHARGES,
    REFRESHES,
    REGISTER_MODE_KINDS,
    Affine,
    Command,
    Kind,
    Program,
)
from simulator.program_code import flatten
from simulator.reference_engine import run_reference
from simulator.timing_table import timing_table
from tests.engine_devices import AIM, HBM2, HBM3, changed
from tests.pairwise_checker import LEVELS, Checker, Seen

START = 1000  # well behind cycle 0
NEVER = 1 << 40  # the next refresh


def _gated(name: str) -> Device:
    """Return a device, with two ranks where its table speaks of other ones: with one, nothing could meet those rows."""
    device = load_device(name)
    other_ranks = any(row.sibling and row.level == "rank" for row in device.constraints)
    return changed(device, {}, {"ranks": 2}) if other_ranks and device.organisation.ranks == 1 else device


def _with_second_buffers(device: Device) -> tuple[Device, ...]:
    """Return the device again with two row buffers a bank where its table has commands for them."""
    named = {name for row in device.constraints for name in row.following}
    return (changed(device, {}, {"row_buffers": 2}),) if named & FROM_SECOND_BUFFERS else ()


GATED = tuple(_gated(name) for name in built_in_devices())
DEVICES = (*GATED, *(latched for device in GATED for latched in _with_second_buffers(device)))
# Rows that never decide, as the published tables have them: four activates nRRDS apart take longer than the window; the
# bus keeps the next command away longer than an nCAS of 0; a longer row for the same pair at the same level.
NEVER_DECIDE: dict[str, set[tuple[str, str, str, str, int]]] = {
    "gddr6-aim-compat": {
        ("channel", "RDMAC16 RDAF16", "WR WRA", "nCLREG + nBL + 3 - nCWL + nWPRE", 1),
        ("channel", "RDMAC16 RDAF16", "WRA16", "nCLREG + nBL + 3 - nCWL + nWPRE", 1),
        ("channel", "WRA16", "RD RDA RDMAC16 RDAF16", "nCWL + nBL + nWTRS", 1),
        ("channel", "WRMAC16", "RD RDA RDMAC16 RDAF16", "nCWLREG + nBL + nWTRS", 1),
        ("channel", "ACT16", "ACT ACT4 ACT16", "nRRDS", 1),
    },
    "gddr6": {
        ("channel", "ACT", "ACT", "nFAW", 4),
        ("channel", "ACT", "REFpb", "nFAW", 4),
        ("channel", "REFpb", "ACT REFpb", "nFAW", 4),
    },
    "hbm2": {("pseudochannel", "ACT", "ACT", "nFAW", 4)},
    "lpddr5": {("bank", "CAS_RD", "RD RDA", "nCAS", 1), ("bank", "CAS_WR", "WR WRA", "nCAS", 1)},
}

Run = Callable[[Program, ChannelState, tuple[int, ...]], RunReport]


def _runs(device: Device) -> dict[str, Run]:
    engine = Engine(device)
    return {
        "reference": lambda program, state, events: run_reference(program, device, state, np.array(events)),
        "fast": lambda program, state, events: engine.run(flatten(program), state, np.array(events)),
    }


def _gates(device: Device) -> Iterator[tuple[Constraint, Kind, Kind]]:
    """Yield the pairs of every row that the device has both commands of."""
    table = timing_table(device)
    for row in device.active_constraints:
        for preceding, following in product(map(Kind, row.preceding), map(Kind, row.following)):
            if table.has(preceding) and table.has(following):
                yield row, preceding, following


def _common(checker: Checker, bank: int, other: int) -> int:
    """Return how many levels two banks share."""
    pairs = zip(checker.path(bank), checker.path(other), strict=True)
    return next((level for level, (one, two) in enumerate(pairs) if one != two), len(LEVELS))


def _meetings(checker: Checker, row: Constraint, following_bank: int) -> list[list[int]]:
    """Return banks that meet the following one where the row looks: first those that share no deeper level."""
    level = LEVELS.index(row.level)
    shared: dict[int, list[int]] = {}
    for bank in range(checker.device.organisation.banks):
        shared.setdefault(_common(checker, bank, following_bank), []).append(bank)
    depths = [level] if row.sibling else [depth for depth in sorted(shared) if depth > level]
    # Banks far from each other first: a window should fill up at the pace of its level.
    return [sorted(shared[depth], key=lambda bank: checker.path(bank)[::-1]) for depth in depths]


def _accepting(state: ChannelState, kind: Kind) -> None:
    """Put rows and mode so that the command is legal; the marks of earlier commands stay."""
    closed = kind in ACTIVATES | PRECHARGES | REFRESHES | {Kind.ACT1}
    state.open_row[:] = CLOSED if closed else 0
    state.scalars[REGISTER_MODE] = kind in REGISTER_MODE_KINDS
    state.scalars[NEXT_REFRESH] = NEVER


def _issue(run: Run, state: ChannelState, kind: Kind, bank: int, not_before: int) -> int:
    _accepting(state, kind)
    return run(Program((Command(Kind.WAIT), Command(kind, Affine(bank)))), state, (not_before,)).first_issue


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("device", DEVICES, ids=[f"{item.name}-{item.organisation.row_buffers}" for item in DEVICES])
def test_every_row_refuses_one_cycle_early_and_allows_at_its_cycle(device: Device, engine: str) -> None:
    run, checker = _runs(device)[engine], Checker(device)
    last, binding, met = device.organisation.banks - 1, set(), set()
    for row, preceding, following in _gates(device):
        met.add(row)
        # A row that looks at a level its commands do not reach could never act.
        assert LEVELS.index(row.level) <= min(checker.scope(preceding), checker.scope(following)), row
        for banks in _meetings(checker, row, last):
            state, log = fresh_state(device), []
            for number in range(row.window):
                bank = banks[number % len(banks)]
                cycle = _issue(run, state, preceding, bank, START if number == 0 else 0)
                log.append(Seen(cycle, preceding, bank))
            expected = checker.bound(log, following, last)
            nominal = evaluate(row.cycles, device.timing) * device.ticks_per_clock
            own = log[-row.window].cycle + nominal + checker.ticks(preceding) - checker.ticks(following)
            assert expected >= own
            for not_before in (expected - 1, expected):
                assert _issue(run, state.copy(), following, last, not_before) == expected, (row, preceding, following)
            if expected == own:
                binding.add(row)
                break
    idle = met - binding
    assert {
        (row.level, " ".join(row.preceding), " ".join(row.following), row.cycles, row.window) for row in idle
    } == NEVER_DECIDE.get(device.name, set()), "rows that never decide"


def test_commands_on_different_buses_share_a_tick_and_on_one_bus_do_not() -> None:
    for device, held in ((HBM2, 2), (HBM3, 3)):
        for run in _runs(device).values():
            state = fresh_state(device)
            assert _issue(run, state, Kind.ACT, 0, START) == START
            assert _issue(run, state.copy(), Kind.RD, device.organisation.banks - 1, 0) == START
            assert _issue(run, state.copy(), Kind.PRE, device.organisation.banks - 1, 0) == START + held


def test_no_events_are_needed_for_a_plain_program() -> None:
    assert Engine(AIM).run(flatten(Program((Command(Kind.AF16),))), fresh_state(AIM), NO_EVENTS).first_issue == 0


def test_every_row_of_a_table_is_met_with_one_row_buffer_or_with_two() -> None:
    for name in {device.name for device in DEVICES}:
        variants = [device for device in DEVICES if device.name == name]
        met = {row for device in variants for row, _, _ in _gates(device)}
        assert met == set(variants[0].active_constraints), name
