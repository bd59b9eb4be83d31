"""What a user may get wrong in a command stream, each with file, line and column; and every exit code."""

import gzip
from pathlib import Path

import pytest

from autotune.commands.replay import replay_command
from configs.device import Device
from configs.errors import UserError
from simulator.dram_stream import is_stream, read_stream, write_stream
from tests.engine_devices import DDR5, GDDR6, HBM2, LPDDR5

HEADER = "cycle,cmd,channel,pc,rank_or_sid,bg,bank,row,col,asap_cycle\n"
GOOD = HEADER + "1,ACT,0,1,0,2,3,77,0,1\n16,RD,0,1,0,2,3,77,5,16\n"


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "stream.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "device", "expected"),
    [
        (GOOD.replace("RD", "RDD"), HBM2, "line 3, column cmd: expected a command of hbm2"),
        (GOOD.replace("RD", "RDD"), HBM2, "did you mean RD"),
        (GOOD.replace("RD", "MAC16"), HBM2, "found 'MAC16'"),
        (GOOD.replace("RD", "WAIT"), HBM2, "found 'WAIT'"),
        (GOOD.replace("ACT", "ACT1"), HBM2, "line 2, column cmd"),
        (GOOD, LPDDR5, "line 2, column cmd: expected a command of lpddr5"),
        (GOOD, GDDR6, "line 2, column pc: expected 0 to 0"),
        (GOOD.replace("0,2,3,77,5", "0,2,4,77,5"), HBM2, "line 3, column bank: expected 0 to 3, .* found 4"),
        (GOOD.replace("0,2,3,77,5", "0,4,3,77,5"), HBM2, "line 3, column bg: expected 0 to 3, .* found 4"),
        (GOOD.replace("0,2,3,77,5", "0,2,-1,77,5"), HBM2, "found -1; write one line for each"),
        (GOOD.replace("16,RD,0,1,0,2,3", "16,REFab,0,-1,-1,-1,-1"), HBM2, "REFab addresses one pseudochannel"),
        (GOOD.replace("16,RD,0", "16,RD,-1"), HBM2, "line 3, column channel: expected a channel of at least 0"),
        (GOOD.replace("77,5", "77,x"), HBM2, "line 3, column col: expected an integer, found 'x'"),
        (GOOD.replace("77,5,16", "77,5,"), HBM2, "line 3, column asap_cycle: expected an integer, found ''"),
        (GOOD.replace("77,5", "99999999999999999999,5"), HBM2, "line 3, column row: expected an integer"),
        (GOOD.replace("bg,", "group,"), HBM2, "line 1: expected the columns .* found no column bg"),
        (GOOD.replace("asap_cycle", "row"), HBM2, "line 1: expected every column once, found column row 2 times"),
        (GOOD + "20,RD,0\n", HBM2, "line 4: expected 10 cells, found 3"),
        ("", HBM2, "line 1: expected the columns"),
        ("no commas at all\n", HBM2, "line 1: expected the columns"),
        (GOOD + '1,"RD\n', HBM2, "expected comma-separated text"),
    ],
)
def test_a_mistake_is_named_with_line_and_column(tmp_path: Path, text: str, device: Device, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        read_stream(_file(tmp_path, text), device)


def test_files_that_cannot_be_read_are_the_users_mistake(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD.encode() * 50)
    for name, content, expected in (
        ("cut.csv.gz", packed[:-20], "a whole gzip file"),
        ("plain.csv.gz", GOOD.encode(), "a whole gzip file"),
        ("packed.csv", packed, "comma-separated text"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(UserError, match=expected):
            read_stream(path, HBM2)
    with pytest.raises(UserError, match="No such file"):
        read_stream(tmp_path / "none.csv", HBM2)


def test_a_target_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    file = read_stream(_file(tmp_path, GOOD), HBM2)
    with pytest.raises(UserError, match="--commands"):
        write_stream(file, file.stream.row, tmp_path / "none" / "out.csv")


def test_levels_a_device_has_one_of_may_be_all(tmp_path: Path) -> None:
    text = HEADER + "1,ACT,0,-1,-1,7,3,77,0,1\n1,PREab,0,-1,-1,-1,-1,-1,-1,1\n\n"
    file = read_stream(_file(tmp_path, text), DDR5)
    assert file.stream.bank.tolist() == [31, 0]
    assert file.lines == [2, 3]


def test_the_suffix_says_what_a_file_is() -> None:
    assert is_stream(Path("a.csv"))
    assert is_stream(Path("a.csv.gz"))
    assert not is_stream(Path("a.trace"))
    assert not is_stream(Path("a.trace.gz"))


def test_a_stream_asks_for_its_device(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--hardware: expected the device whose commands the stream holds"):
        replay_command(_file(tmp_path, GOOD))


def test_a_stream_without_commands_is_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least one command"):
        read_stream(_file(tmp_path, HEADER), HBM2)


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "marked.csv"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert read_stream(path, HBM2).header[0] == "cycle"


def test_a_stream_is_not_replaced_by_its_own_replay(tmp_path: Path) -> None:
    file = _file(tmp_path, GOOD)
    with pytest.raises(UserError, match="another file than the one that is replayed"):
        replay_command(file, "hbm2", file)


@pytest.mark.parametrize(("name", "expected"), [("a.CSV", "a name that ends in"), ("none.trace", "found none")])
def test_what_is_neither_trace_nor_stream_is_told_so(tmp_path: Path, name: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        replay_command(tmp_path / name, "hbm2")
