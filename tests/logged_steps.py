"""Small decode steps with logs, simulated once for all tests that look inside."""

from functools import cache

from autotune.hand_mapping import hand_mapping, overlapped_mapping
from compiler.lowering import System, lower_steps
from configs.device import Device, load_device
from simulator.step import Step
from simulator.step_log import StepLog, log_step
from simulator.timeline import StepSimulator
from tests.small_workloads import small_workload

MAPPINGS = {"hand": hand_mapping, "overlapped": overlapped_mapping}


def small_step(mapping: str) -> tuple[Device, Step]:
    device = load_device("gddr6-aim")
    workload, system = small_workload(), System(device, 1)
    schedules = MAPPINGS[mapping](workload.schedulables, system)
    return device, lower_steps(workload, schedules, system, ((),))[0]


@cache
def logged_step(mapping: str = "hand", slowdown: int = 1) -> StepLog:
    device, step = small_step(mapping)
    return log_step(StepSimulator(device), step, slowdown)
