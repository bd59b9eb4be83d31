"""The dump of `explore compile`: a numbered file per stage, so that `diff` tells what a pass changed, and timings."""

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from autotune.compiled import Compiled
from autotune.imported import Imported, StageTime
from compiler.graph_text import print_graph
from compiler.memory.planner import plan_of
from compiler.memory.text import print_plan
from compiler.schedule import schedule_text
from compiler.tasks import Task
from configs.errors import UserError, unwritable
from simulator.step_text import print_step
from simulator.timeline import StepSimulator

TIMINGS_FILE = "timings.txt"


def require_empty(folder: Path) -> None:
    """Raise UserError for a folder that holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(
            where=f"--dump {folder}",
            expected="a new or an empty folder",
            found="one that holds files" if folder.is_dir() else "a file",
            way_out="choose another name",
        )


def write_dump(folder: Path, imported: Imported, compiled: Compiled, operator: str) -> tuple[Path, ...]:
    """Write the stages of a design, and how long each took; returns the files. Raises UserError."""
    require_empty(folder)
    times = list(imported.times)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, (name, text) in enumerate(_stages(imported, compiled, operator, times)):
            paths.append(folder / f"{number:03}_{name}")
            paths[-1].write_text(text, encoding="utf-8")
        paths.append(folder / TIMINGS_FILE)
        paths[-1].write_text("".join(_timing_lines(times)), encoding="utf-8")
    except OSError as error:
        raise unwritable(f"--dump {folder}", error) from error
    return tuple(paths)


def _stages(imported: Imported, compiled: Compiled, operator: str, times: list[StageTime]) -> Iterator[tuple[str, str]]:
    """Yield file names and texts in order; what is computed on the way is timed."""
    yield from ((f"{name}.graph", print_graph(graph)) for name, graph in imported.graphs)
    yield "tasks.txt", "".join(f"{_task_line(task)}\n" for task in imported.tasks.tasks)
    yield "schedules.txt", "".join(f"{name}: {schedule_text(one)}\n" for name, one in compiled.schedules.items())
    started = perf_counter()
    step = compiled.step_of(operator) if operator else compiled.step()
    times.append(StageTime("lowering", perf_counter() - started, len(step.sequence), len(step.tasks)))
    yield "programs.txt", "".join((f"# {compiled.title}\n", *print_step(step)))
    if not operator:
        started = perf_counter()
        plan = plan_of(compiled.workload, compiled.schedules, compiled.system, model=imported.config)
        times.append(StageTime("memory plan", perf_counter() - started))
        yield "plan.txt", print_plan(plan)
    started = perf_counter()
    StepSimulator(compiled.system.device).run(step, compiled.slowdown)
    times.append(StageTime("simulation", perf_counter() - started, len(step.sequence)))


def _task_line(task: Task) -> str:
    attributes = ", ".join(f"{name}={value}" for name, value in task.attributes)
    operands = ", ".join(map(str, task.inputs))
    results = ", ".join(map(str, task.results))
    return f"{task.name}: {task.kind} x{task.multiplicity} ({operands}) -> ({results}) {{{attributes}}}"


def _timing_lines(times: list[StageTime]) -> Iterator[str]:
    width = max(len(item.name) for item in times)
    yield f"{'stage':{width}}  {'seconds':>9}  {'before':>7}  {'after':>7}\n"
    for item in times:
        before, after = ("" if count is None else str(count) for count in (item.before, item.after))
        yield f"{item.name:{width}}  {item.seconds:9.4f}  {before:>7}  {after:>7}".rstrip() + "\n"
