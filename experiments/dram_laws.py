"""What the textbook says of plain DRAM against what the simulator finds: streaming bandwidth, refresh loss, latency.

python -m experiments.dram_laws
"""

from dataclasses import dataclass, replace

import numpy as np

from autotune.exit_codes import run_to_exit_code
from configs.device import Device, load_device
from simulator.channel import NO_EVENTS
from simulator.dram_replay import pin_bytes_per_cycle, without_refresh
from simulator.engine import Engine
from simulator.isa import Affine, Command, Instruction, Kind, Loop, Program, affine
from simulator.program_code import flatten
from simulator.timing_table import timing_table

STANDARDS = ("ddr5", "gddr6", "hbm2", "hbm3", "lpddr5")
ROWS = 400  # of each bank of a streaming read


@dataclass(frozen=True, slots=True)
class Law:
    """One figure of one device, by the formula and by simulation, and how far they may lie apart."""

    device: str
    name: str
    unit: str
    expected: float
    found: float
    tolerance: float

    @property
    def deviation(self) -> float:
        """Found over expected, minus one."""
        return self.found / self.expected - 1


def laws(device: Device) -> tuple[Law, ...]:
    """Return the laws of one device."""
    peak, timing = pin_bytes_per_cycle(device) * device.organisation.pseudo_channels, device.timing
    still = without_refresh(device)
    activate = _activate_clocks(device)
    to_precharge = timing["nRTP"] if "nRTP" in timing else timing["nRTPL"]
    lost = to_precharge + timing["nRP"] + timing["nRFC"] + activate
    latency = (timing["nRP"] + activate + timing["nCL"] + timing["nBL"]) * device.ticks_per_clock
    per_ns = 1 / device.nanoseconds(1)
    return (
        Law(device.name, "streaming reads", "GB/s", peak * per_ns, streaming_bytes_per_cycle(still) * per_ns, 0.003),
        Law(
            device.name,
            "streaming reads, refreshed",
            "GB/s",
            peak * (1 - lost / timing["nREFI"]) * per_ns,
            streaming_bytes_per_cycle(device) * per_ns,
            0.01,
        ),
        Law(
            device.name,
            "latency of one read, other row open",
            "ns",
            device.nanoseconds(latency),
            device.nanoseconds(read_latency_cycles(still)),
            0.08,
        ),
    )


def streaming_bytes_per_cycle(device: Device) -> float:
    """Return the bandwidth of a channel whose pseudo channels all read row after row."""
    engine = Engine(device)
    report = engine.run(flatten(streaming_reads(device, ROWS)), engine.fresh_state(), NO_EVENTS)
    organisation = device.organisation
    moved = 4 * ROWS * organisation.pseudo_channels * organisation.row_bytes
    return moved / (report.completed - report.first_issue)


def streaming_reads(device: Device, rows: int) -> Program:
    """Return reads of whole rows, always from two bank groups in turn, while two banks of other groups change rows.

    Every pseudo channel reads banks 0 of bank groups 0 and 1, then of 2 and 3, then the next row of 0 and 1, ...
    """
    here, there = _pair(device, 0), _pair(device, 2)
    row = affine(v0=1)
    first = tuple(part for bank in here for part in _open(device, bank, affine(0)))
    turn = (
        *_read_while_opening(device, here, row, there, row),
        *_read_while_opening(device, there, row, here, row.plus(1)),
    )
    return Program((*first, *_start_data_clock(device, here[0]), Loop(rows, turn)))


def _pair(device: Device, group: int) -> list[int]:
    """Return bank 0 of two bank groups of every pseudo channel, one group after the other."""
    organisation = device.organisation
    in_pseudo_channel = organisation.banks // organisation.pseudo_channels
    return [
        pseudo_channel * in_pseudo_channel + each * organisation.banks_per_group
        for each in (group, group + 1)
        for pseudo_channel in range(organisation.pseudo_channels)
    ]


def _open(device: Device, bank: int, row: Affine) -> tuple[Command, ...]:
    halves = (Kind.ACT1, Kind.ACT2) if timing_table(device).has(Kind.ACT1) else (Kind.ACT,)
    return tuple(Command(kind, Affine(bank), row) for kind in halves)


def _start_data_clock(device: Device, bank: int) -> tuple[Command, ...]:
    return (Command(Kind.CAS_RD, Affine(bank)),) if timing_table(device).has(Kind.CAS_RD) else ()


def _read_while_opening(
    device: Device, here: list[int], row: Affine, there: list[int], next_row: Affine
) -> tuple[Instruction, ...]:
    """Return the reads of one row of these banks; in between the others are closed early and opened late.

    Commands that change rows go one by one between the reads, so that none of them waits while the data bus is free.
    """
    columns, timing = device.organisation.columns, device.timing
    reads = tuple(Command(Kind.RD, Affine(bank), row, affine(v1=1)) for bank in here)
    column_clocks = 2 * timing["nBL"]
    opening = [command for bank in there for command in _open(device, bank, next_row)]
    between = timing["nRRDS"] // column_clocks + 1  # columns between two opening commands
    first_opening = columns - _activate_clocks(device) // column_clocks - 3 - between * len(opening)
    placed = [(2 + index, Command(Kind.PRE, Affine(bank))) for index, bank in enumerate(there)]
    placed += [(first_opening + between * index, command) for index, command in enumerate(opening)]
    body: list[Instruction] = []
    last = 0
    for place, command in placed:
        body += [Loop(place - last, _from_column(reads, last)), command]
        last = place
    return (*body, Loop(columns - last, _from_column(reads, last)))


def _from_column(reads: tuple[Command, ...], column: int) -> tuple[Command, ...]:
    return tuple(replace(read, column=read.column.plus(column)) for read in reads)


def _activate_clocks(device: Device) -> int:
    """Return nRCD of reads."""
    return device.timing["nRCDRD"] if "nRCDRD" in device.timing else device.timing["nRCD"]


def read_latency_cycles(device: Device) -> int:
    """Return the cycles from the precharge of another row to the last beat of a read, on an idle channel."""
    engine = Engine(device)
    state, bank = engine.fresh_state(), Affine(0)
    idle_from = 10_000
    engine.run(flatten(Program(_open(device, 0, affine(0)))), state, NO_EVENTS)
    read = (*_open(device, 0, affine(1)), *_start_data_clock(device, 0), Command(Kind.RD, bank, affine(1)))
    program = Program((Command(Kind.WAIT), Command(Kind.PRE, bank), *read))
    report = engine.run(flatten(program), state, np.array([idle_from], dtype=np.int64))
    return report.completed - report.first_issue


def main() -> None:
    """Print every law with what was found."""
    print(f"{'device':8}{'law':38}{'expected':>10}{'found':>10}  unit  deviation  tolerance")
    for name in STANDARDS:
        for law in laws(load_device(name)):
            print(
                f"{law.device:8}{law.name:38}{law.expected:10.2f}{law.found:10.2f}  {law.unit:5}"
                f"{law.deviation:9.2%}  {law.tolerance:8.1%}"
            )


if __name__ == "__main__":
    run_to_exit_code(main)
