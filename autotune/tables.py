"""Tables of a run: every evaluation, its tasks, and the Pareto front; units in the column names, not modelled is empty.

CSV files are equal byte for byte for equal runs; `trials.parquet` keeps full precision.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from autotune.decode_problem import DecodeProblem
from autotune.device_bounds import bounds_of
from autotune.finished import FinishedRun, front_points
from autotune.goals import DEFAULT_GOALS, Goals, judge_evaluations
from autotune.merit import Merit
from autotune.problem import HARDWARE_GROUP, METRICS, Evaluation, Knob, Problem, TaskMeasurement
from autotune.units import four_digits
from compiler.lower_bound import LowerBound

CSV_FLOAT = "%.9g"
TRIALS_FILE = "trials.parquet"
TASK_COLUMNS = (
    *("point", "task", "kind", "occurrences", "cycles", "bound_cycles", "lower_bound_any_schedule_cycles"),
    *("lower_bound_any_schedule_share", "raw_row_bound_cycles", "raw_bandwidth_bound_cycles"),
)
UNIT_WORDS = {"B": "bytes", "%": "percent"}
TEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "²": r"\textsuperscript{2}",
    "·": r"\textperiodcentered{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def knob_column(knob: Knob) -> str:
    """Return the column name of a knob: its label, with its unit where the name does not say it already."""
    unit = UNIT_WORDS.get(knob.unit, knob.unit)
    return knob.label if not unit or knob.name.lower().endswith(unit.lower()) else f"{knob.label}_{unit}"


def trials_frame(problem: Problem, evaluations: Sequence[Evaluation], goals: Goals = DEFAULT_GOALS) -> pd.DataFrame:
    """Return one row per evaluation in order."""
    detail_names = tuple(dict.fromkeys(name for item in evaluations for name, _ in item.details))
    rows = [_trial_row(problem, point, item, detail_names) for point, item in enumerate(evaluations)]
    task_columns = (f"{task}.{figure}" for task in problem.tasks for figure in ("cycles", "bound_cycles"))
    knob_columns = (knob_column(knob) for knob in problem.knobs)
    columns = ["point", *knob_columns, *METRICS, *detail_names, *task_columns]
    return _with_verdicts(pd.DataFrame(rows, columns=columns), problem, evaluations, goals)


def _with_verdicts(
    frame: pd.DataFrame, problem: Problem, evaluations: Sequence[Evaluation], goals: Goals
) -> pd.DataFrame:
    """Add the objectives that have no column yet, and what the goals say of every design, behind the metrics."""
    judged, front = judge_evaluations(problem, goals, evaluations), front_points(problem, evaluations, goals)
    added: dict[str, NDArray[Any]] = {
        merit.column: merit.stored(judged.objectives[:, column])
        for column, merit in enumerate(goals.objectives)
        if merit.column not in frame.columns
    }
    added["is_pareto"] = np.isin(np.arange(len(evaluations)), front)
    added |= {"is_feasible": judged.feasible, "violation": judged.violations}
    place = frame.columns.get_loc(METRICS[-1])
    assert isinstance(place, int)
    parts = (frame.iloc[:, : place + 1], pd.DataFrame(added, index=frame.index), frame.iloc[:, place + 1 :])
    return pd.concat(parts, axis=1)


def tasks_frame(problem: DecodeProblem, evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """Return one row per evaluation and task, its bounds beside it: with its schedule, with any, and raw ones."""
    bounds = bounds_of(problem, evaluations)
    rows = [_task_row(point, task, bounds[task.task]) for point, item in enumerate(evaluations) for task in item.tasks]
    return pd.DataFrame(rows, columns=TASK_COLUMNS)


def _task_row(point: int, task: TaskMeasurement, bound: LowerBound) -> tuple[object, ...]:
    any_schedule = float(bound.cycles[point])
    measured = (point, task.task, task.kind, task.multiplicity, task.cycles, task.bound_cycles)
    raw = float(bound.raw_row_cycles[point]), float(bound.raw_bandwidth_cycles[point])
    return (*measured, any_schedule, any_schedule / max(task.cycles, 1), *raw)


def pareto_frame(
    problem: Problem,
    evaluations: Sequence[Evaluation],
    numerics: Mapping[tuple[int, ...], str],
    goals: Goals = DEFAULT_GOALS,
) -> pd.DataFrame:
    """Return the rows of the front, fastest first, with the verdict on their numerics (empty where not checked)."""
    front = front_points(problem, evaluations, goals)
    frame = trials_frame(problem, evaluations, goals).iloc[list(front)].reset_index(drop=True)
    frame = frame.drop(columns=["is_pareto", "is_feasible", "violation"])
    frame["numerics"] = [numerics.get(evaluations[point].codes) for point in front]
    return frame


def write_tables(run: FinishedRun) -> tuple[Path, ...]:
    """Write trials, tasks and the front, and return the paths."""
    trials = trials_frame(run.problem, run.evaluations, run.goals)
    pareto = pareto_frame(run.problem, run.evaluations, run.numerics, run.goals)
    tables = run.folder / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    parquet, tex = run.folder / TRIALS_FILE, tables / "pareto.tex"
    trials.to_parquet(parquet, index=False)
    tex.write_text(pareto_tex(run.problem, pareto, run.goals.objectives), encoding="utf-8")
    return (
        parquet,
        write_csv(trials, run.folder / "trials.csv"),
        write_csv(tasks_frame(run.problem, run.evaluations), run.folder / "tasks.csv"),
        write_csv(pareto, run.folder / "pareto.csv"),
        tex,
    )


def write_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table with fixed formats."""
    frame.to_csv(path, index=False, float_format=CSV_FLOAT, lineterminator="\n", na_rep="", encoding="utf-8")
    return path


