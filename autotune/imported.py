"""A model on its way to tasks, stage by stage, with the time each took: what `explore compile` prints and dumps."""

from dataclasses import dataclass
from time import perf_counter

from autotune.run_settings import RunSettings
from compiler.graph import Graph
from compiler.passes import PassRun
from compiler.tasks import TaskGraph, tasks_of
from compiler.workload import Workload, workload_of
from configs.model_config import ModelConfig

CAPTURED = "captured"


@dataclass(frozen=True, slots=True)
class StageTime:
    """A stage of compilation: seconds, and operators before and after it where it works on operators."""

    name: str
    seconds: float
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """The graph after raising and after every pass, in order; tasks and workload of the last one.

    The configuration is there for models of the built-in families.
    """

    name: str
    config: ModelConfig | None
    graphs: tuple[tuple[str, Graph], ...]
    tasks: TaskGraph
    workload: Workload
    times: tuple[StageTime, ...]

    @property
    def graph(self) -> Graph:
        """The graph after all passes."""
        return self.graphs[-1][1]


def import_in_stages(settings: RunSettings) -> Imported:
    """Import a model and keep what every stage made; raises UserError for a model that cannot be imported."""
    from compiler.importing import built_in_config, capture_named
    from compiler.passes import run_passes

    started = perf_counter()
    step = capture_named(settings.model, settings.batch * settings.speculative, settings.context)
    captured = perf_counter()
    raised = step.raised().graph
    times = [
        StageTime("export with torch", captured - started),
        StageTime("raising", perf_counter() - captured, len(step.program.graph.nodes), len(raised.ops)),
    ]
    graphs = [(CAPTURED, raised)]

    def observe(run: PassRun) -> None:
        graphs.append((run.name, run.after))
        times.append(StageTime(run.name, run.seconds, len(run.before.ops), len(run.after.ops)))

    graph = run_passes(raised, observer=observe)
    started = perf_counter()
    tasks = tasks_of(graph)
    workload = workload_of(tasks, step.name, settings.batch, settings.context, settings.formats(), settings.speculative)
    times.append(StageTime("tasks", perf_counter() - started, len(graph.ops), len(tasks.tasks)))
    config = built_in_config(settings.model) if ":" not in settings.model else None
    return Imported(step.name, config, tuple(graphs), tasks, workload, tuple(times))
