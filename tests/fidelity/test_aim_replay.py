"""Does a replayed instruction trace give the public AiM simulator's cycles and commands? Exactly: no tolerance."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from autotune.commands.replay import replay_command
from configs.device import load_device
from simulator.aim.replay import Commands, replay
from simulator.aim.requests import COMMAND_NAMES

DATA = Path(__file__).parent / "data" / "aim"
TOTALS = {row["trace"]: row for row in csv.DictReader((DATA / "totals.csv").read_text(encoding="utf-8").splitlines())}


def trace_file(name: str) -> Path:
    return next(path for path in (DATA / f"{name}.trace", DATA / f"{name}.trace.gz") if path.exists())


def expected_rows(name: str) -> list[list[str]]:
    with gzip.open(DATA / f"{name}.commands.csv.gz", "rt", encoding="utf-8") as source:
        return list(csv.reader(source))[1:]


def rows_of(commands: Commands, channels: list[int]) -> list[list[str]]:
    chosen = np.isin(commands.channel, channels)
    columns = [commands.cycle, commands.name, commands.channel, commands.bank_group]
    columns += [commands.bank, commands.row, commands.column, commands.instruction]
    rows = zip(*(column[chosen].tolist() for column in columns), strict=True)
    return [[str(cycle), str(COMMAND_NAMES[name]), *map(str, rest)] for cycle, name, *rest in rows]


@pytest.mark.parametrize("name", TOTALS)
def test_cycles_and_every_command_equal_the_public_simulator(name: str) -> None:
    result = replay(trace_file(name), load_device("gddr6-aim-compat"))
    expected = expected_rows(name)
    found = rows_of(result.commands, sorted({int(row[2]) for row in expected}))
    if TOTALS[name]["command_rows_cut_at_50000"] == "True":
        found = found[: len(expected)]
    assert result.cycles == int(TOTALS[name]["total_cycles"])
    assert result.commands.counts() == json.loads(TOTALS[name]["commands_all_channels_json"])
    assert found == expected


def test_the_command_writes_the_reference_table_and_prints_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "commands.csv.gz"
    replay_command(trace_file("micro_copy"), commands=target, json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["cycles"] == 4697
    assert printed["commands"] == 820
    assert printed["commands_by_kind"]["PRE"] == 18
    reference = gzip.decompress((DATA / "micro_copy.commands.csv.gz").read_bytes())
    assert gzip.decompress(target.read_bytes()) == reference


def test_the_plain_table_equals_the_packed_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay_command(trace_file("micro_copy"), commands=tmp_path / "commands.csv")
    assert "4,697 cycles" in capsys.readouterr().out
    reference = gzip.decompress((DATA / "micro_copy.commands.csv.gz").read_bytes())
    assert (tmp_path / "commands.csv").read_bytes() == reference
