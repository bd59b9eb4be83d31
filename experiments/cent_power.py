"""CENT's published power model, written anew from its formulas: the yardstick that our energy model is held against.

Source: CENT (ASPLOS'25), public repository Yufeng98/CENT, cent_simulation/cent_power_calculator.py. It shares no
constant and no line with `simulator.energy`. It prices what one device of 32 channels does; all results are mJ.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.isa import Kind

CHANNELS = 32
CHANNELS_PER_CONTROLLER = 2
BANKS = 16
CLOCK_HZ = 2.0e9
# mW of one channel (half of a chip's).
ACTIVE_STANDBY, PRECHARGED_STANDBY, ACTIVATE, WRITE, READ = (chip / 2 for chip in (527.5, 366.3, 132.6, 1106.3, 876.3))
ROW_CYCLE_NS, BURST_NS, COLUMN_CYCLE_NS = 44.5, 1.25, 1.0
TRANSCEIVER_MW, PHY_MW = 267.7082056, 381.0445262
BUS_PJ_PER_BIT, LINK_PJ_PER_BIT, BURST_BITS = 5.5, 4.4, 256
# mW at 2 GHz: static, read, write.
GLOBAL_BUFFER = (0.06702101898, 0.2785010052, 0.3254884575)
SHARED_BUFFER = (0.6917736525, 3.207188769, 3.754155771)
INSTRUCTION_BUFFER = (18.81731768, 70.13266856, 92.43730523)
# mW at 2 GHz while working, and nW of leakage: reduction tree, exponent, vector adder, device control.
REDUCTION, EXPONENT, VECTOR = (0.0562 + 0.232, 5620.0), (0.0339 + 0.560, 12800.0), (0.133 + 0.248, 6540.0)
CONTROL_MW = (3.18e-3 + 3.36e-3 + 2.89e-3 + 0.237 + 1.3e-4) + (2.49e-2 + 0.237 + 4.51e-2 + 5.42 + 8.77e-3)
CONTROL_LEAKAGE_NW = 287.0 + 1480.0 + 294.0 + 43600.0 + 87.8
CONTROL_DUTY = 0.5
RISCV_MW, RISCV_CORES = 3.96, 8
MJ_PER_PJ = 1e-9
# A published slip: nW divided by 1e9 are W, but they are added to mW.
LEAKAGE_MW_PER_NW = 1e-9
COLUMN_KINDS = (
    *(Kind.RD, Kind.WR, Kind.RDA, Kind.WRA, Kind.MAC, Kind.MAC16, Kind.AF16, Kind.EWMUL16, Kind.RDCP, Kind.WRCP),
    *(Kind.WRGB, Kind.RDMAC16, Kind.RDAF16, Kind.WRMAC16, Kind.WRA16),
)
BUS_KINDS = (*(Kind.RD, Kind.WR, Kind.RDA, Kind.WRA, Kind.WRGB, Kind.RDMAC16, Kind.RDAF16, Kind.WRMAC16, Kind.WRA16),)


@dataclass(frozen=True, slots=True)
class Activity:
    """What a device did: DRAM commands over all channels, cycles, and channel-cycles with and without an open row.

    `instructions` are those that the dispatcher sent to the channels, the `barriers` (SYNC, EOC) among them.
    """

    counts: Mapping[Kind, int]
    cycles: int
    open_cycles: int
    closed_cycles: int
    instructions: int
    barriers: int

    def number(self, *kinds: Kind) -> int:
        """Return how many commands of these kinds there were."""
        return sum(self.counts.get(kind, 0) for kind in kinds)


@dataclass(frozen=True, slots=True)
class Block:
    """One transformer block; `query_groups` is how many query heads share a key head."""

    hidden: int
    heads: int
    tokens: int
    query_groups: int


def dram_lines_mj(did: Activity, *, published_standby: bool) -> dict[str, float]:
    """Return the energy of channels and controllers by line.

    The published standby is divided by 32 channels twice, once as an average over channels and once more before it is
    multiplied by 32, so that 1/32 of it is counted; `published_standby` False counts all of it.
    """
    of = did.number
    rows = of(Kind.ACT) + 4 * of(Kind.ACT4) + BANKS * of(Kind.ACT16)
    reads = of(Kind.RDCP, Kind.RD, Kind.RDA, Kind.RDMAC16, Kind.RDAF16) + BANKS * of(Kind.AF16)
    writes = of(Kind.WRCP, Kind.WR, Kind.WRA, Kind.WRMAC16) + BANKS * of(Kind.WRA16)
    multiplies = of(Kind.MAC) / BANKS + of(Kind.MAC16) + of(Kind.EWMUL16) / 4
    standby_mw_cycles = ACTIVE_STANDBY * did.open_cycles + PRECHARGED_STANDBY * did.closed_cycles
    return {
        "rows": ACTIVATE * ROW_CYCLE_NS * rows * MJ_PER_PJ,
        "reads and writes": BURST_NS * (READ * reads + WRITE * writes) * MJ_PER_PJ,
        "multiply": 3 * READ * COLUMN_CYCLE_NS * multiplies * MJ_PER_PJ,
        "global buffer": (GLOBAL_BUFFER[1] * of(Kind.WRCP) + GLOBAL_BUFFER[2] * of(Kind.WRGB, Kind.RDCP)) / CLOCK_HZ,
        "data bus": BUS_PJ_PER_BIT * BURST_BITS * of(*BUS_KINDS) * MJ_PER_PJ,
        "controller": TRANSCEIVER_MW * of(*COLUMN_KINDS) / CHANNELS_PER_CONTROLLER / CLOCK_HZ,
        "PHY": PHY_MW * (sum(did.counts.values()) + did.barriers) / CHANNELS_PER_CONTROLLER / CLOCK_HZ,
        "standby": standby_mw_cycles / CLOCK_HZ / (CHANNELS if published_standby else 1),
    }


def other_lines_mj(did: Activity, block: Block) -> dict[str, float]:
    """Return what the model prices beside channels and controllers: link, buffers, accelerators, device control."""
    seconds = did.cycles / CLOCK_HZ
    rotary = 1 + 1 / block.query_groups
    sums = block.hidden / 256
    softmax = block.tokens * block.heads / 16
    shared_reads = 4 * (sums + 2) + 3 * softmax + 2 * block.heads + rotary * block.hidden / 16
    shared_writes = 2 * (sums + 2) + 2 * softmax + 2 * block.heads + 2 * rotary * block.hidden / 16
    own_instructions = 2 * (sums + 2) + 2 * softmax + 2 * block.heads + rotary * block.hidden
    riscv_cycles = 2 * 26 + 19 * block.heads + rotary * block.hidden * 3 / RISCV_CORES
    buffers_static = CHANNELS * GLOBAL_BUFFER[0] + SHARED_BUFFER[0] + INSTRUCTION_BUFFER[0]
    shared = SHARED_BUFFER[1] * shared_reads + SHARED_BUFFER[2] * shared_writes
    fetches = INSTRUCTION_BUFFER[1] * (did.instructions + own_instructions)
    working = REDUCTION[0] * (2 + block.heads) + EXPONENT[0] * softmax + VECTOR[0] * (2 * sums + softmax)
    leaking = sum(leakage for _, leakage in (REDUCTION, EXPONENT, VECTOR)) * LEAKAGE_MW_PER_NW
    control = CONTROL_DUTY * (CONTROL_LEAKAGE_NW * LEAKAGE_MW_PER_NW + CONTROL_MW)
    return {
        # One hidden vector, its elements counted as one bit each.
        "link": block.hidden * LINK_PJ_PER_BIT * MJ_PER_PJ,
        "buffers": buffers_static * seconds + (shared + fetches) / CLOCK_HZ,
        "accelerators": leaking * CHANNELS * seconds + (working + RISCV_MW * riscv_cycles) / CLOCK_HZ,
        "device control": control * seconds,
    }
