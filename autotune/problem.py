"""What the search needs to know of a problem, and nothing more: knobs, legality, bounds, features, exact evaluation.

A design is a vector of codes, one index into `values` per knob. Everything but `evaluate` is closed form and vectorised
over designs. What is made of the metrics, objectives and requirements, is the business of `autotune.goals`. The
product's problem is `autotune.decode_problem`; tests use small analytic ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
HARDWARE_GROUP = "hardware"
METRICS = ("latency_ns", "energy_pj", "area_mm2")
# The facts that every problem states of its designs.
TOKENS, DEVICES, DIES, CAPACITY, AREA = "tokens_per_step", "devices", "dies", "capacity_gib", "area_mm2"


@dataclass(frozen=True, slots=True)
class Knob:
    """One choice of a design; `group` is "hardware" or the name of the task whose schedule it belongs to.

    `seldom` are values that are legal so often, and good so seldom, that a pool of candidates should not be made of
    them: it takes them less often. They are values like any other everywhere else.
    """

    name: str
    group: str
    values: tuple[int | str, ...]
    unit: str = ""
    seldom: tuple[int | str, ...] = ()

    @property
    def label(self) -> str:
        """The name that is unique in a problem: hardware knobs by themselves, others behind their task."""
        return self.name if self.group == HARDWARE_GROUP else f"{self.group}.{self.name}"


@dataclass(frozen=True, slots=True)
class TaskMeasurement:
    """One simulated task: its time in one occurrence and the lower bound of that time on the design's device."""

    task: str
    kind: str
    multiplicity: int
    cycles: int
    bound_cycles: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One design point, compiled and simulated exactly; `details` are further figures, units in their names."""

    codes: tuple[int, ...]
    latency_ns: float
    energy_pj: float
    area_mm2: float
    tasks: tuple[TaskMeasurement, ...]
    details: tuple[tuple[str, float], ...] = ()

    @property
    def metrics(self) -> tuple[float, float, float]:
        """What every figure of merit is made of, in the order of `METRICS`."""
        return self.latency_ns, self.energy_pj, self.area_mm2


class Problem(Protocol):
    """A search problem; every method but `evaluate` is cheap and vectorised (n designs)."""

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """The knobs, hardware first; a design has one code per knob."""
        ...

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks whose cycles are simulated and learned."""
        ...

    def kind(self, task: str) -> str:
        """Return the operator kind of a task: tasks of one kind share a learned model."""
        ...

    def legal(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which designs can be compiled: bool[n]."""
        ...

    def reasons(self, codes: Codes) -> tuple[str, ...]:
        """Return why one design (int[k]) is illegal, with amounts; empty when it is legal."""
        ...

    def canonical(self, codes: Codes) -> Codes:
        """Return the designs with knobs that have no effect set to code 0, so that equal designs have equal codes."""
        ...

    def feature_names(self, kind: str) -> tuple[str, ...]:
        """Return the names of the columns of `features` for tasks of this kind."""
        ...

    def features(self, codes: Codes, task: str) -> NDArray[np.float64]:
        """Return the closed-form features of one task under each design: float[n, f]."""
        ...

    def bound_cycles(self, codes: Codes) -> NDArray[np.float64]:
        """Return the lower bound of one occurrence of each task in the design's device cycles: float[n, tasks]."""
        ...

    def metrics(self, codes: Codes, cycles: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return latency, energy and area for given cycles per task (float[n, tasks]): float[n, 3].

        With `bound_cycles` this never exceeds what `evaluate` finds: it is the roofline of the design.
        """
        ...

    def facts(self, codes: Codes) -> Mapping[str, NDArray[np.float64]]:
        """Return what is exactly known without cycles, as arrays: tokens per step, devices, dies, GiB, mm²."""
        ...

    def baselines(self) -> Codes:
        """Return designs that are always among the first evaluated, such as the hand mapping on the base device."""
        ...

    def evaluate(self, codes: Codes) -> Evaluation:
        """Compile and simulate one legal design (int[k]) exactly; deterministic."""
        ...
