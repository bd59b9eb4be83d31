"""The reference kernels of Samsung's public PIMSimulator: every total, and every command at its cycle."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from configs.device import load_device
from simulator.dram_replay import Stream, replay_stream
from simulator.hbm_pim.controller import controller_commands, kernel_cycles, with_ranks
from simulator.hbm_pim.reference_kernels import Elementwise, elementwise_accesses, gemv_accesses, gemv_tree_accesses
from simulator.isa import CODE_OF, Kind

DATA = Path(__file__).parent / "data" / "hbm_pim"
COMPAT = load_device("hbm-pim-compat")
ON_THE_WIRE = {Kind.ACT8: "ACT", Kind.PRE8: "PRE", Kind.RD8: "RD", Kind.WR8: "WR", Kind.ST8: "WR", Kind.REFab: "REF"}
STREAMS = sorted(path.name.removeprefix("trace_").removesuffix(".csv.gz") for path in DATA.glob("trace_*"))
BANKS = 16


def _totals():
    with (DATA / "cycles.csv").open(encoding="utf-8") as source:
        return [
            {key: value if key == "kernel" else int(value) for key, value in row.items()}
            for row in csv.DictReader(source)
        ]


def _accesses(kernel, outputs, inputs, batch):
    if kernel == "GEMV":
        return gemv_accesses(outputs, inputs, batch)
    if kernel == "GEMVTREE":
        return gemv_tree_accesses(outputs, inputs, batch)
    return elementwise_accesses(Elementwise(kernel), outputs)


def _of_stream(name):
    kernel, _, shape, batch = name.split("_")
    outputs, inputs = (int(size) for size in shape.split("x"))
    return _accesses(kernel, outputs, inputs, int(batch[1:]))


def _stream(name):
    with gzip.open(DATA / f"trace_{name}.csv.gz", "rt", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    return [
        (int(row["cycle"]), row["cmd"], int(row["rank"]) * BANKS + int(row["bank"]), int(row["row"]), int(row["col"]))
        for row in rows
    ]


@pytest.mark.parametrize("row", _totals(), ids=lambda row: "-".join(str(value) for value in row.values()))
def test_every_kernel_takes_the_reference_cycles(row):
    accesses = _accesses(row["kernel"], row["out_dim"], row["in_dim"], row["batch"])
    assert kernel_cycles(accesses, with_ranks(COMPAT, row["ranks"])) == row["cycles_1ns"]


@pytest.mark.parametrize("name", STREAMS)
def test_every_command_issues_in_the_reference_cycle(name):
    found = controller_commands(_of_stream(name), with_ranks(COMPAT, 2))
    expected = _stream(name)
    assert [(entry.cycle, ON_THE_WIRE.get(entry.kind, str(entry.kind)), entry.bank) for entry in found] == [
        item[:3] for item in expected
    ]
    accessed = [(entry.row, entry.column) for entry in found if entry.kind in (Kind.RD, Kind.RD8)]
    assert accessed == [item[3:] for item in expected if item[1] == "RD"]


# The kernel with a tree begins with writes that issue no faster than they enter the queue, which no table says.
@pytest.mark.parametrize("name", [name for name in STREAMS if "TREE" not in name])
def test_the_order_issued_by_the_engine_as_early_as_the_table_allows_takes_the_same_cycles(name):
    device = with_ranks(COMPAT, 1)
    commands = controller_commands(_of_stream(name), device)
    kind, bank, row = (
        np.array(values, dtype=np.int64)
        for values in zip(*((CODE_OF[entry.kind], entry.bank, entry.row) for entry in commands), strict=True)
    )
    replayed = replay_stream(Stream(np.zeros_like(kind), kind, bank, row), device).cycle
    asked = np.array([entry.cycle for entry in commands])
    # What clears the banks for a refresh waits until that is due, of which a stream of commands knows nothing.
    before = asked < device.refresh_interval_cycles
    assert before.sum() > len(asked) // 2
    assert (replayed[before] == asked[before]).all()


@pytest.mark.parametrize(("outputs", "inputs"), [(64, 256), (64, 512), (128, 512)])
def test_another_tile_of_even_banks_takes_what_the_stream_shows(outputs, inputs):
    """A tile is 8 writes, 64 reads and a row switch: 341 cycles in even banks, 388 in odd ones."""
    groups = outputs // 64
    more = gemv_accesses(outputs, inputs + 256)
    added = kernel_cycles(more, _without_refresh()) - kernel_cycles(gemv_accesses(outputs, inputs), _without_refresh())
    assert added == groups * (341 + 388)


def _without_refresh():
    slow = COMPAT.timing | {"nREFI": 900_000}
    return COMPAT.model_copy(update={"timing": slow})
