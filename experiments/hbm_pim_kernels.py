"""A reference kernel of Samsung's public PIMSimulator on one channel of `hbm-pim-compat`, for any shape.

python -m experiments.hbm_pim_kernels GEMV --outputs 64 --inputs 4096 [--batch 2] [--ranks 2] [--commands FILE.csv]
python -m experiments.hbm_pim_kernels ADD --outputs 16384

`--outputs` counts the values of an element-wise kernel. Cycles are those the simulator counts, of one channel of its
64, which run in lock-step.
"""

import argparse
import csv
from pathlib import Path

from autotune.exit_codes import run_to_exit_code
from configs.device import load_device
from configs.errors import unwritable
from simulator.hbm_pim.controller import CYCLES_BEHIND_LAST, controller_commands, with_ranks
from simulator.hbm_pim.reference_kernels import Elementwise, elementwise_accesses, gemv_accesses, gemv_tree_accesses
from simulator.hbm_pim.transactions import Accesses
from simulator.reference_engine import LogEntry

PRODUCTS = {"GEMV": gemv_accesses, "GEMVTREE": gemv_tree_accesses}


def accesses_of(kernel: str, outputs: int, inputs: int, batch: int) -> Accesses:
    """Return a kernel's accesses; raises ValueError for a kernel that is not known."""
    if kernel in PRODUCTS:
        return PRODUCTS[kernel](outputs, inputs, batch)
    return elementwise_accesses(Elementwise(kernel), outputs)


def write_stream(commands: tuple[LogEntry, ...], path: Path) -> None:
    """Write commands as CSV, a line each."""
    with path.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(("cycle", "cmd", "bank", "row", "col"))
        writer.writerows((item.cycle, item.kind, item.bank, item.row, item.column) for item in commands)


def main() -> None:
    """Print the cycles of a kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", choices=[*PRODUCTS, *map(str, Elementwise)])
    parser.add_argument("--outputs", type=int, required=True)
    parser.add_argument("--inputs", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--ranks", type=int, choices=(1, 2), default=1)
    parser.add_argument("--commands", type=Path, help="write the commands to this file")
    choice = parser.parse_args()
    if min(choice.outputs, choice.inputs, choice.batch) < 1:
        parser.error("sizes begin at 1")
    device = with_ranks(load_device("hbm-pim-compat"), choice.ranks)
    commands = controller_commands(accesses_of(choice.kernel, choice.outputs, choice.inputs, choice.batch), device)
    print(f"{commands[-1].cycle + CYCLES_BEHIND_LAST} cycles, {len(commands)} commands")
    if choice.commands is not None:
        try:
            write_stream(commands, choice.commands)
        except OSError as error:
            raise unwritable(f"--commands {choice.commands}", error) from error


if __name__ == "__main__":
    run_to_exit_code(main)
