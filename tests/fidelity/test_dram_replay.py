"""Does a replayed command stream issue exactly when the public simulator's table says? No tolerance.

Commands that no published stream has (writes, automatic precharges, refreshes, other ranks) come from random streams,
with the pairwise checker as their oracle.
"""

import csv
import gzip
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
import typer

from autotune.commands.replay import replay_command
from configs.device import Device, load_device
from simulator.dram_replay import Stream, pin_bytes_per_cycle, replay_stream, without_refresh
from simulator.dram_stream import STANDARD_NAMES, read_stream, write_stream
from simulator.isa import CODE_OF, EVENT_KINDS, KINDS, Affine, Command, Kind, Program
from simulator.program_code import flatten, straight_line
from simulator.timing_table import timing_table
from tests.engine_devices import AIM, DDR5, DDR5_RANKS, GDDR6, HBM2, HBM3, LPDDR5, LPDDR5_RANKS
from tests.pairwise_checker import Checker, Seen

DATA = Path(__file__).parent / "data" / "dram"
STREAMS = sorted(DATA.glob("cmd_*.csv.gz"))
DEVICES = (AIM, HBM2, HBM3, GDDR6, LPDDR5, LPDDR5_RANKS, DDR5, DDR5_RANKS)
NAMES = {kind: name for name, kind in STANDARD_NAMES.items()}


def _device(path: Path) -> Device:
    return load_device(path.name.split("_")[1].lower())


def _rows(path: Path) -> list[list[str]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return list(csv.reader(text.splitlines()))


@pytest.mark.parametrize("path", STREAMS, ids=[path.name for path in STREAMS])
def test_every_command_issues_in_its_asap_cycle(path: Path) -> None:
    device = _device(path)
    file = read_stream(path, device)
    assert file.expected is not None
    np.testing.assert_array_equal(replay_stream(file.stream, device).cycle, file.expected)
    assert len(file.stream) > 400


def _random_stream(random: Random, device: Device, length: int) -> list[Seen]:
    table = timing_table(without_refresh(device))
    kinds = [kind for kind in KINDS if table.has(kind) and kind not in EVENT_KINDS]
    banks = random.sample(range(device.organisation.banks), min(6, device.organisation.banks))
    return [Seen(0, random.choice(kinds), random.choice(banks)) for _ in range(length)]


@pytest.mark.parametrize("device", DEVICES, ids=[f"{index}-{device.name}" for index, device in enumerate(DEVICES)])
def test_random_streams_of_every_command_issue_when_the_rows_allow_it(device: Device) -> None:
    random, checker = Random(device.name), Checker(without_refresh(device))
    seen: set[str] = set()
    for _ in range(4):
        asked = _random_stream(random, device, 160)
        log: list[Seen] = []
        for _, kind, bank in asked:
            log.append(Seen(checker.bound(log, kind, bank) if log else 1, kind, bank))
        codes, banks = np.array([CODE_OF[Kind(entry.kind)] for entry in log]), np.array([entry.bank for entry in log])
        stream = Stream(channel=np.zeros_like(codes), kind=codes, bank=banks, row=np.zeros_like(codes))
        assert replay_stream(stream, device).cycle.tolist() == [entry.cycle for entry in log]
        seen |= {entry.kind for entry in log}
    assert len(seen) == sum(timing_table(without_refresh(device)).has(kind) for kind in KINDS)


def test_channels_know_nothing_of_each_other(tmp_path: Path) -> None:
    header, *rows = _rows(DATA / "cmd_HBM2_stream_bgfast.csv.gz")
    place = header.index("channel")
    both = [[*row[:place], str(channel), *row[place + 1 :]] for row in rows for channel in (0, 7)]
    path = tmp_path / "both.csv"
    with path.open("w", encoding="utf-8", newline="") as target:
        csv.writer(target).writerows([header, *both])
    file = read_stream(path, HBM2)
    assert file.expected is not None
    result = replay_stream(file.stream, HBM2)
    np.testing.assert_array_equal(result.cycle, file.expected)
    assert result.peak_bytes_per_cycle == 2 * pin_bytes_per_cycle(HBM2)


def test_all_bank_commands_say_minus_one_below_what_they_address(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    path.write_text(
        "cycle,cmd,channel,pc,rank_or_sid,bg,bank,row,col,note\n"
        "0,ACT,0,0,1,2,3,9,0,a\n"
        "0,ACT,0,1,0,0,0,9,0,b\n"
        "0,PREab,0,0,-1,-1,-1,-1,-1,c\n"
        "0,REFab,0,0,-1,-1,-1,-1,-1,d\n"
        "0,ACT,0,0,0,0,0,9,0,e\n",
        encoding="utf-8",
    )
    file = read_stream(path, HBM3)
    assert file.expected is None
    cycles = replay_stream(file.stream, HBM3).cycle
    # nRAS and nRC count from the last tick of the first activate, nRFC to the last one of the last.
    assert cycles.tolist() == [1, 4, 1 + 92, 1 + 146, 1 + 146 + 1118]
    write_stream(file, cycles, tmp_path / "out.csv.gz")
    header, *rows = _rows(tmp_path / "out.csv.gz")
    assert header == _rows(path)[0]
    assert [row[1:] for row in rows] == [row[1:] for row in _rows(path)[1:]]
    assert [int(row[0]) for row in rows] == cycles.tolist()


def test_straight_line_equals_flatten() -> None:
    kinds, banks = [Kind.ACT, Kind.RD, Kind.PRE], [3, 3, 5]
    program = Program(tuple(Command(kind, Affine(bank), Affine(7)) for kind, bank in zip(kinds, banks, strict=True)))
    columns = np.array([CODE_OF[kind] for kind in kinds]), np.array(banks), np.full(3, 7)
    found, expected = straight_line(*columns), flatten(program)
    for name in expected._fields:
        if name != "lowest_bank":  # flatten counts bank 0 in
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_command_line_compares_writes_and_exits_with_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = DATA / "cmd_HBM3_rowconf_1bank.csv.gz", tmp_path / "out.csv"
    with pytest.raises(typer.Exit) as done:
        replay_command(source, hardware="hbm3", commands=out, json=True)
    printed = json.loads(capsys.readouterr().out)
    assert done.value.exit_code == 0
    assert (printed["commands"], printed["mismatches"], printed["first_mismatch"]) == (767, 0, None)
    assert printed["commands_by_kind"] == {"ACT": 256, "RD": 256, "PREpb": 255}
    header, *rows = _rows(out)
    assert header == _rows(source)[0]
    assert all(row[0] == row[header.index("asap_cycle")] for row in rows)
    rows[4][header.index("asap_cycle")] = "1"
    with out.open("w", encoding="utf-8", newline="") as target:
        csv.writer(target).writerows([header, *rows])
    with pytest.raises(typer.Exit) as done:
        replay_command(out, hardware="hbm3")
    assert done.value.exit_code == 1
    printed_text = " ".join(capsys.readouterr().out.split())
    assert "1 of 767 commands" in printed_text
    assert "first in line 6, RD: expected 1, found 208" in printed_text
