"""Energy of CENT's 7B block, line by line: CENT's published model beside ours, on the replayed instruction trace.

    python -m experiments.cent_energy

The trace drives all 32 channels of a device, which runs four blocks side by side; figures are per block, a quarter.
Ours are those of gddr6-aim-compat; what a model does not price is left empty.
"""

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.exit_codes import run_to_exit_code
from autotune.units import MJ_PER_PJ
from configs.device import Basis, Device, load_device
from experiments.cent_power import Activity, Block, dram_lines_mj, other_lines_mj
from simulator.aim.instructions import Opcode
from simulator.aim.replay import Commands, replay
from simulator.aim.trace import read_trace
from simulator.energy import command_energy, on_basis, required_energy
from simulator.isa import CODE_OF, KINDS, Kind

TRACE = Path(__file__).resolve().parents[1] / "tests" / "fidelity" / "data" / "aim" / "cent_7b_c8_s128.trace.gz"
DEVICE = "gddr6-aim-compat"
BLOCK = Block(hidden=4096, heads=32, tokens=128, query_groups=1)
BLOCKS = 4
# Llama2-7B at 128 tokens on 8 devices of 32 channels, 8 channels per block: cent_simulation/simulation_results.csv.
PUBLISHED_TOKEN_MJ = 61.51530242170184
DEVICES = 8
ROW_KINDS = (Kind.ACT, Kind.ACT16, Kind.PRE, Kind.PREA, Kind.WRA16)
BARRIERS = frozenset({Opcode.SYNC, Opcode.EOC})
MULTIPLIES = (Kind.MAC, Kind.MAC16, Kind.EWMUL16)
BUFFER_USERS = (Kind.WRGB, Kind.RDCP, Kind.WRCP, Kind.MAC, Kind.MAC16)
PJ_PER_MW_CYCLE_PS = 1e-3


def replay_activity(trace: Path, device: Device) -> Activity:
    """Execute a trace and return what the device did."""
    result = replay(trace, device)
    counts = {Kind(name): count for name, count in result.commands.counts().items()}
    channels = int(result.commands.channel.max()) + 1
    groups, banks = range(device.organisation.bank_groups), range(device.organisation.banks_per_group)
    every_bank = frozenset((group, bank) for group in groups for bank in banks)
    open_cycles = sum(
        channel_open_cycles(result.commands, channel, every_bank, result.cycles) for channel in range(channels)
    )
    opcodes = Counter(item.opcode for item in read_trace(trace, device.organisation).instructions)
    # Host accesses, whose opcodes hold a blank, are no instructions to the channels.
    sent = sum(count for opcode, count in opcodes.items() if " " not in opcode)
    barriers = sum(opcodes[opcode] for opcode in BARRIERS)
    return Activity(counts, result.cycles, open_cycles, channels * result.cycles - open_cycles, sent, barriers)


def channel_open_cycles(commands: Commands, channel: int, every_bank: frozenset[tuple[int, int]], cycles: int) -> int:
    """Return in how many of a run's cycles, counted from 1, a channel has a row open after that cycle's command."""
    chosen = (commands.channel == channel) & np.isin(commands.name, [CODE_OF[kind] for kind in ROW_KINDS])
    columns = (commands.cycle, commands.name, commands.bank_group, commands.bank)
    open_banks: set[tuple[int, int]] = set()
    total, opened = 0, 0
    for cycle, name, group, bank in zip(*(column[chosen].tolist() for column in columns), strict=True):
        was_open = bool(open_banks)
        match KINDS[name]:
            case Kind.ACT:
                open_banks.add((group, bank))
            case Kind.PRE:
                open_banks.discard((group, bank))
            case Kind.ACT16:
                open_banks |= every_bank
            case _:
                open_banks.clear()
        if open_banks and not was_open:
            opened = cycle
        elif was_open and not open_banks:
            total += cycle - opened
    return total + (cycles + 1 - opened if open_banks else 0)


def our_lines_mj(did: Activity, device: Device) -> dict[str, float]:
    """Return the same energy priced by our model, on the basis of the device's constants; no line is left out."""
    prices, energy = command_energy(device), required_energy(device)
    counts = np.array([did.counts.get(kind, 0) for kind in KINDS])
    multiplies = np.isin(np.arange(len(KINDS)), [CODE_OF[kind] for kind in MULTIPLIES])
    buffers = np.isin(np.arange(len(KINDS)), [CODE_OF[kind] for kind in BUFFER_USERS]) * energy.global_buffer_access_pj
    columns = prices.column - buffers
    standby = energy.standby_active_mw * did.open_cycles + energy.standby_precharged_mw * did.closed_cycles
    picojoule = {
        "rows": counts @ prices.row,
        "reads and writes": counts @ (columns * ~multiplies),
        "multiply": counts @ (columns * multiplies),
        "global buffer": counts @ buffers,
        "data bus": counts @ prices.data_bus,
        "controller": counts @ prices.controller,
        "PHY": counts @ prices.phy,
        "standby": standby * device.cycle_ps * PJ_PER_MW_CYCLE_PS,
    }
    return {name: float(value) * MJ_PER_PJ for name, value in picojoule.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Lines in mJ of a whole device: CENT as published, CENT with all of its standby, ours datasheet and typical."""

    published: Mapping[str, float]
    corrected: Mapping[str, float]
    ours: Mapping[str, float]
    typical: Mapping[str, float]

    def columns(self) -> tuple[Mapping[str, float], ...]:
        """Return the four in the order of the printed table."""
        return self.published, self.corrected, self.ours, self.typical


def compare(did: Activity, device: Device) -> Comparison:
    """Price what a device did with both models."""
    others = other_lines_mj(did, BLOCK)
    return Comparison(
        published=dram_lines_mj(did, published_standby=True) | others,
        corrected=dram_lines_mj(did, published_standby=False) | others,
        ours=our_lines_mj(did, device),
        typical=our_lines_mj(did, on_basis(device, Basis.TYPICAL)),
    )


def print_table(found: Comparison) -> None:
    """Print mJ per block by line."""
    print(f"{'mJ per block':18s}{'CENT':>11s}{'corrected':>11s}{'ours':>11s}{'typical':>11s}")
    for name in found.published:
        cells = (column.get(name) for column in found.columns())
        print(f"{name:18s}" + "".join(" " * 11 if cell is None else f"{cell / BLOCKS:11.6f}" for cell in cells))
    totals = [sum(column.values()) for column in found.columns()]
    print(f"{'sum':18s}" + "".join(f"{total / BLOCKS:11.6f}" for total in totals))
    print(f"standby left out of CENT's total: with all of it the total is {totals[1] / totals[0]:.4f} times as large")
    print(f"CENT's energy per token: {totals[0] * DEVICES:.6f} mJ here, {PUBLISHED_TOKEN_MJ:.6f} mJ published")


def main() -> None:
    """Replay the trace and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, nargs="?", default=TRACE)
    parser.add_argument("--json", action="store_true")
    choice = parser.parse_args()
    device = load_device(DEVICE)
    found = compare(replay_activity(choice.trace, device), device)
    if choice.json:
        print(json.dumps({name: dict(getattr(found, name)) for name in ("published", "corrected", "ours", "typical")}))
    else:
        print_table(found)


if __name__ == "__main__":
    run_to_exit_code(main)
