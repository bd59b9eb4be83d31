"""One problem from several scenarios: one device for all, schedules for each, figures aggregated.

Latency and energy are weighted geometric means over the scenarios, so that a design counts by how many times better it
is, whatever a scenario's size; area is that of the devices, which are the same for all. Scenarios of one model share
the schedule of every operator that they have in common, because its weights lie in the device once; all of them share
the simulators, which know a device's loops from one scenario to the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from autotune.decode_problem import DecodeProblem
from autotune.problem import HARDWARE_GROUP, TOKENS, Codes, Evaluation, Knob, TaskMeasurement
from autotune.scenario import Scenario
from autotune.space import Space

Floats = NDArray[np.float64]
# Figures of a suite's evaluation beside its metrics, by how they follow from those of the scenarios.
MEANS = (
    *("energy_typical_pj", "energy_typical_low_pj", "energy_typical_high_pj", "energy_host_pj"),
    *("throughput_tokens_per_s", "power_average_w"),
)


@dataclass(frozen=True, slots=True)
class Member:
    """One scenario of a suite: where its knobs and tasks stand among those of the suite, and its share in means."""

    name: str
    problem: DecodeProblem
    columns: Codes
    tasks: Codes
    weight: float

    def codes(self, codes: Codes) -> Codes:
        """Return what designs of the suite (int[n, k] or int[k]) are in this scenario."""
        return codes[..., self.columns]


class SuiteProblem:
    """Implements `autotune.problem.Problem` for several scenarios on the same devices."""

    def __init__(self, problems: Sequence[tuple[str, float, DecodeProblem]]) -> None:
        """Join named problems with their weights; they differ in nothing of the hardware."""
        first = problems[0][2]
        hardware = [knob for knob in first.knobs if knob.group == HARDWARE_GROUP]
        names = _Names()
        knobs: list[Knob] = list(hardware)
        members: list[Member] = []
        for name, weight, problem in problems:
            columns, tasks = list(range(len(hardware))), []
            for shape in problem.space.schedulables:
                place = names.place(name, problem.scenario.workload.model, shape)
                if place.is_new:
                    own = (problem.knobs[column] for column in problem.space.columns(shape.name))
                    knobs += [replace(knob, group=place.name) for knob in own]
                columns += [column for column, knob in enumerate(knobs) if knob.group == place.name]
                tasks.append(place.number)
            members.append(Member(name, problem, np.array(columns), np.array(tasks), weight))
        total = sum(member.weight for member in members)
        self.members = tuple(replace(member, weight=member.weight / total) for member in members)
        self._knobs, self._tasks = tuple(knobs), names.tasks
        self._owners = [
            next((member, list(member.tasks).index(number)) for member in self.members if number in member.tasks)
            for number in range(len(self._tasks))
        ]

    @property
    def scenario(self) -> Scenario:
        """The first scenario: base device and number of devices are those of all."""
        return self.members[0].problem.scenario

    @property
    def space(self) -> Space:
        """The knobs with the hardware in front; tasks are the members'."""
        return Space(self._knobs, ())

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Hardware knobs, then those of every different operator's schedule."""
        return self._knobs

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the different scheduled operators of all scenarios."""
        return self._tasks

    def kind(self, task: str) -> str:
        """Return linear or attention."""
        member, own = self._owner(task)
        return member.problem.kind(own)

    def legal(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which designs are legal in every scenario."""
        fine = np.ones(len(codes), dtype=np.bool_)
        for member in self.members:
            left = np.flatnonzero(fine)
            fine[left] = member.problem.legal(member.codes(codes[left]))
        return fine

    def reasons(self, codes: Codes) -> tuple[str, ...]:
        """Return why one design is illegal, and in which scenario."""
        found = {
            reason: f"{member.name}: {reason}"
            for member in self.members
            for reason in member.problem.reasons(member.codes(codes))
        }
        return tuple(found.values())

    def canonical(self, codes: Codes) -> Codes:
        """Set knobs without effect to code 0."""
        result = codes.copy()
        for member in self.members:
            result[:, member.columns] = member.problem.canonical(member.codes(result))
        return result

    def feature_names(self, kind: str) -> tuple[str, ...]:
        """Return the names of the features of a kind."""
        return self.members[0].problem.feature_names(kind)

    def features(self, codes: Codes, task: str) -> Floats:
        """Return the features of one task under each design."""
        member, own = self._owner(task)
        return member.problem.features(member.codes(codes), own)

    def bound_cycles(self, codes: Codes) -> Floats:
        """Return the lower bound of one occurrence of each task with the design's own schedule."""
        bounds = np.zeros((len(codes), len(self._tasks)))
        for member in self.members:
            bounds[:, member.tasks] = member.problem.bound_cycles(member.codes(codes))
        return bounds

    def metrics(self, codes: Codes, cycles: Floats) -> Floats:
        """Return mean latency and energy over the scenarios, and area."""
        each = [member.problem.metrics(member.codes(codes), cycles[:, member.tasks]) for member in self.members]
        return self.joined(np.stack(each))

    def joined(self, metrics: Floats) -> Floats:
        """Return the metrics of designs from those in each scenario: float[scenarios, n, 3] to float[n, 3]."""
        weights = np.array([member.weight for member in self.members])
        means = np.exp(np.tensordot(weights, np.log(metrics), axes=1))
        return np.stack([means[:, 0], means[:, 1], metrics[:, :, 2].max(axis=0)], axis=1)

    def facts(self, codes: Codes) -> Mapping[str, Floats]:
        """Return what is known without simulating; tokens are the mean over scenarios."""
        each = [dict(member.problem.facts(member.codes(codes))) for member in self.members]
        weights = [member.weight for member in self.members]
        logs = [weight * np.log(facts[TOKENS]) for weight, facts in zip(weights, each, strict=True)]
        return each[0] | {TOKENS: np.exp(np.sum(logs, axis=0))}

    def baselines(self) -> Codes:
        """Return the designs that are the same baseline in every scenario, such as the hand mapping in each."""
        own = [member.problem.named_baselines() for member in self.members]
        names = [name for name in own[0] if all(name in lot for lot in own)]
        codes = np.zeros((len(names), len(self._knobs)), dtype=np.int64)
        for member, lot in zip(self.members, own, strict=True):
            for row, name in enumerate(names):
                codes[row, member.columns] = lot[name]
        return codes

    def evaluate(self, codes: Codes) -> Evaluation:
        """Simulate one legal design in every scenario."""
        each = [member.problem.evaluate(member.codes(codes)) for member in self.members]
        metrics = self.joined(np.array([[item.metrics] for item in each]))[0]
        return Evaluation(
            codes=tuple(int(code) for code in codes),
            latency_ns=float(metrics[0]),
            energy_pj=float(metrics[1]),
            area_mm2=float(metrics[2]),
            tasks=self._measurements(each),
            details=tuple(self._details(each).items()),
        )

    def in_scenario(self, member: Member, evaluation: Evaluation) -> Evaluation:
        """Return what an evaluation of the suite found in one of its scenarios."""
        prefix = f"{member.name}."
        own = {name.removeprefix(prefix): value for name, value in evaluation.details if name.startswith(prefix)}
        tasks = [evaluation.tasks[number] for number in member.tasks]
        names = member.problem.tasks
        return Evaluation(
            codes=tuple(evaluation.codes[column] for column in member.columns),
            latency_ns=own.pop("latency_ns"),
            energy_pj=own.pop("energy_pj"),
            area_mm2=evaluation.area_mm2,
            tasks=tuple(replace(task, task=name) for task, name in zip(tasks, names, strict=True)),
            details=tuple(own.items()),
        )

    def _details(self, each: Sequence[Evaluation]) -> dict[str, float]:
        weights = [member.weight for member in self.members]
        known = [dict(item.details) for item in each]
        shared = [name for name in MEANS if all(figures.get(name, 0.0) > 0 for figures in known)]
        means = {name: float(np.exp(np.dot(weights, [np.log(figures[name]) for figures in known]))) for name in shared}
        own = {
            f"{member.name}.{name}": value
            for member, item in zip(self.members, each, strict=True)
            for name, value in (("latency_ns", item.latency_ns), ("energy_pj", item.energy_pj), *item.details)
        }
        return means | own

    def _measurements(self, each: Sequence[Evaluation]) -> tuple[TaskMeasurement, ...]:
        """Return each task once; the same operator can wait for refresh a little differently in each scenario."""
        found = []
        for number, name in enumerate(self._tasks):
            lots = [
                item.tasks[list(member.tasks).index(number)]
                for member, item in zip(self.members, each, strict=True)
                if number in member.tasks
            ]
            cycles = int(np.ceil(np.mean([task.cycles for task in lots])))
            found.append(replace(lots[0], task=name, cycles=cycles))
        return tuple(found)

    def _owner(self, task: str) -> tuple[Member, str]:
        member, number = self._owners[self._tasks.index(task)]
        return member, member.problem.tasks[number]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an operator stands among the tasks of a suite."""

    name: str
    number: int
    is_new: bool


class _Names:
    """Names operators: those that scenarios of one model have in common once, others by their scenario as well."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, object], _Place] = {}

    @property
    def tasks(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(place.name for place in self._known.values())

    def place(self, scenario: str, model: str, shape: object) -> _Place:
        """Return the place of an operator."""
        key = model, shape
        if key in self._known:
            return replace(self._known[key], is_new=False)
        own = str(shape.name)  # type: ignore[attr-defined]
        name = own if own not in self.tasks else f"{own}@{scenario}"
        self._known[key] = _Place(name, len(self._known), is_new=True)
        return self._known[key]
