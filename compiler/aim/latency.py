"""Accelerator and link time of a block in cycles of the units, by CENT's model, for CENT's mapping and for ours.

A device has one accelerator of 16 lanes per channel beside its shared buffer. In one step each of them takes 16 values:
operands are read from the buffer one accelerator at a time, the operation runs, the result is written. Times are added
to those of the banks, never overlapped; a device does the work of all its blocks.
Source: CENT, ASPLOS'25, cent_simulation: run_sim.py (calculate_acc_latency, load_data_point),
cent_power_calculator.py (ACCEL_CYCLE, RV_*), cxl_latency.py (vector_latency).
"""

from dataclasses import dataclass
from math import ceil

from compiler.aim.block import BlockShape, OpName, Placement

LANES = 16
READ_CYCLES = 1.0  # SB_RD_CYCLE
WRITE_CYCLES = 1.0  # SB_WR_CYCLE
EXPONENTIAL_CYCLES = 11.0  # EXP_LANE_CYCLE
VECTOR_CYCLES = 1.0  # of an addition; we take the same for a product
CORES = 8.0  # RV_COUNT
NORM_CORE_CYCLES = 26.0  # RV_RMSNorm_CYCLE
CORE_ROTARY_CYCLES = 3.0 / CORES  # RV_ROTEmbed_CYCLE, per value
SOFTMAX_CORE_CYCLES = 16.0 * WRITE_CYCLES + 2.0 / CORES + READ_CYCLES  # RV_SFT_CYCLE_PIPELINE, per head
TREE_CYCLES = READ_CYCLES + WRITE_CYCLES + 1.0  # one pass of a reduction tree

TOTAL_LANES = 144  # PCIE_lanes of the host
BYTES_PER_LANE_NS = 8 * 0.5  # bandwidth_per_lane in GiB/s, halved for multicast
ROUND_TRIP_NS = 4 * 25 + 2 * 30 + 20  # ports, PCIe, switch
FLIT_BYTES, FLIT_MESSAGES, MESSAGE_BYTES = 256, 3, 64

OpCycles = dict[OpName, float]


@dataclass(frozen=True, slots=True)
class OffBankTime:
    """Cycles of one device step outside the banks: accelerators by operator for all its blocks, and the link."""

    accelerators: OpCycles
    link: float

    @property
    def total(self) -> int:
        """All of it, in whole cycles."""
        return ceil(sum(self.accelerators.values()) + self.link)


def vector_pass(
    values: float, units: int, *, operands: int = 2, operations: float = VECTOR_CYCLES, results: int = 1
) -> float:
    """Return the cycles of one pass of all accelerators over `values` results: CENT's ACCEL_CYCLE for any operation."""
    step = units * operands * READ_CYCLES + operations + results * WRITE_CYCLES
    return values / LANES / units * step


def cent_time(shape: BlockShape, place: Placement, cycle_ns: float, lanes: int) -> OffBankTime:
    """Return what CENT's mapping spends outside the banks."""
    units = place.device_channels
    values = shape.context * shape.heads
    norm = norm_cycles(shape, units)
    softmax = vector_pass(values, units, operands=1, operations=EXPONENTIAL_CYCLES) + vector_pass(values, units)
    cycles = {
        OpName.ATTENTION_NORM: norm,
        OpName.ROTARY: (shape.query_width + shape.kv_width) * CORE_ROTARY_CYCLES,
        OpName.SOFTMAX: softmax + shape.heads * (READ_CYCLES + SOFTMAX_CORE_CYCLES),
        OpName.MLP_NORM: norm,
    }
    return off_bank_time(cycles, shape, place, cycle_ns, lanes)


def link_ns(values: int, lanes: int) -> float:
    """Return the time that a block's vector takes to the next device over so many PCIe lanes."""
    flits = ceil(values * 2 / MESSAGE_BYTES / FLIT_MESSAGES)
    return ROUND_TRIP_NS + flits * FLIT_BYTES / (lanes * BYTES_PER_LANE_NS) * 1e9 / (1 << 30)


def lanes_of_device(layers: int, place: Placement) -> int:
    """Return the PCIe lanes of one device: the host's, shared by the devices that hold all blocks."""
    return max(TOTAL_LANES // ceil(layers / place.copies), 1)


def sum_cycles(values: float, parts: int, units: int) -> float:
    """Return the cycles to add `parts` parts of each of `values` results."""
    return (parts - 1) * vector_pass(values, units)


def norm_cycles(shape: BlockShape, units: int) -> float:
    """Return CENT's time for one norm: add the banks' sums, one pass of a reduction tree, the root on a core."""
    return vector_pass(shape.hidden / LANES, units) + TREE_CYCLES + NORM_CORE_CYCLES


def off_bank_time(cycles: OpCycles, shape: BlockShape, place: Placement, cycle_ns: float, lanes: int) -> OffBankTime:
    """Return one block's accelerator cycles for all blocks of a device, with the link."""
    of_all = {name: value * place.copies for name, value in cycles.items() if value}
    return OffBankTime(of_all, link_ns(shape.hidden, lanes) / cycle_ns)
