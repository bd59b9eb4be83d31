"""The best schedule of every operator on one device, each operator alone, beside what was written by hand for it.

All legal schedules of an operator's space are bounded in closed form; they are simulated in rising order of their
bounds until no bound is below the fastest found, which is then the fastest of all. A limit on simulations keeps wide
spaces short; whether it was reached is part of the answer.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.hand_mapping import hand_schedules
from autotune.space import Space, schedule_space
from compiler.closed_form import SystemCosts, attention_form, linear_form
from compiler.device_table import device_table
from compiler.legality import all_reasons, legal, rules
from compiler.linear import LinearShape
from compiler.lowering import System, lower_task
from compiler.schedule import GENERATED, LinearSchedule, Schedule
from compiler.workload import Schedulable
from configs.errors import UserError
from simulator.step import Phase, PimPhase, Step, TaskPhases
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
    takes (those that are legal). Of `legal` schedules `simulated` different ones were simulated; `proved`: no other
    is faster.
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
        """Who wrote the fastest: tuned, or what was written by hand where that is as fast or faster."""
        best = min(self.hand_cycles, key=self.hand_cycles.__getitem__, default="")
        return best if best and self.hand_cycles[best] <= self.cycles else TUNED


def tune(
    shapes: Sequence[Schedulable],
    system: System,
    most_simulations: int = MOST_SIMULATIONS,
    restrictions: Restrictions = NO_RESTRICTIONS,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Tuned, ...]:
    """Tune every operator; `restrictions` replace the values of knobs, as in `autotune.space`.

    `say` is told of each operator before it is begun. Raises UserError for an operator that has no legal schedule.
    """
    simulator = StepSimulator(system.device)
    space = schedule_space(tuple(shapes), system.device, restrictions)
    found = []
    for shape in shapes:
        say(f"tuning {shape.name}")
        operator = _Operator(shape, system, space, simulator)
        found.append(operator.tuned(hand_schedules(shape, system), most_simulations))
    return tuple(found)


def legal_schedules(
    shape: Schedulable, system: System, restrictions: Restrictions = NO_RESTRICTIONS
) -> Iterator[Schedule]:
    """Yield every legal schedule of an operator, simplest first: the last knob turns fastest."""
    operator = _Operator(
        shape, system, schedule_space((shape,), system.device, restrictions), StepSimulator(system.device)
    )
    for codes in operator.legal_codes():
        yield from (operator.space.schedule(shape, row) for row in codes)


def bounded_schedules(shape: Schedulable, system: System) -> tuple[Codes, NDArray[np.float64]]:
    """Return the codes of every legal schedule of an operator and their lower bounds in cycles: int[n, k], float[n]."""
    operator = _Operator(shape, system, schedule_space((shape,), system.device), StepSimulator(system.device))
    return operator.bounded()


def bounded_mapping(shapes: Sequence[Schedulable], system: System) -> dict[str, Schedule]:
    """Return every operator's legal schedule of least lower bound: none where none is legal."""
    found = {}
    for shape in shapes:
        codes, bounds = bounded_schedules(shape, system)
        if len(codes):
            found[shape.name] = schedule_space((shape,), system.device).schedule(shape, codes[int(bounds.argmin())])
    return found


def tuned_mapping(shapes: Sequence[Schedulable], system: System) -> dict[str, Schedule]:
    """Return the fastest schedule found for every operator."""
    return {item.name: item.schedule for item in tune(shapes, system)}


def _what_runs(phases: tuple[Phase, ...]) -> object:
    """Return what decides the time of phases: schedules can differ in knobs and be lowered to the same."""
    return tuple(
        (item.program.body, item.down_bytes, item.up_bytes, item.after)
        if isinstance(item, PimPhase)
        else (item.work_ns, item.launch, item.after)
        for item in phases
    )


@dataclass(frozen=True, slots=True)
class _Operator:
    """One operator on one system."""

    shape: Schedulable
    system: System
    space: Space
    simulator: StepSimulator

    def tuned(self, hand: Mapping[str, Schedule], most_simulations: int) -> Tuned:
        """Simulate schedules in rising order of their bounds, those written by hand before any."""
        codes, bounds = self.bounded()
        legal_by_hand = {name: schedule for name, schedule in hand.items() if not self._illegal(schedule)}
        hand_cycles = {name: self.cycles(schedule) for name, schedule in legal_by_hand.items()}
        inside = [name for name, schedule in legal_by_hand.items() if self._in_space(schedule)]
        best = min(inside, key=hand_cycles.__getitem__, default="")
        fastest: tuple[int, Schedule] | None = (hand_cycles[best], legal_by_hand[best]) if best else None
        seen: set[object] = set()
        proved = len(codes) > 0
        for row in np.argsort(bounds, kind="stable"):
            if fastest is not None and bounds[row] >= fastest[0]:
                break
            schedule = self.space.schedule(self.shape, codes[row])
            phases = self._phases(schedule)
            made = _what_runs(phases)
            if made in seen:
                continue
            if len(seen) == most_simulations:
                proved = False
                break
            seen.add(made)
            cycles = self._simulated(phases)
            if fastest is None or cycles < fastest[0]:
                fastest = cycles, schedule
        if fastest is None:
            raise self._nothing_legal()
        return Tuned(
            name=self.shape.name,
            schedule=fastest[1],
            cycles=fastest[0],
            least_bound_cycles=int(bounds.min()),
            hand_cycles=hand_cycles,
            legal=len(codes),
            simulated=len(seen),
            proved=proved,
        )

    def cycles(self, schedule: Schedule) -> int:
        """Return what the operator takes alone."""
        return self._simulated(self._phases(schedule))

    def _phases(self, schedule: Schedule) -> tuple[Phase, ...]:
        return lower_task(self.shape, {self.shape.name: schedule}, self.system)

    def _simulated(self, phases: tuple[Phase, ...]) -> int:
        step = Step((TaskPhases(self.shape.name, phases),), (0,), ((),))
        report = self.simulator.run(step)
        self.simulator.forget()
        return report.latency_cycles

    def bounded(self) -> tuple[Codes, NDArray[np.float64]]:
        """Return the codes of all legal schedules and their lower bounds in cycles."""
        table = device_table((self.system.device,), self.system.devices)
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
        """Return whether the schedule is generated code and every knob of the space has its value."""
        if isinstance(schedule, LinearSchedule) and schedule.kernel != GENERATED:
            return False
        knobs = (self.space.knobs[column] for column in self.space.columns(self.shape.name))
        return all(getattr(schedule, knob.name) in knob.values for knob in knobs)

    def _illegal(self, schedule: Schedule) -> tuple[str, ...]:
        return all_reasons(self.shape, schedule, self.system.pool)

    def _nothing_legal(self) -> UserError:
        """Name the rules that most schedules of the space break."""
        broken: Counter[str] = Counter()
        for codes in self._grid():
            schedule = self.space.schedule_arrays(self.shape, codes)
            for rule in rules(self.shape, schedule, self.system.pool):
                bad = np.broadcast_to(np.asarray(rule.needed) > np.asarray(rule.available), len(codes))
                broken[rule.name] += int(bad.sum())
        causes = ", ".join(f"{name} in {count}" for name, count in broken.most_common(3) if count)
        return UserError(
            where=f"{self.shape.name} on {self.system.device.name}",
            expected="a legal schedule",
            found=f"none in the space; rules broken: {causes or 'none, the space is empty'}",
            way_out="widen the space (--set), or take another device, format or batch",
        )
