"""Traces: what is read, and what every malformed line is told."""

import gzip
from pathlib import Path

import pytest

from configs.device import load_device
from configs.errors import UserError
from simulator.aim.instructions import Instruction, Opcode
from simulator.aim.replay import replay
from simulator.aim.trace import parse_trace, read_trace

DEVICE = load_device("gddr6-aim-compat")
MALFORMED = {
    "an unknown first word": ("MAC_ABK 1 0x1 0", "starts with AiM, R, W"),
    "an unknown instruction": ("AiM MAC_XBK 1 0x1 0", "'MAC_XBK'"),
    "an unsupported instruction": ("AiM WR_AFLUT 1", "'WR_AFLUT'"),
    "no instruction": ("AiM", "the end of the line"),
    "an unknown region": ("W BANK 0 0 0", "'BANK'"),
    "a missing field": ("AiM MAC_ABK 1 0x1", "3 fields after MAC_ABK (opsize, channel mask, row), found 2"),
    "a field too many": ("AiM AF 0x1 0", "1 fields after AF (channel mask), found 2"),
    "a word for a number": ("AiM MAC_ABK 1 all 0", "'all'"),
    "a hexadecimal without digits": ("AiM MAC_ABK 1 0x 0", "'0x'"),
    "no columns": ("AiM MAC_ABK 0 0x1 0", "opsize from 1"),
    "negative columns": ("AiM WR_GB -4 0 0x1", "found -4"),
    "a mask without channels": ("AiM MAC_ABK 1 0x0 0", "which names no channel"),
    "a mask of 33 bits": ("AiM MAC_ABK 1 0x100000000 0", "found 0x100000000"),
    "several channels for WR_ABK": ("AiM WR_ABK 0 0x3 0", "exactly one channel"),
    "a bank out of range": ("AiM MAC_SBK 1 0x1 16 0", "bank from 0 to 15, found 16"),
    "a row out of range": ("AiM MAC_ABK 1 0x1 16384", "row from 0 to 16383, found 16384"),
    "a negative row": ("R MEM 0 0 -1", "row from 0"),
    "a channel out of range": ("W MEM 32 0 0", "channel from 0 to 31, found 32"),
    "an unknown configuration register": ("W CFR 3 0", "configuration register from 0 to 2"),
}


@pytest.mark.parametrize(("line", "message"), MALFORMED.values(), ids=list(MALFORMED))
def test_a_malformed_line_is_told_with_its_place(line: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_trace(f"# heading\n\n{line}\nAiM EOC\n", DEVICE.organisation, name="some.trace")
    assert str(caught.value).startswith("some.trace:3: expected ")
    assert message in str(caught.value)
    assert "; " in str(caught.value)


@pytest.mark.parametrize("text", ["", "# nothing\n", "AiM AF 1\n"])
def test_a_trace_without_its_end_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="append `AiM EOC`"):
        parse_trace(text, DEVICE.organisation)


def test_a_mask_beyond_the_channels_of_the_device_is_refused() -> None:
    organisation = DEVICE.organisation.model_copy(update={"channels": 8})
    assert parse_trace("AiM AF 0x01000000\nAiM EOC", organisation).instructions[0].channels == (7,)
    with pytest.raises(UserError, match="channel 8"):
        parse_trace("AiM AF 0x00800000\nAiM EOC", organisation)


def test_the_highest_mask_bit_is_channel_zero_and_the_prefix_may_stand() -> None:
    trace = parse_trace("AiM ISR_MAC_SBK 0x10 2147483651 5 77\nAiM EOC", DEVICE.organisation)
    expected = Instruction(Opcode.MAC_SBK, opsize=16, channels=(0, 30, 31), bank=5, row=77)
    assert trace.instructions[0] == expected


def test_columns_beyond_the_row_are_accepted_as_the_public_simulator_does() -> None:
    assert parse_trace("AiM EWMUL 256 1 0\nAiM EOC", DEVICE.organisation).instructions[0].opsize == 256


def test_lines_after_the_end_are_counted_but_not_read() -> None:
    trace = parse_trace("AiM EOC\n# remark\nnonsense\n\nAiM EOC\n", DEVICE.organisation)
    assert len(trace.instructions) == 1
    assert trace.ignored_lines == 2


def test_a_packed_trace_is_unpacked_and_a_broken_one_refused(tmp_path: Path) -> None:
    packed = tmp_path / "some.trace.gz"
    packed.write_bytes(gzip.compress(b"AiM EOC\n", mtime=0))
    assert len(read_trace(packed, DEVICE.organisation).instructions) == 1
    packed.write_bytes(packed.read_bytes()[:-6])
    with pytest.raises(UserError, match=r"some\.trace\.gz"):
        read_trace(packed, DEVICE.organisation)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        read_trace(tmp_path / "none.trace", DEVICE.organisation)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.trace").write_bytes(b"\xff\xfe\x00AiM")
    with pytest.raises(UserError, match="readable AiM trace"):
        read_trace(tmp_path / "binary.trace", DEVICE.organisation)


@pytest.mark.parametrize("change", [{"refresh": True}, {"family": "hbm-pim"}])
def test_a_device_the_rules_do_not_fit_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "some.trace").write_text("AiM EOC\n", encoding="utf-8")
    with pytest.raises(UserError, match="replay on -compat devices"):
        replay(tmp_path / "some.trace", DEVICE.model_copy(update=change))
