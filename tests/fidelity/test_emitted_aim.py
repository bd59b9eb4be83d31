"""Does the public AiM simulator take what is emitted, with the cycles that we tell? Exactly: no tolerance."""

import csv
import gzip
from pathlib import Path

import pytest

from autotune.compile_forms import aim_cycles
from configs.device import load_device

DATA = Path(__file__).parent / "data" / "aim_emitted"
CYCLES = {
    row["trace"]: int(row["total_cycles"])
    for row in csv.DictReader((DATA / "totals.csv").read_text(encoding="utf-8").splitlines())
}


@pytest.mark.parametrize("name", CYCLES)
def test_cycles_told_of_an_emitted_trace_are_those_of_the_public_simulator(name: str) -> None:
    text = gzip.decompress((DATA / f"{name}.trace.gz").read_bytes()).decode("utf-8")
    assert text.startswith("# llama-3.1-8b")
    assert aim_cycles(text, load_device("gddr6-aim-compat")) == CYCLES[name]
