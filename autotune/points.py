"""A folder per point with everything needed to build and check it: device, schedules, programs, memory plan.

Points that figures and tables show have a timeline of their step and its utilisation as well.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from autotune.finished import FinishedRun, shown_points, written_points
from autotune.stored_points import PACING
from autotune.tables import write_csv
from autotune.timelines import look_inside, write_inside
from compiler.linear import LinearShape
from compiler.lowering import System, lower_steps
from compiler.memory.cache import with_room
from compiler.memory.capacity import capacity_plan, copies_of
from compiler.memory.planner import plan_of
from compiler.memory.text import print_plan
from compiler.schedule import Place, Schedule, schedule_text
from compiler.workload import HostShape, Workload
from configs.device import Device
from configs.errors import UserError
from configs.model_config import ModelConfig, load_model_config
from simulator.program_text import print_program
from simulator.step import HostPhase, PimPhase, Step

POINTS = "points"
DEVICE_FILE = "device.yaml"
PLAN_FILE = "memory-plan.txt"
PROGRAMS_HEADING = f"# Rows count from the first row of the operator's own copy, which {PLAN_FILE} names.\n"


def write_points(run: FinishedRun) -> tuple[Path, ...]:
    """Write a folder for every Pareto or shown point, remove those of earlier ones, and return the folders."""
    parent = run.folder / POINTS
    parent.mkdir(parents=True, exist_ok=True)
    folders = tuple(_write_point(run, point, parent / str(point)) for point in written_points(run))
    for item in shown_points(run):
        evaluation = run.evaluations[item.point]
        slowdown = int(dict(evaluation.details)[PACING])
        write_inside(look_inside(run.problem, evaluation.codes, slowdown), parent / str(item.point))
    for earlier in parent.iterdir():
        if (earlier / DEVICE_FILE).is_file() and earlier.name.isdigit() and earlier not in folders:
            shutil.rmtree(earlier)
    return folders


def capacity_frame(workload: Workload, schedules: dict[str, Schedule], system: System) -> pd.DataFrame:
    """Return what the design needs at its context: regions one after the other in every bank of every channel.

    The memory plan says where they are once caches have room to grow. Operators that the host runs keep their tensors
    in host memory and take no rows.
    """
    rows: list[dict[str, object]] = []
    first = 0
    for region in capacity_plan(workload, schedules, system).regions:
        taken = region.copies * region.rows
        rows.append(
            {
                "region": region.name,
                "memory": "device",
                "copies": region.copies,
                "first_row": first,
                "rows_per_copy": region.rows,
                "rows_total": taken,
                "tensor_bytes_per_copy": region.tensor_bytes,
            }
        )
        first += taken
    copies = copies_of(workload)
    for shape in workload.schedulables:
        if schedules[shape.name].place is Place.HOST:
            size = shape.weight_bytes if isinstance(shape, LinearShape) else shape.host_kv_bytes
            rows.append(_host_row(shape.name, copies[shape.name], size))
    for item in workload.shapes:
        if isinstance(item, HostShape) and item.weight_bytes + item.state_bytes:
            rows.append(_host_row(item.name, copies[item.name], item.weight_bytes + item.state_bytes))
    columns = ["region", "memory", "copies", "first_row", "rows_per_copy", "rows_total", "tensor_bytes_per_copy"]
    counts = {"first_row": "Int64", "rows_per_copy": "Int64", "rows_total": "Int64"}
    return pd.DataFrame(rows, columns=columns).astype(counts)


def _host_row(name: str, copies: int, size: int) -> dict[str, object]:
    return {"region": name, "memory": "host", "copies": copies, "tensor_bytes_per_copy": size}


def device_text(device: Device) -> str:
    """Return a device as a file that `load_device` reads back to an equal device."""
    content: dict[str, Any] = device.model_dump(mode="json", exclude_none=True)
    content["constraints"] = [item.row() for item in device.constraints]
    return yaml.safe_dump(content, sort_keys=False, width=120, default_flow_style=None, allow_unicode=True)


def programs_text(step: Step) -> str:
    """Return every distinct program of a step under a heading that names its task, between the host's work."""
    return "\n".join((PROGRAMS_HEADING, *_sections(step)))


def _sections(step: Step) -> Iterator[str]:
    seen: set[str] = set()
    for task in step.tasks:
        for number, phase in enumerate(task.phases):
            heading = f"# {task.task}, phase {number}, {phase.name}"
            match phase:
                case HostPhase(work_ns=work_ns):
                    text = f"{heading}: {work_ns:.1f} ns on the host\n"
                case PimPhase(program=program):
                    chunks = f"{sum(phase.down_bytes)} B down, {sum(phase.up_bytes)} B up per device"
                    text = f"{heading}: {chunks}\n{print_program(program)}"
            if text not in seen:
                seen.add(text)
                yield text


def _write_point(run: FinishedRun, point: int, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    scenario, codes = run.problem.scenario, np.array(run.evaluations[point].codes, dtype=np.int64)
    system, schedules = scenario.system(codes), run.problem.space.schedules(codes)
    model = _model(run)
    plan = plan_of(scenario.workload, schedules, system, model=model)
    window = model.sliding_window if model is not None else None
    # Programs with room to grow differ from those evaluated in nothing but the rows at which V begins.
    planned = with_room(scenario.workload, plan.scenario.maximum_context, window)
    step = lower_steps(planned, schedules, system, scenario.uniform_loads[:1])[0]
    listed = "".join(f"{name}: {schedule_text(schedule)}\n" for name, schedule in schedules.items())
    (folder / DEVICE_FILE).write_text(device_text(system.device), encoding="utf-8")
    (folder / "schedules.txt").write_text(listed, encoding="utf-8")
    (folder / "programs.txt").write_text(programs_text(step), encoding="utf-8")
    (folder / PLAN_FILE).write_text(print_plan(plan), encoding="utf-8")
    write_csv(capacity_frame(scenario.workload, schedules, system), folder / "capacity.csv")
    return folder


def _model(run: FinishedRun) -> ModelConfig | None:
    """Return the model's configuration; None where its file has gone since, and rows alone bound the context."""
    try:
        return load_model_config(str(run.settings["model"]))
    except UserError:
        return None
