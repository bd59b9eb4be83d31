"""One device weighed by a whole decode step under the fastest mapping known for it: what all findings are made of."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from autotune.decode_problem import DecodeProblem
from autotune.hand_mapping import overlapped_mapping
from autotune.problem import Evaluation
from autotune.problem_spec import import_workload
from autotune.scenario import MOST_PADDING, make_scenario
from autotune.tuning import tune
from autotune.units import MJ_PER_PJ, MS_PER_NS
from compiler.lowering import System
from compiler.schedule import Schedule
from compiler.workload import Schedulable, Workload
from configs.device import Device
from configs.errors import UserError
from configs.knobs import Value, base_knobs, knob_values
from simulator.laws.device import scaled_device

MODEL = "llama-3.1-8b"
# All operators stay on the units, which is what the findings are about.
ON_UNITS = {"*.place": ("pim",)}
UNLIMITED_GB_PER_S = 1e9
Mapped = Mapping[str, Schedule]


def _tuned(shapes: Sequence[Schedulable], system: System) -> Mapped:
    return {item.name: item.schedule for item in tune(shapes, system, restrictions=ON_UNITS)}


MAPPINGS: Mapping[str, Callable[[Sequence[Schedulable], System], Mapped]] = {
    "overlapped": overlapped_mapping,
    "tuned": _tuned,
}
BOTH = tuple(MAPPINGS)


@dataclass(frozen=True, slots=True)
class Point:
    """A device, so many of them, and the evaluation of the fastest of the mappings that fit."""

    device: Device
    devices: int
    mapping: str
    evaluation: Evaluation

    @property
    def latency_ms(self) -> float:
        """Time of a step."""
        return self.evaluation.latency_ns * MS_PER_NS

    @property
    def energy_typical_mj(self) -> float:
        """Energy of a step on the memory side, with typical currents."""
        return self.detail("energy_typical_pj") * MJ_PER_PJ

    def detail(self, name: str) -> float:
        """Return a further figure of the evaluation."""
        return dict(self.evaluation.details)[name]

    def cycles(self, kind: str) -> int:
        """Return the share of a step of all operators of a kind, linear or attention."""
        return sum(item.cycles * item.multiplicity for item in self.evaluation.tasks if item.kind == kind)

    def milliseconds(self, kind: str) -> float:
        """Return the same as time."""
        return self.device.nanoseconds(self.cycles(kind)) * MS_PER_NS


@cache
def workload_of_model(model: str, batch: int, context: int) -> Workload:
    """Return the decode step of a model, imported once."""
    return import_workload(model, batch, context)


def fastest_point(
    workload: Workload,
    base: Device,
    changed: Mapping[str, Value],
    *,
    devices: int | None = None,
    mappings: Sequence[str] = BOTH,
) -> Point:
    """Return the fastest mapping on the base device with some knobs changed; `devices` None takes the fewest.

    Raises UserError when no mapping fits.
    """
    knobs = replace(base_knobs(base), **changed)
    own = {name: (value,) for name, value in knob_values(knobs)}
    device = scaled_device(base, knobs)
    fewest = devices or make_scenario(workload, base, devices=None, restrictions=own).devices
    for count in range(fewest, fewest + 1 if devices else MOST_PADDING * fewest + 1):
        problem = DecodeProblem(make_scenario(workload, base, devices=count, restrictions={**own, **ON_UNITS}))
        points = []
        for name in mappings:
            codes = problem.space.encode(knobs, MAPPINGS[name](workload.schedulables, System(device, count)))
            if codes is not None and problem.legal(codes[None, :])[0]:
                evaluation = problem.evaluate(problem.canonical(codes[None, :])[0])
                points.append(Point(device, count, name, evaluation))
        if points:
            return min(points, key=lambda point: point.evaluation.latency_ns)
    raise UserError(
        where=f"{workload.model} on {device.name}",
        expected=f"a mapping that fits, of {', '.join(mappings)}",
        found=f"none on {count} devices",
        way_out="add devices, or shorten the context",
    )


def without_link(base: Device) -> Device:
    """Return the device with a link that takes no time, so that channels and host alone are seen."""
    if base.link is None:
        raise ValueError(f"{base.name} has no link section")
    link = base.link.model_copy(update={"bandwidth_gb_per_s": UNLIMITED_GB_PER_S, "latency_ns": 0.0})
    return base.model_copy(update={"name": f"{base.name} without link", "link": link})
