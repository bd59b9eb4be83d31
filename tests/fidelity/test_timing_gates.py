"""Every row of the gddr6-aim table, on both engines: the following command is refused at t - 1 and legal at t.

The expected cycle comes from the rows of the device file alone. A hold at t - 1 makes an engine try the cycle before.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from configs.device import Constraint
from configs.expression import evaluate
from simulator.channel import CLOSED, NO_EVENTS, REGISTER_MODE, ChannelState, RunReport, fresh_state
from simulator.engine import run
from simulator.engine_timing import resolve
from simulator.isa import (
    ACTIVATES,
    BANK_GROUP_KINDS,
    BANK_KINDS,
    PRECHARGES,
    REGISTER_MODE_KINDS,
    Affine,
    Command,
    Kind,
    Program,
)
from simulator.program_code import flatten
from simulator.reference_engine import run_reference
from tests.engine_devices import AIM

TIMING = resolve(AIM)
LEVELS = ("channel", "bankgroup", "bank")
START = 1000  # well behind cycle 0 and before the first refresh
# Banks of the preceding commands and of the following one that meet at the level and no deeper.
BANKS = {"channel": ((0, 4, 8, 1), 12), "bankgroup": ((0,), 1), "bank": ((0,), 0)}

Engine = Callable[[Program, ChannelState, tuple[int, ...]], RunReport]


def _reference(program: Program, state: ChannelState, events: tuple[int, ...]) -> RunReport:
    return run_reference(program, AIM, state, np.array(events, dtype=np.int64))


def _fast(program: Program, state: ChannelState, events: tuple[int, ...]) -> RunReport:
    return run(flatten(program), TIMING, state, np.array(events, dtype=np.int64))


def _reaches(kind: Kind) -> int:
    return 2 if kind in BANK_KINDS else 1 if kind in BANK_GROUP_KINDS else 0


def _gates() -> Iterator[tuple[Constraint, Kind, Kind]]:
    for row in AIM.constraints:
        for preceding in row.preceding:
            for following in row.following:
                yield row, Kind(preceding), Kind(following)


def _expected(row: Constraint, preceding: Kind, following: Kind, issues: list[int]) -> int:
    """Return the first legal cycle after these issues, from all rows that meet where this row does."""
    deepest = min(LEVELS.index(row.level), _reaches(preceding), _reaches(following))
    cycles = [issues[-1] + 1]
    for other in AIM.constraints:
        names = preceding in other.preceding and following in other.following
        if names and LEVELS.index(other.level) <= deepest and len(issues) >= other.window:
            cycles.append(issues[-other.window] + evaluate(other.cycles, AIM.timing))
    return max(cycles)


def _accepting(state: ChannelState, kind: Kind) -> None:
    """Put rows and mode so that the command is legal; the marks of earlier commands stay."""
    closed = kind in ACTIVATES | PRECHARGES | {Kind.REFab}
    state.open_row[:] = CLOSED if closed else 0
    state.scalars[REGISTER_MODE] = kind in REGISTER_MODE_KINDS


def _issue(engine: Engine, state: ChannelState, kind: Kind, bank: int, not_before: int) -> int:
    _accepting(state, kind)
    return engine(Program((Command(Kind.WAIT), Command(kind, Affine(bank)))), state, (not_before,)).first_issue


@pytest.mark.parametrize("engine", [_reference, _fast], ids=["reference", "fast"])
def test_every_row_refuses_one_cycle_early_and_allows_at_its_cycle(engine: Engine) -> None:
    gates, binding = 0, set()
    for row, preceding, following in _gates():
        before, bank = BANKS[row.level]
        # A row that looks at a level its commands do not reach could never act.
        assert LEVELS.index(row.level) <= min(_reaches(preceding), _reaches(following)), row
        state, issues = fresh_state(AIM), []
        for number in range(row.window):
            issues.append(_issue(engine, state, preceding, before[number % len(before)], START if number == 0 else 0))
        expected = _expected(row, preceding, following, issues)
        own = issues[-row.window] + evaluate(row.cycles, AIM.timing)
        assert expected >= own
        for not_before in (expected - 1, expected):
            assert _issue(engine, state.copy(), following, bank, not_before) == expected, (row, preceding, following)
        gates += 1
        if expected == own:
            binding.add(row)
    assert gates == sum(len(row.preceding) * len(row.following) for row in AIM.constraints)
    # Only rows that a stricter one at another level covers never decide the cycle themselves.
    assert {row for row in AIM.constraints if row not in binding} == set(), "rows that never decide"


def test_no_events_are_needed_for_a_plain_program() -> None:
    assert run(flatten(Program((Command(Kind.AF16),))), TIMING, fresh_state(AIM), NO_EVENTS).first_issue == 0
