"""From settings to a problem: import the model once, then make the problem anew in any process from plain records."""

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.decode_problem import DecodeProblem
from autotune.run_settings import RunSettings, parse_restrictions
from autotune.scenario import make_scenario
from autotune.space import space_of
from compiler.workload import Workload, workload_of
from configs.device import Device, load_device
from configs.model_config import load_model_config


@dataclass(frozen=True, slots=True)
class ProblemSpec:
    """Everything a worker process needs to make the problem; calling it does so."""

    workload: Workload
    base: Device
    devices: int | None
    restrictions: Mapping[str, tuple[int | str, ...]]

    def __call__(self) -> DecodeProblem:
        """Make the problem."""
        scenario = make_scenario(self.workload, self.base, devices=self.devices, restrictions=self.restrictions)
        return DecodeProblem(scenario)


def problem_spec(settings: RunSettings) -> ProblemSpec:
    """Resolve the settings; raises UserError for an unknown model, device, knob or value."""
    base = load_device(settings.hardware)
    devices = settings.device_count()
    workload = import_workload(settings.model, settings.batch, settings.context)
    knobs = space_of(workload.schedulables, {}).knobs
    return ProblemSpec(workload, base, devices, parse_restrictions(settings.restrictions, knobs))


def import_workload(model: str, batch: int, context: int) -> Workload:
    """Capture the full-size model and describe its decode step; raises UserError for a model it cannot import."""
    config = load_model_config(model)
    from compiler.frontend import import_model
    from compiler.passes import run_passes
    from compiler.tasks import tasks_of

    graph = run_passes(import_model(config, batch, context))
    return workload_of(tasks_of(graph), config.name, batch, context)
