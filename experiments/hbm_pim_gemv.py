"""One matrix-vector product on an HBM-PIM channel: the reference kernel against the generated ones.

python -m experiments.hbm_pim_gemv

The scope is that of Samsung's public simulator: park all banks, change modes, multiply, leave the results in the banks,
change back, park again. What it leaves out, reading the results and adding their lanes, stands beside it.
"""

from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from autotune.exit_codes import run_to_exit_code
from compiler.emission import Block
from compiler.hbm_pim.kernel import MicrokernelKernel
from compiler.kernels import lane_sums_ns
from compiler.linear import LinearShape, linear_geometry
from compiler.matvec import Operands
from compiler.numerics.check import numerics_of
from compiler.schedule import LinearSchedule, PoolShape, pool_shape
from configs.device import Device, load_device
from configs.microkernel_units import REGISTERS
from simulator.channel import ChannelState
from simulator.engine import Engine
from simulator.hbm_pim.controller import CYCLES_BEHIND_LAST, FIRST_CYCLE, kernel_cycles, with_ranks
from simulator.hbm_pim.reference_kernels import gemv_accesses
from simulator.isa import ZERO, Affine, Command, Kind, Program
from simulator.program_code import flatten

CHANNELS = 64
OUTPUTS, INPUTS = 64, 4096  # of a channel: 4096 x 4096 over all
MOST_CYCLES = 12_600  # that the generated kernel may take in the reference's scope


@dataclass(frozen=True, slots=True)
class Measured:
    """Cycles of one schedule on one table: in the reference's scope, and of reading results back."""

    table: str
    preactivate: bool
    cycles: int
    read_back_cycles: int


def measured(table: Device, preactivate: bool, outputs: int = OUTPUTS, inputs: int = INPUTS) -> Measured:
    """Run the generated kernel of one channel on a table, refresh included."""
    pool = _pool()
    schedule = LinearSchedule(segment_columns=REGISTERS, registers=REGISTERS, preactivate=preactivate)
    shape = LinearShape("gemv", (outputs * pool.channels,), inputs, 1)
    kernel = MicrokernelKernel(
        linear_geometry(shape, shape.outputs, schedule, pool), Operands(ZERO, ZERO, ZERO), preactivate
    )
    engine = Engine(table)
    state = engine.fresh_state()
    work = kernel.all_bank_part(Affine(), 1, 0)
    cycles = _run(engine, state, (*_park(table), *work, *_park(table))) + FIRST_CYCLE + CYCLES_BEHIND_LAST
    before = state.clock
    return Measured(table.name, preactivate, cycles, _run(engine, state, kernel.read_back(Affine(), 1, 0)) - before)


def _pool() -> PoolShape:
    """Return the channels of the reference's system."""
    return replace(pool_shape(load_device("hbm-pim"), 1), channels=CHANNELS)


def _run(engine: Engine, state: ChannelState, body: Block) -> int:
    """Run commands and return the cycle of the last; inputs are there from the start."""
    code = flatten(Program(body))
    return engine.run(code, state, np.zeros(1 << 10, dtype=np.int64)).last_issue


def _park(table: Device) -> Block:
    """Open, read and close a row of every bank, bank groups in turn."""
    groups, banks = table.organisation.bank_groups, table.organisation.banks_per_group
    order = [Affine(group * banks + bank) for bank in range(banks) for group in range(groups)]
    opened = (Command(Kind.ACT, bank=bank) for bank in order)
    return (*opened, *(Command(Kind.RD, bank=bank) for bank in order), Command(Kind.PREA))


def _lines() -> list[str]:
    compat, physical = load_device("hbm-pim-compat"), load_device("hbm-pim")
    reference = kernel_cycles(gemv_accesses(OUTPUTS, INPUTS), with_ranks(compat, 1))
    lines = [f"{OUTPUTS} x {INPUTS} on each of {CHANNELS} channels: {OUTPUTS * CHANNELS} x {INPUTS}"]
    lines.append(f"reference kernel, {compat.name}: {reference} cycles")
    for found in chain.from_iterable((measured(table, True), measured(table, False)) for table in (compat, physical)):
        lines.append(
            f"generated, {found.table}, preactivate={found.preactivate}: {found.cycles} cycles, "
            f"{reference / found.cycles:.3f} x; read-back {found.read_back_cycles} cycles"
        )
    pool, host = _pool(), physical.host
    assert host is not None
    results = OUTPUTS * pool.channels
    lines.append(f"host adds the lanes of {results} results: {float(lane_sums_ns(results, pool, host)):.0f} ns")
    for preactivate in (True, False):
        schedule = LinearSchedule(segment_columns=REGISTERS, registers=REGISTERS, preactivate=preactivate)
        lines.append(str(numerics_of(schedule, physical)))
    return lines


def main() -> int:
    """Print the comparison."""
    print("\n".join(_lines()))
    return 0


if __name__ == "__main__":
    run_to_exit_code(main)
