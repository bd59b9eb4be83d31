"""The controller's rules one at a time, on the smallest traces that show them."""

import pytest

from configs.constraint import Constraint
from configs.device import Device, load_device
from configs.errors import UserError
from simulator.aim.reference import execute_slowly
from simulator.aim.replay import execute
from simulator.aim.requests import COMMAND_NAMES, requests_of
from simulator.aim.rules import QUEUE_LIMIT, rules_of
from simulator.aim.trace import parse_trace

DEVICE = load_device("gddr6-aim-compat")
TIMING = DEVICE.timing
CHANNEL_0 = "0x80000000"
PAUSE = ["AiM EWADD 1 0 0"] * 100
"""Takes the DMA a cycle each and asks nothing of the channels."""


def issued(*lines: str, device: Device = DEVICE) -> list[tuple[int, str]]:
    """Return (cycle, command) of channel 0 for a trace of these lines."""
    requests = requests_of(parse_trace("\n".join([*lines, "AiM EOC"]), device.organisation), 32)
    _, commands = execute(requests, rules_of(device), where="trace")
    chosen = commands.channel == 0
    names = [str(COMMAND_NAMES[code]) for code in commands.name[chosen].tolist()]
    return list(zip(commands.cycle[chosen].tolist(), names, strict=True))


def names_of(*lines: str) -> list[str]:
    return [name for _, name in issued(*lines)]


def test_a_multiply_opens_all_banks_and_waits_for_the_row() -> None:
    rows = issued(f"AiM MAC_ABK 2 {CHANNEL_0} 3")
    first = 1 + TIMING["nRCDRDMAC"]
    assert rows == [(1, "ACT16"), (first, "MAC16"), (first + TIMING["nCCDS"], "MAC16"), (first + 3, "EOC")]


def test_a_mode_change_stands_in_for_the_command_and_delays_it() -> None:
    assert issued(f"AiM WR_BIAS 0 {CHANNEL_0}")[:2] == [(1, "TMOD"), (1 + TIMING["nMODCH"], "WRMAC16")]


def test_a_read_that_meets_a_queued_write_is_answered_without_a_command() -> None:
    assert "RD" not in names_of("W MEM 0 0 0", "W MEM 0 0 1", "W MEM 0 0 2", "R MEM 0 5 9")


def test_a_read_is_issued_when_only_an_active_write_remains() -> None:
    assert names_of("W MEM 0 0 0", "AiM EWADD 1 0 0", "R MEM 0 5 9", *PAUSE).count("RD") == 1


def test_the_end_does_not_wait_for_writes_in_the_active_queue() -> None:
    assert names_of("W MEM 0 0 0") == ["ACT", "EOC"]
    assert names_of("W MEM 0 0 0", *PAUSE) == ["ACT", "WR", "EOC"]


def test_a_full_queue_holds_the_next_instruction_back() -> None:
    rows = issued(f"AiM MAC_ABK {QUEUE_LIMIT} {CHANNEL_0} 0", f"AiM WR_BIAS 0 {CHANNEL_0}")
    assert [name for _, name in rows] == ["ACT16", *["MAC16"] * QUEUE_LIMIT, "TMOD", "WRMAC16", "EOC"]


def test_a_host_access_that_holds_its_own_row_open_is_told_instead_of_running_for_ever() -> None:
    """Needs a device that may open all banks sooner than one: the compat table never gets there."""
    slow = Constraint(level="channel", preceding=("PREA",), following=("ACT",), cycles="nRP + nRP")
    device = DEVICE.model_copy(update={"constraints": (*DEVICE.constraints, slow)})
    reads = ["R MEM 0 1 5"] * 20
    lines = ["R MEM 0 1 5", *PAUSE, "W MEM 0 0 5", *reads, f"AiM MAC_ABK 1 {CHANNEL_0} 0", f"AiM RD_MAC 0 {CHANNEL_0}"]
    with pytest.raises(UserError, match="never ends"):
        issued(*lines, device=device)
    requests = requests_of(parse_trace("\n".join([*lines, "AiM EOC"]), device.organisation), 32)
    assert execute_slowly(requests, rules_of(device), cycle_limit=2000) is None
