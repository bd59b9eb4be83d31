"""The reference engine, asked like a device under test: a command is blocked at t - 1 and ready at t."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from configs.device import Device
from simulator.channel import NO_EVENTS, ChannelState, IllegalProgram, RunReport, fresh_state
from simulator.isa import CODE_OF, Affine, Command, Instruction, Kind, Loop, Program, affine
from simulator.program_code import DEPTH_LIMIT, flatten
from simulator.reference_engine import LogEntry, ReferenceChannel, run_reference
from simulator.timing_table import timing_table
from tests.engine_devices import AIM, COMPAT

ROW = Affine(7)
T = AIM.timing


@dataclass
class DeviceUnderTest:
    """One channel that instructions are given to, with the log of what it issued."""

    device: Device = AIM
    events: NDArray[np.int64] = field(default_factory=lambda: NO_EVENTS)
    log: list[LogEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state: ChannelState = fresh_state(self.device)

    def give(self, *instructions: Instruction) -> RunReport:
        return run_reference(Program(instructions), self.device, self.state, self.events, self.log)

    def assert_earliest(self, kind: Kind, cycle: int, bank: int = 0) -> None:
        """The table refuses the command at cycle - 1 and allows it at cycle."""
        assert (
            ReferenceChannel(self.device, self.state, [], timing_table(self.device)).earliest(kind, bank).cycle == cycle
        )

    def issued(self) -> list[tuple[int, Kind]]:
        return [(entry.cycle, entry.kind) for entry in self.log]


def test_first_command_issues_at_cycle_zero() -> None:
    DeviceUnderTest().assert_earliest(Kind.ACT16, 0)


def test_mac_after_activate_waits_for_the_row() -> None:
    channel = DeviceUnderTest()
    channel.give(Command(Kind.ACT, Affine(3), ROW))
    channel.assert_earliest(Kind.MAC, T["nRCDRDMAC"], bank=3)
    channel.assert_earliest(Kind.RD, T["nRCDRD"], bank=3)
    channel.assert_earliest(Kind.RD, 1, bank=4)
    channel.assert_earliest(Kind.MAC16, T["nRCDRDMAC"])


def test_all_bank_multiplies_keep_their_cadence() -> None:
    channel = DeviceUnderTest()
    report = channel.give(Command(Kind.ACT16, row=ROW), Loop(4, (Command(Kind.MAC16, row=ROW, column=affine(v0=1)),)))
    assert [cycle for cycle, _ in channel.issued()] == [0] + [T["nRCDRDMAC"] + T["nCCDMAC"] * i for i in range(4)]
    assert report.counts[CODE_OF[Kind.MAC16]] == 4
    assert [entry.column for entry in channel.log] == [0, 0, 1, 2, 3]


def test_fifth_activate_waits_for_the_activation_window() -> None:
    channel = DeviceUnderTest()
    for bank in (0, 4, 8, 12):
        channel.give(Command(Kind.ACT, Affine(bank), ROW))
    assert [cycle for cycle, _ in channel.issued()] == [0, 11, 22, 33]
    channel.assert_earliest(Kind.ACT, T["nFAW"], bank=1)


def test_refresh_closes_and_reopens_all_banks() -> None:
    channel = DeviceUnderTest()
    due = T["nREFI"]
    work = Command(Kind.MAC16, row=ROW)
    report = channel.give(Command(Kind.ACT16, row=ROW), Loop(due // 2, (work,)))
    around = [entry for entry in channel.log if entry.kind is not Kind.MAC16][1:]
    assert [entry.kind for entry in around] == [Kind.PREA, Kind.REFab, Kind.ACT16]
    precharge, refresh, activate = (entry.cycle for entry in around)
    last_work = max(cycle for cycle, kind in channel.issued() if kind is Kind.MAC16 and cycle < due)
    assert precharge == max(due, last_work + T["nRTP"])
    assert refresh == precharge + T["nRP"]
    assert activate == refresh + T["nRFC"]
    assert around[2].row == 7
    assert (activate + T["nRCDRDMAC"], Kind.MAC16) in channel.issued()
    assert (report.refreshes, channel.state.next_refresh) == (1, 2 * due)


def test_refresh_reopens_different_rows_bank_by_bank() -> None:
    channel = DeviceUnderTest(events=np.array([4000], dtype=np.int64))
    channel.give(Command(Kind.ACT, Affine(5), Affine(1)), Command(Kind.ACT, Affine(2), Affine(9)))
    channel.give(Command(Kind.WAIT), Command(Kind.RD, Affine(5), Affine(1)))
    entries = [(entry.kind, entry.bank, entry.row) for entry in channel.log[2:]]
    assert entries == [
        (Kind.PREA, 0, 0),
        (Kind.REFab, 0, 0),
        (Kind.ACT, 2, 9),
        (Kind.ACT, 5, 1),
        (Kind.RD, 5, 1),
    ]


def test_precharge_of_all_banks_after_a_refresh_leaves_rows_closed() -> None:
    channel = DeviceUnderTest(events=np.array([4000], dtype=np.int64))
    channel.give(Command(Kind.ACT16, row=ROW), Command(Kind.WAIT), Command(Kind.PREA))
    assert [kind for _, kind in channel.issued()] == [Kind.ACT16, Kind.PREA, Kind.REFab, Kind.PREA]
    assert set(channel.state.open_row.tolist()) == {-1}


def test_idle_refreshes_issue_when_they_are_due() -> None:
    channel = DeviceUnderTest(events=np.array([10 * T["nREFI"] - 1], dtype=np.int64))
    report = channel.give(Command(Kind.WAIT), Command(Kind.ACT16, row=ROW))
    assert channel.issued()[:-1] == [(k * T["nREFI"], Kind.REFab) for k in range(1, 10)]
    assert channel.issued()[-1] == (10 * T["nREFI"] - 1, Kind.ACT16)
    assert report.refreshes == 9


def test_refresh_in_register_mode_keeps_the_mode() -> None:
    channel = DeviceUnderTest(events=np.array([4000], dtype=np.int64))
    channel.give(Command(Kind.ACT16, row=ROW), Command(Kind.TMOD), Command(Kind.WAIT), Command(Kind.WRGB))
    assert [kind for _, kind in channel.issued()][2:] == [Kind.PREA, Kind.REFab, Kind.ACT16, Kind.WRGB]
    assert channel.state.register_mode


def test_device_without_refresh_never_refreshes() -> None:
    channel = DeviceUnderTest(COMPAT, np.array([50_000], dtype=np.int64))
    report = channel.give(Command(Kind.WAIT), Command(Kind.ACT16, row=ROW))
    assert (report.refreshes, report.first_issue) == (0, 50_000)


def test_wait_holds_the_commands_after_it() -> None:
    channel = DeviceUnderTest(events=np.array([7, 1234], dtype=np.int64))
    report = channel.give(Command(Kind.AF16), Command(Kind.WAIT, event=Affine(1)), Command(Kind.ACT16, row=ROW))
    assert channel.issued() == [(0, Kind.AF16), (1234, Kind.ACT16)]
    assert (report.first_issue, report.last_issue) == (0, 1234)


def test_hold_reaches_the_next_program() -> None:
    channel = DeviceUnderTest(events=np.array([500], dtype=np.int64))
    channel.give(Command(Kind.WAIT))
    assert channel.give(Command(Kind.AF16)).first_issue == 500


def test_signal_tells_when_everything_before_it_has_completed() -> None:
    channel = DeviceUnderTest()
    read = Command(Kind.RD, Affine(0), ROW)
    report = channel.give(Command(Kind.ACT16, row=ROW), read, Command(Kind.AF16), Command(Kind.SIGNAL, event=Affine(2)))
    assert report.signals == (-1, -1, T["nRCDRD"] + T["nCL"] + T["nBL"])
    assert report.completed == T["nRCDRD"] + T["nCL"] + T["nBL"]
    assert report.counts[CODE_OF[Kind.SIGNAL]] == 0


def test_signal_seen_repeatedly_keeps_the_last_value() -> None:
    channel = DeviceUnderTest()
    report = channel.give(Loop(3, (Command(Kind.AF16), Command(Kind.SIGNAL))))
    assert report.signals == (3,)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ((Command(Kind.RD, Affine(1), ROW),), "command 0, RD: expected bank 1 with open row 7, found closed"),
        (
            (Command(Kind.ACT16, row=ROW), Command(Kind.MAC16, row=Affine(8))),
            "command 1, MAC16: expected bank 0 with open row 8, found with open row 7",
        ),
        (
            (Command(Kind.ACT, row=ROW), Command(Kind.ACT, row=ROW)),
            "command 1, ACT: expected bank 0 closed, found with open row 7",
        ),
        (
            (Command(Kind.ACT, Affine(3), ROW), Command(Kind.ACT4, Affine(1), ROW)),
            "command 1, ACT4: expected bank 3 closed, found with open row 7",
        ),
        (
            (Command(Kind.ACT16, row=ROW), Command(Kind.REFab)),
            "command 1, REFab: expected bank 0 closed, found with open row 7",
        ),
        ((Command(Kind.ACT, Affine(16), ROW),), "command 0, ACT: expected bank in 0..15, found bank 16"),
        ((Command(Kind.ACT, row=Affine(16384)),), "command 0, ACT: expected row in 0..16383, found row 16384"),
        (
            (Command(Kind.ACT16, row=ROW), Loop(65, (Command(Kind.MAC16, row=ROW, column=affine(v0=1)),))),
            "command 65, MAC16: expected column in 0..63, found column 64",
        ),
        ((Command(Kind.WRGB),), "command 0, WRGB: expected register mode, found memory mode"),
        (
            (Command(Kind.TMOD), Command(Kind.ACT16, row=ROW)),
            "command 1, ACT16: expected memory mode, found register mode",
        ),
        ((Command(Kind.WAIT, event=Affine(4)),), "command 0, WAIT: expected one of 0 known events, found event 4"),
        (
            (Command(Kind.SIGNAL, event=Affine(-1)),),
            "command 0, SIGNAL: expected an event number of at least 0, found event -1",
        ),
    ],
)
def test_illegal_program_is_refused_with_both_sides(commands: tuple[Instruction, ...], message: str) -> None:
    with pytest.raises(IllegalProgram) as caught:
        DeviceUnderTest().give(*commands)
    assert str(caught.value) == message


def test_precharge_of_a_closed_bank_is_legal() -> None:
    assert DeviceUnderTest().give(Command(Kind.PRE, Affine(2))).first_issue == 0


def test_writing_one_value_to_each_bank_closes_all_of_them() -> None:
    channel = DeviceUnderTest()
    channel.give(Command(Kind.ACT16, row=ROW), Command(Kind.WRA16, row=ROW))
    assert set(channel.state.open_row.tolist()) == {-1}


def test_command_without_room_between_refreshes_is_refused() -> None:
    crowded = AIM.model_copy(update={"timing": AIM.timing | {"nREFI": 300}})
    program = Loop(200, (Command(Kind.MAC16, row=ROW),))
    with pytest.raises(IllegalProgram, match="expected room between two refreshes, found none in 64 tries"):
        DeviceUnderTest(crowded).give(Command(Kind.ACT16, row=ROW), program)


def test_device_that_cannot_keep_up_with_refresh_is_refused() -> None:
    hopeless = AIM.model_copy(update={"timing": AIM.timing | {"nREFI": 240}})
    with pytest.raises(ValueError, match="expected 0 < nRFC < time between refreshes, found 240 and 240"):
        fresh_state(hopeless)


def test_loops_nested_too_deep_are_refused() -> None:
    nest: Instruction = Command(Kind.AF16)
    for _ in range(DEPTH_LIMIT):
        nest = Loop(1, (nest, Command(Kind.PREA)))
    flatten(Program((nest,)))
    with pytest.raises(ValueError, match="nested at most 16 deep"):
        flatten(Program((Loop(1, (nest,)),)))
