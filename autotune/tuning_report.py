"""What a tuning found, operator by operator: who wrote the fastest, by how much, and how far it is from the bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from autotune.hand_mapping import HAND_MAPPINGS
from autotune.scenario import Scenario
from autotune.tuning import TUNED, Tuned
from compiler.closed_form import SystemCosts
from compiler.device_table import device_table
from compiler.legality import all_reasons
from compiler.linear import LinearShape
from compiler.lower_bound import attention_lower_bound, linear_lower_bound
from compiler.lowering import System, lower_steps
from compiler.schedule import Schedule, schedule_text
from compiler.workload import Schedulable
from simulator.timeline import StepSimulator


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator alone, in cycles of one occurrence.

    `gain_over_hand` is how many times faster than the best written by hand. `lower_bound_share` is the bound over all
    schedules as a share of the cycles, `raw_row_share` that of nothing but rows, `binding` the resource that binds.
    """

    operator: str
    tuned_cycles: int
    hand_cycles: dict[str, int]
    winner: str
    gain_over_hand: float
    lower_bound_cycles: int
    lower_bound_share: float
    raw_row_share: float
    binding: str
    legal_schedules: int
    simulated_schedules: int
    proved: bool
    schedule: str

    def record(self) -> dict[str, object]:
        """Return a plain record for JSON."""
        return asdict(self)


def step_cycles(scenario: Scenario, tuned: Mapping[str, Schedule]) -> dict[str, int]:
    """Return the cycles of a whole step under every mapping by hand that is legal, and the tuned one.

    Operators share host, link and channels there, so that the best alone need not be the best together.
    """
    system, workload = scenario.system_of_base, scenario.workload
    mappings = {name: mapping(workload.schedulables, system) for name, mapping in HAND_MAPPINGS.items()} | {
        TUNED: tuned
    }
    simulator = StepSimulator(system.device)
    found = {}
    for name, schedules in mappings.items():
        if not any(all_reasons(shape, schedules[shape.name], system.pool) for shape in workload.schedulables):
            steps = lower_steps(workload, schedules, system, scenario.uniform_loads[:1])
            found[name] = simulator.run(steps[0]).latency_cycles
            simulator.forget()
    return found


def operator_rows(shapes: Sequence[Schedulable], tuned: Sequence[Tuned], system: System) -> tuple[OperatorRow, ...]:
    """Put every operator beside its bounds."""
    assert system.device.link is not None
    costs = SystemCosts(system.host, system.device.link, system.device.cycle_ps, system.devices)
    table = device_table((system.device,), system.devices)
    rows = []
    for shape, item in zip(shapes, tuned, strict=True):
        if isinstance(shape, LinearShape):
            bound = linear_lower_bound(shape, table, costs, np.zeros(1, dtype=np.int64))
        else:
            bound = attention_lower_bound(shape, table, costs)
        least = float(np.ravel(bound.cycles)[0])
        by_hand = min(item.hand_cycles.values(), default=item.cycles)
        rows.append(
            OperatorRow(
                operator=item.name,
                tuned_cycles=item.cycles,
                hand_cycles=dict(item.hand_cycles),
                winner=item.winner,
                gain_over_hand=round(by_hand / item.cycles, 4),
                lower_bound_cycles=int(least),
                lower_bound_share=round(least / item.cycles, 4),
                raw_row_share=round(float(np.ravel(bound.raw_row_cycles)[0]) / item.cycles, 4),
                binding=bound.binding(),
                legal_schedules=item.legal,
                simulated_schedules=item.simulated,
                proved=item.proved,
                schedule=schedule_text(item.schedule),
            )
        )
    return tuple(rows)
