"""From settings to a problem: import the model once, then make the problem anew in any process from plain records."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.decode_problem import DecodeProblem
from autotune.run_settings import RunSettings, parse_restrictions
from autotune.scenario import make_scenario
from autotune.space import space_of
from compiler.workload import BF16_THROUGHOUT, StoredFormats, Workload, workload_of
from configs.device import Device, load_device
from configs.model_config import load_model_config


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

    def __call__(self) -> DecodeProblem:
        """Make the problem."""
        scenario = make_scenario(
            self.workload,
            self.base,
            devices=self.devices,
            restrictions=self.restrictions,
            routing_seed=self.routing_seed,
        )
        return DecodeProblem(scenario)


def _sources_digest() -> str:
    """Return the sha256 of every source file of the layers below the search."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in ("configs", "simulator", "compiler", "costmodel", "autotune"):
        for source in sorted((root / package).rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()


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
    knobs = space_of(workload.schedulables, {}).knobs
    restrictions = parse_restrictions(settings.restrictions, knobs)
    return ProblemSpec(workload, base, settings.device_count(), restrictions, settings.seed)


def import_workload(
    model: str, batch: int, context: int, formats: StoredFormats = BF16_THROUGHOUT, queries: int = 1
) -> Workload:
    """Capture the full-size model and describe its decode step; raises UserError for a model it cannot import."""
    config = load_model_config(model)
    from compiler.frontend import import_model
    from compiler.passes import run_passes
    from compiler.tasks import tasks_of

    graph = run_passes(import_model(config, batch * queries, context))
    return workload_of(tasks_of(graph), config.name, batch, context, formats, queries)
