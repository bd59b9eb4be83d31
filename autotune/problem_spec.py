"""From settings to a problem: import the model once, then make the problem anew in any process from plain records."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from autotune.decode_problem import DecodeProblem, KeptSimulators
from autotune.run_settings import RunSettings, parse_restrictions
from autotune.scenario import make_scenario, require_sections
from autotune.space import space_of
from autotune.suite import SuiteProblem
from autotune.suite_settings import scenarios_of
from compiler.tasks import TaskGraph
from compiler.workload import BF16_THROUGHOUT, StoredFormats, Workload, workload_of
from configs.device import Device, load_device


@dataclass(frozen=True, slots=True)
class ProblemSpec:
    """Everything a worker process needs to make the problem; calling it does so."""

    workload: Workload
    base: Device
    devices: int | None
    restrictions: Mapping[str, tuple[int | str, ...]]
    routing_seed: int = 0

    def identity(self) -> dict[str, str]:
        """Return hashes of what evaluations depend on: the device, the workload, and the sources that compute."""
        workload = hashlib.sha256(repr(self.workload).encode()).hexdigest()
        texts = {"device": self.base.fingerprint(), "workload": workload, "sources": _sources_digest()}
        return {name: text[:16] for name, text in texts.items()}

    def __call__(self, simulators: KeptSimulators | None = None) -> DecodeProblem:
        """Make the problem, with simulators of its own if none are given."""
        scenario = make_scenario(
            self.workload,
            self.base,
            devices=self.devices,
            restrictions=self.restrictions,
            routing_seed=self.routing_seed,
        )
        return DecodeProblem(scenario, simulators)


def _sources_digest() -> str:
    """Return the sha256 of every source file of the layers below the search."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in ("configs", "simulator", "compiler", "costmodel", "autotune"):
        for source in sorted((root / package).rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class SuiteSpec:
    """The named and weighted problems of a suite; calling it joins them, on as many devices as the largest needs."""

    members: tuple[tuple[str, float, ProblemSpec], ...]

    def identity(self) -> dict[str, str]:
        """Return hashes of what evaluations depend on, over all members."""
        each = [spec.identity() for _, _, spec in self.members]
        workload = hashlib.sha256("".join(item["workload"] for item in each).encode()).hexdigest()
        return each[0] | {"workload": workload[:16]}

    def __call__(self) -> SuiteProblem:
        """Make the problem; its members share the simulators of devices."""
        simulators = KeptSimulators()
        found = [(name, weight, spec(simulators)) for name, weight, spec in self.members]
        most = max(problem.scenario.devices for _, _, problem in found)
        return SuiteProblem(
            [
                (name, weight, problem if problem.scenario.devices == most else replace(spec, devices=most)(simulators))
                for (name, weight, problem), (_, _, spec) in zip(found, self.members, strict=True)
            ]
        )


def suite_spec(settings: RunSettings) -> SuiteSpec:
    """Resolve settings with scenarios; raises UserError as `problem_spec`, and for a scenario that is none."""
    specs = [(item.name, item.weight, problem_spec(item.settings)) for item in scenarios_of(settings)]
    return SuiteSpec(tuple(specs))


def problem_spec(settings: RunSettings) -> ProblemSpec:
    """Resolve the settings; raises UserError for an unknown model, device, knob or value."""
    settings.require_consistent()
    base = load_device(settings.hardware)
    settings.device_count()
    workload = import_workload(
        settings.model, settings.batch, settings.context, settings.formats(), settings.speculative
    )
    return spec_of_workload(settings, workload, base)


def spec_of_workload(settings: RunSettings, workload: Workload, base: Device) -> ProblemSpec:
    """Return the problem of settings whose model is imported; raises UserError for an unknown knob or value."""
    require_sections(base)
    knobs = space_of(workload.schedulables, {}, base).knobs
    restrictions = parse_restrictions(settings.restrictions, knobs)
    return ProblemSpec(workload, base, settings.device_count(), restrictions, settings.seed)


def import_workload(
    model: str, batch: int, context: int, formats: StoredFormats = BF16_THROUGHOUT, queries: int = 1
) -> Workload:
    """Capture the full-size model and describe its decode step; raises UserError for a model it cannot import."""
    name, tasks = _imported(model, batch * queries, context, _written(model))
    return workload_of(tasks, name, batch, context, formats, queries)


@lru_cache(maxsize=8)
def _imported(model: str, tokens: int, context: int, written: tuple[int, ...]) -> tuple[str, TaskGraph]:
    """Return a model's name and tasks; scenarios that differ in formats alone share them."""
    from compiler.importing import import_named
    from compiler.tasks import tasks_of
    from compiler.unmatched import unmatched_of

    del written  # a configuration that was written again is imported again
    found = import_named(model, tokens, context)
    unmatched = unmatched_of(found.graph, found.sources)
    if unmatched:
        moved = sum(item.moved_bytes for item in unmatched)
        print(
            f"explore: warning: {len(unmatched)} operators of {found.name} are not understood and left to the host, "
            f"{moved:,} B of weights or states; `explore import {model}` lists them",
            file=sys.stderr,
        )
    return found.name, tasks_of(found.graph)


def _written(model: str) -> tuple[int, ...]:
    path = Path(model)
    files = (path, path / "config.json")
    return tuple(one.stat().st_mtime_ns for one in files if one.is_file())
