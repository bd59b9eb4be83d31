"""The best schedule of every operator on one device, each operator alone, beside what was written by hand for it.

All legal schedules of an operator's space are bounded in closed form; they are simulated in rising order of their
bounds until no bound is below the fastest found, which is then the fastest of all. A limit on simulations keeps wide
spaces short; whether it was reached is part of the answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.hand_mapping import hand_schedules
from autotune.space import Space, space_of
from compiler.closed_form import SystemCosts, attention_form, linear_form
from compiler.device_table import DeviceTable, device_table
from compiler.legality import kernel_reasons, legal, reasons, rules
from compiler.linear import LinearShape
from compiler.lowering import System, lower_task
from compiler.schedule import Schedule
from compiler.workload import Schedulable
from configs.errors import UserError
from simulator.step import Step, TaskPhases
from simulator.timeline import StepSimulator

Codes = NDArray[np.int64]
MOST_SIMULATIONS = 200
CHUNK = 1 << 16
TUNED = "tuned"
Restrictions = Mapping[str, tuple[int | str, ...]]
NO_RESTRICTIONS: Restrictions = {}


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was found for one operator: cycles of one occurrence, from idle to the host holding the result.

    `least_bound_cycles` is the smallest lower bound of any schedule, `hand_cycles` what each mapping written by hand
    takes (those that are legal). Of `legal` schedules `simulated` were simulated; `proved`: none is faster.
    """

    name: str
    schedule: Schedule
    cycles: int
    least_bound_cycles: int
    hand_cycles: Mapping[str, int]
    legal: int
    simulated: int
    proved: bool

    @property
    def winner(self) -> str:
        """Who wrote the fastest: tuned, or the mapping by hand that no schedule beats."""
        return next((name for name, cycles in self.hand_cycles.items() if cycles == self.cycles), TUNED)


def tune(
    shapes: Sequence[Schedulable],
    system: System,
    most_simulations: int = MOST_SIMULATIONS,
    restrictions: Restrictions = NO_RESTRICTIONS,
) -> tuple[Tuned, ...]:
    """Tune every operator; `restrictions` replace the values of knobs, as in `autotune.space`.

    Raises UserError for an operator that has no legal schedule.
    """
    simulator = StepSimulator(system.device)
    space = space_of(tuple(shapes), restrictions)
    return tuple(
        _Operator(shape, system, space, simulator).tuned(hand_schedules(shape, system), most_simulations)
        for shape in shapes
    )


def legal_schedules(
    shape: Schedulable, system: System, restrictions: Restrictions = NO_RESTRICTIONS
) -> Iterator[Schedule]:
    """Yield every legal schedule of an operator, simplest first: the last knob turns fastest."""
    operator = _Operator(shape, system, space_of((shape,), restrictions), StepSimulator(system.device))
    for codes in operator.legal_codes():
        yield from (operator.space.schedule(shape, row) for row in codes)


def tuned_mapping(shapes: Sequence[Schedulable], system: System) -> dict[str, Schedule]:
    """Return the fastest schedule found for every operator."""
    return {item.name: item.schedule for item in tune(shapes, system)}


