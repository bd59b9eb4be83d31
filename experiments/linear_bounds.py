"""How near the best schedules of linear operators come to the bound over all schedules, on the base device.

python -m experiments.linear_bounds [MODEL ...]

Each operator is a step of its own on fresh channels, for which the bound knows when refreshes fall due. All schedules
of the space are ranked by closed form and the first ones simulated, with every pacing of the host's transfers that an
evaluation would try; of schedules that lower to the same commands one. Beside the bound stands the raw row bound.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from autotune.exit_codes import run_to_exit_code
from autotune.space import Space, schedule_space
from compiler.closed_form import SystemCosts, linear_form
from compiler.device_table import DeviceTable, device_table
from compiler.frontend import import_model
from compiler.legality import legal, rules
from compiler.linear import LinearShape
from compiler.lower_bound import LowerBound, linear_lower_bound
from compiler.lowering import System, lower_task
from compiler.passes import run_passes
from compiler.schedule import LinearSchedule, schedule_text
from compiler.tasks import tasks_of
from compiler.workload import workload_of
from configs.device import Device, load_device
from configs.model_config import load_model_config
from configs.refresh import Refresh, RefreshPolicy
from simulator.step import PimPhase, Step, TaskPhases
from simulator.timeline import StepSimulator

SIMULATED = 40  # distinct schedules of each operator
THOROUGH = 300  # the same for the printed tables
PACINGS = (1, 2, 4)
MODELS = ("llama-2-7b", "llama-3.1-8b")
CONTEXT = 128  # any: linear operators do not depend on it
# Outputs x inputs, by rows of every bank that their weights fill.
PLAIN_SHAPES = {
    8: ((4096, 1024), (2048, 2048), (1024, 4096), (512, 8192)),
    16: ((8192, 1024), (4096, 2048), (2048, 4096)),
    32: ((16384, 1024), (8192, 2048), (4096, 4096), (2048, 8192)),
    64: ((16384, 2048), (8192, 4096), (4096, 8192)),
    128: ((16384, 4096), (8192, 8192)),
    256: ((32768, 4096), (8192, 16384)),
}


@dataclass(frozen=True, slots=True)
class Found:
    """The best schedule of an operator that was simulated, beside its bounds."""

    shape: LinearShape
    bound: LowerBound
    cycles: int
    schedule: LinearSchedule

    @property
    def rows(self) -> int:
        """Rows of a bank that the weights fill."""
        return -(-self.shape.weight_bytes // (32 * 16 * 2048))

    @property
    def of_bound(self) -> float:
        """Bound over simulation."""
        return float(self.bound.pim_cycles[0]) / self.cycles

    @property
    def of_rows(self) -> float:
        """Raw row bound over simulation."""
        return float(self.bound.raw_row_cycles[0]) / self.cycles


def best_found(shape: LinearShape, simulator: StepSimulator, simulated: int = SIMULATED) -> Found:
    """Return the fastest of the schedules that closed form ranks first."""
    system = System(simulator.device, 1)
    table = device_table((system.device,), 1)
    costs = SystemCosts(simulator.host, simulator.link, system.device.cycle_ps, 1)
    best: tuple[int, LinearSchedule] | None = None
    seen: set[tuple[object, ...]] = set()
    for schedule in ranked_schedules(shape, system.device, table, costs):
        phases = lower_task(shape, {shape.name: schedule}, system)
        key = tuple(
            (item.program.body, item.down_bytes, item.up_bytes) if isinstance(item, PimPhase) else item.work_ns
            for item in phases
        )
        if key in seen:
            continue
        seen.add(key)
        step = Step((TaskPhases(shape.name, phases),), (0,), ((),))
        cycles = min(simulator.run(step, pacing).latency_cycles for pacing in PACINGS)
        simulator.forget()
        if best is None or cycles < best[0]:
            best = cycles, schedule
        if len(seen) == simulated:
            break
    assert best is not None, shape
    return Found(shape, linear_lower_bound(shape, table, costs, since_refresh=0), *best)


def ranked_schedules(
    shape: LinearShape, device: Device, table: DeviceTable, costs: SystemCosts
) -> Iterator[LinearSchedule]:
    """Yield the legal schedules on the units, by their own lower bound."""
    space = schedule_space((shape,), device, {"*.place": ("pim",)})
    codes = _schedule_codes(space)
    one = table.take(np.zeros(len(codes), dtype=np.int64))
    schedules = space.schedule_arrays(shape, codes)
    bound = linear_form(shape, schedules, one, costs).bound
    fine = legal(schedules.place, rules(shape, schedules, one.pool))
    for index in np.argsort(np.where(fine, bound, np.inf), kind="stable")[: int(fine.sum())]:
        schedule = space.schedule(shape, codes[index])
        assert isinstance(schedule, LinearSchedule)
        yield schedule


def _schedule_codes(space: Space) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return every schedule: int64[n, knobs]."""
    sizes = [len(knob.values) for knob in space.knobs]
    return np.array(list(product(*(range(size) for size in sizes))), dtype=np.int64)


def plain_shapes() -> tuple[LinearShape, ...]:
    """Return the plain matrices of `PLAIN_SHAPES`."""
    return tuple(
        LinearShape(f"{outputs} x {inputs}", (outputs,), inputs, 1)
        for shapes in PLAIN_SHAPES.values()
        for outputs, inputs in shapes
    )


def model_shapes(model: str) -> tuple[LinearShape, ...]:
    """Return the linear operators of a model at batch 1."""
    config = load_model_config(model)
    workload = workload_of(tasks_of(run_passes(import_model(config, 1, CONTEXT))), config.name, 1, CONTEXT)
    return tuple(shape for shape in workload.schedulables if isinstance(shape, LinearShape))


def report(title: str, shapes: Sequence[LinearShape], device: Device) -> None:
    """Print a table of operators."""
    simulator = StepSimulator(device)
    print(f"\n{title}")
    print(f"{'operator':16}{'rows':>6}{'bound':>9}{'simulated':>11}{'bound':>8}{'raw rows':>10}  binds    schedule")
    for shape in shapes:
        found = best_found(shape, simulator, THOROUGH)
        print(
            f"{shape.name:16}{found.rows:6}{float(found.bound.pim_cycles[0]):9.0f}{found.cycles:11}"
            f"{found.of_bound:8.3f}{found.of_rows:10.3f}  {found.bound.binding():8} {schedule_text(found.schedule)}",
            flush=True,
        )


def main() -> None:
    """Print plain matrices, also without refresh and with it postponed, and operators of the models named."""
    device = load_device("gddr6-aim")
    refreshed = {
        "": device.refresh,
        ", without refresh": Refresh(policy=RefreshPolicy.NONE),
        ", seven of eight refreshes postponed": Refresh(postponed=7),
    }
    for how, refresh in refreshed.items():
        own = device.model_copy(update={"refresh": refresh})
        report(f"plain matrices, outputs x inputs{how}", plain_shapes(), own)
    for model in sys.argv[1:] or MODELS:
        report(model, model_shapes(model), device)


if __name__ == "__main__":
    run_to_exit_code(main)
