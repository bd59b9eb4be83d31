"""A process of its own that simulates one decode step from a graph's text: its time and memory are the simulator's.

Prints one line of JSON. Reading the model is left to another process, because capturing it takes torch.
"""

import json
import resource
import sys
import time
from pathlib import Path

from autotune.hand_mapping import hand_mapping, overlapped_mapping
from autotune.scenario import fewest_devices
from compiler.graph_text import parse_graph
from compiler.lowering import System, lower_steps
from compiler.tasks import tasks_of
from compiler.workload import workload_of
from configs.device import load_device
from simulator.timeline import StepSimulator

ROUNDS = 15
KIB_PER_MIB = 1024


def main(graph_file: str, context: int, mapping: str) -> None:
    """Simulate the step warm, and print the best CPU time of several rounds and the largest memory of the process."""
    device = load_device("gddr6-aim")
    workload = workload_of(tasks_of(parse_graph(Path(graph_file).read_text(encoding="utf-8"))), "model", 1, context)
    system = System(device, fewest_devices(workload, device))
    make = {"hand": hand_mapping, "overlapped": overlapped_mapping}[mapping]
    step = lower_steps(workload, make(workload.schedulables, system), system, ((),))[0]
    start = time.process_time()
    simulator = StepSimulator(device)
    simulator.run(step)
    first, times = time.process_time() - start, []
    for _ in range(ROUNDS):
        start = time.process_time()
        report = simulator.run(step)
        times.append(time.process_time() - start)
    found = {
        "devices": system.devices,
        "latency_cycles": report.latency_cycles,
        "commands": report.commands_simulated,
        "first_s": first,
        "best_s": min(times),
        "memory_mib": _most_memory_kib() / KIB_PER_MIB,
    }
    print(json.dumps(found))


def _most_memory_kib() -> int:
    """Return the largest resident memory of this program alone; `ru_maxrss` begins with that of its parent."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