@dataclass(frozen=True, slots=True)
class _Operator:
    """One operator on one system."""

    shape: Schedulable
    system: System
    space: Space
    simulator: StepSimulator

    def tuned(self, hand: Mapping[str, Schedule], most_simulations: int) -> Tuned:
        """Simulate schedules in rising order of their bounds, those written by hand before any."""
        table = device_table((self.system.device,), self.system.devices)
        codes, bounds = self._bounded(table)
        legal_by_hand = {name: schedule for name, schedule in hand.items() if not self._illegal(schedule)}
        hand_cycles = {name: self.cycles(schedule) for name, schedule in legal_by_hand.items()}
        inside = [name for name, schedule in legal_by_hand.items() if self._in_space(schedule)]
        best = min(inside, key=hand_cycles.__getitem__, default="")
        fastest: tuple[int, Schedule] | None = (hand_cycles[best], legal_by_hand[best]) if best else None
        simulated, proved = 0, len(codes) > 0
        for row in np.argsort(bounds, kind="stable"):
            if fastest is not None and bounds[row] >= fastest[0]:
                break
            if simulated == most_simulations:
                proved = False
                break
            schedule = self.space.schedule(self.shape, codes[row])
            simulated += 1
            cycles = self.cycles(schedule)
            if fastest is None or cycles < fastest[0]:
                fastest = cycles, schedule
        if fastest is None:
            raise self._nothing_legal(next(iter(hand.values())))
        return Tuned(
            name=self.shape.name,
            schedule=fastest[1],
            cycles=fastest[0],
            least_bound_cycles=int(bounds.min()),
            hand_cycles=hand_cycles,
            legal=len(codes),
            simulated=simulated,
            proved=proved,
        )

    def cycles(self, schedule: Schedule) -> int:
        """Return what the operator takes alone."""
        phases = lower_task(self.shape, {self.shape.name: schedule}, self.system)
        step = Step((TaskPhases(self.shape.name, phases),), (0,), ((),))
        report = self.simulator.run(step)
        self.simulator.forget()
        return report.latency_cycles

    def _bounded(self, table: DeviceTable) -> tuple[Codes, NDArray[np.float64]]:
        """Return the codes of all legal schedules and their lower bounds in cycles."""
        costs = SystemCosts(self.system.host, self._link(), self.system.device.cycle_ps, self.system.devices)
        kept, bounds = [], []
        for codes in self.legal_codes():
            schedule = self.space.schedule_arrays(self.shape, codes)
            rows = table.take(np.zeros(len(codes), dtype=np.int64))
            form: Any = linear_form if isinstance(self.shape, LinearShape) else attention_form
            kept.append(codes)
            bounds.append(form(self.shape, schedule, rows, costs).bound)
        if not kept:
            return np.zeros((0, len(self.space.knobs)), dtype=np.int64), np.zeros(0)
        return np.concatenate(kept), np.concatenate(bounds)

    def legal_codes(self) -> Iterator[Codes]:
        """Yield the codes of legal schedules, lot by lot."""
        for codes in self._grid():
            schedule = self.space.schedule_arrays(self.shape, codes)
            fine = codes[legal(schedule.place, rules(self.shape, schedule, self.system.pool))]
            if len(fine):
                yield fine

    def _grid(self) -> Iterator[Codes]:
        """Yield all schedules of the operator, simplest first, as codes of whole designs (other knobs at 0)."""
        columns = self.space.columns(self.shape.name)
        sizes = [len(self.space.knobs[column].values) for column in columns]
        total = int(np.prod(sizes))
        for start in range(0, total, CHUNK):
            index = np.arange(start, min(start + CHUNK, total))
            codes = np.zeros((len(index), len(self.space.knobs)), dtype=np.int64)
            codes[:, columns] = np.stack(np.unravel_index(index, sizes), axis=1)
            yield codes

    def _link(self) -> Any:
        if self.system.device.link is None:
            raise ValueError(f"{self.system.device.name} has no link section")
        return self.system.device.link

    def _in_space(self, schedule: Schedule) -> bool:
        """Return whether every knob of the space has the schedule's value."""
        knobs = (self.space.knobs[column] for column in self.space.columns(self.shape.name))
        return all(getattr(schedule, knob.name) in knob.values for knob in knobs)

    def _illegal(self, schedule: Schedule) -> tuple[str, ...]:
        name, shape = self.shape.name, self.shape
        return (
            *reasons(name, schedule.place, rules(shape, schedule, self.system.pool)),
            *kernel_reasons(name, schedule, shape.storage),
        )

    def _nothing_legal(self, example: Schedule) -> UserError:
        return UserError(
            where=f"{self.shape.name} on {self.system.device.name}",
            expected="a legal schedule",
            found="; ".join(self._illegal(example)) or "none in the space",
            way_out="take another device, format or batch",
        )