def pareto_tex(problem: Problem, pareto: pd.DataFrame, objectives: Sequence[Merit]) -> str:
    """Return the front as a LaTeX table for the booktabs package, with the hardware knobs that differ on it."""
    all_knobs = [knob for knob in problem.knobs if knob.group == HARDWARE_GROUP]
    hardware = [knob for knob in all_knobs if pareto[knob_column(knob)].nunique() > 1]
    headings = ["Point", *(tex_escape(f"{item.title.capitalize()} ({item.unit})") for item in objectives)]
    headings += [tex_escape(knob.name.removesuffix("_bytes").replace("_", " ").capitalize()) for knob in hardware]
    units = [*[""] * (1 + len(objectives)), *(f"({tex_escape(knob.unit)})" if knob.unit else "" for knob in hardware)]
    lines = [
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{'r' * len(headings)}l}}",
        r"\toprule",
        " & ".join([*headings, "Numerics"]) + r" \\",
        " & ".join([*units, ""]) + r" \\",
        r"\midrule",
    ]
    for row in pareto.to_dict("records"):
        figures = (row[item.column] * item.scale for item in objectives)
        cells = [str(row["point"]), *(four_digits(value) for value in figures)]
        cells += [tex_escape(str(row[knob_column(knob)])) for knob in hardware]
        lines.append(" & ".join([*cells, tex_escape(str(row["numerics"] or ""))]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def tex_escape(text: str) -> str:
    """Return text in which no character has a meaning for LaTeX."""
    return "".join(TEX_SPECIAL.get(character, character) for character in text)


def _trial_row(problem: Problem, point: int, item: Evaluation, detail_names: Sequence[str]) -> dict[str, object]:
    details = dict(item.details)
    tasks = {task.task: task for task in item.tasks}
    row: dict[str, object] = {"point": point}
    row |= {knob_column(knob): knob.values[code] for knob, code in zip(problem.knobs, item.codes, strict=True)}
    row |= dict(zip(METRICS, item.metrics, strict=True)) | {name: details.get(name) for name in detail_names}
    for name in problem.tasks:
        task = tasks.get(name)
        row[f"{name}.cycles"] = None if task is None else task.cycles
        row[f"{name}.bound_cycles"] = None if task is None else task.bound_cycles
    return row
