"""A finished run read back from its folder, to look at it again or to simulate more beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.chosen_design import settings_of_run
from autotune.feasibility import Feasibility
from autotune.finished import FinishedRun
from autotune.goals import Goals
from autotune.problem import Evaluation
from autotune.problem_spec import ProblemSpec, problem_spec
from autotune.record import EVALUATIONS, load_evaluations
from autotune.result import SearchResult, StopReason
from autotune.roofline import NO_ROOFLINE
from autotune.run_settings import IDENTITY, RUN_FILE, RunSettings, load_settings
from autotune.settings_goals import settings_goals
from autotune.stored_points import stored_codes
from configs.errors import UserError

SAME = ("device", "workload")


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with the settings and the problem that it was made from."""

    run: FinishedRun
    settings: RunSettings
    spec: ProblemSpec


def stored_run(folder: Path) -> StoredRun:
    """Read a run back, points numbered as in its tables; raises UserError for a folder that holds no finished run."""
    settings = settings_of_run(folder)
    spec = problem_spec(settings)
    _require_same(folder, spec)
    problem = spec()
    codes = stored_codes(folder, problem.knobs)
    known = {item.codes: item for item in load_evaluations(folder / EVALUATIONS)}
    missing = [point for point, item in enumerate(codes) if item not in known]
    if missing or not codes:
        raise UserError(
            where=str(folder / EVALUATIONS),
            expected="the evaluation of every point of the run" if missing else "a run with evaluations",
            found=f"none of point {missing[0]}" if missing else "none",
            way_out="make the tables again with --resume",
        )
    plain: dict[str, str | int] = {
        "model": problem.scenario.workload.model,
        "hardware": settings.hardware,
        "batch": settings.batch,
        "context": settings.context,
        "devices": problem.scenario.devices,
        "seed": settings.seed,
        "set": " ".join(settings.restrictions),
        "objectives": ",".join(settings.objectives),
        "require": ", ".join(settings.requirements),
    }
    result = result_of([known[item] for item in codes], settings_goals(settings))
    return StoredRun(FinishedRun(folder, plain, problem, result, {}), settings, spec)


def result_of(evaluations: Sequence[Evaluation], goals: Goals) -> SearchResult:
    """Return evaluations as the result of a search of which nothing else is known."""
    return SearchResult(
        evaluations=tuple(evaluations),
        batches=(),
        roofline=NO_ROOFLINE,
        box=None,
        stop=StopReason.BUDGET,
        note="",
        repeats=0,
        feasibility=Feasibility(0, 0, 0, ()),
        goals=goals,
    )


def _require_same(folder: Path, spec: ProblemSpec) -> None:
    """Raise UserError where device or model are no longer those of the run."""
    kept, now = (load_settings(folder) or {}).get(IDENTITY, {}), spec.identity()
    for name in SAME:
        if kept.get(name) != now[name]:
            raise UserError(
                where=f"{folder / RUN_FILE}, {IDENTITY}",
                expected=f"the {name} that made its evaluations ({kept.get(name)})",
                found=f"another one ({now[name]})",
                way_out="make a new run",
            )
