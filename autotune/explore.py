"""The main job: settings -> problem -> search -> numerics of the front -> result folder."""

import itertools
import os
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from autotune.decode_problem import DecodeProblem
from autotune.finished import LOWER_BOUNDS, FinishedRun, front_of, nearest_of
from autotune.front_numerics import front_verdicts
from autotune.goals import Goals
from autotune.interrupt import stop_on_interrupt
from autotune.outputs import write_outputs
from autotune.problem_spec import ProblemSpec, SuiteSpec, problem_spec, suite_spec
from autotune.progress import show_progress
from autotune.record import Record, open_record, recorded
from autotune.result import SearchResult, StopReason
from autotune.run_settings import (
    RUN_FILE,
    RunSettings,
    require_same_identity,
    require_same_settings,
    same_settings,
    save_settings,
)
from autotune.search import search
from autotune.search_settings import DEFAULT_SEARCH
from autotune.settings_goals import settings_goals
from autotune.study import StudyView
from autotune.suite import SuiteProblem
from autotune.suite_outputs import SuiteRun, scenario_folder, write_suite_outputs
from autotune.suite_settings import scenarios_of
from autotune.training import gather, prior_for
from autotune.workers import Workers
from configs.errors import UserError
from costmodel.lessons import Lesson, Prior, load_lessons, save_lessons

RUNS = Path("runs")
LESSONS = "lessons.npz"


@dataclass(frozen=True, slots=True)
class Exploration:
    """A finished or interrupted run: its front, best in the first objective first, as points of the run.

    `nearest` are the points that miss the requirements least, where none meets them.
    """

    finished: FinishedRun | SuiteRun
    front: tuple[int, ...]
    nearest: tuple[int, ...]

    @property
    def folder(self) -> Path:
        """The folder that everything is in."""
        return self.finished.folder

    @property
    def result(self) -> SearchResult:
        """Every evaluation, and how the search ended."""
        return self.finished.result


def explore(
    settings: RunSettings,
    *,
    out: Path | None = None,
    workers: int = 0,
    resume: bool = False,
    stream: TextIO | None = None,
) -> Exploration:
    """Run the main job and leave its folder; progress goes to `stream`. Raises UserError for a user's mistake."""
    goals = settings_goals(settings)
    folder = _folder(settings, out, resume)
    _say(stream, f"importing {settings.model}")
    spec = suite_spec(settings) if settings.scenarios else problem_spec(settings)
    problem = spec()
    count = workers if workers else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    identity = spec.identity()
    require_same_identity(folder, identity)
    lessons = _lessons(settings, folder, stream)
    prior = prior_for(problem, lessons, settings.seed)
    with open_record(folder, problem, resume) as record:
        save_settings(folder, settings, identity)
        if lessons:
            save_lessons(folder / LESSONS, lessons)
        result = _search(settings, goals, spec, problem, folder, record, count, stream, prior)
        if result.stop is StopReason.INFEASIBLE:
            raise _infeasible(settings, result)
        run = _finished(settings, problem, result, folder, count, stream)
    return Exploration(run, front_of(run), nearest_of(run))


def _finished(
    settings: RunSettings,
    problem: DecodeProblem | SuiteProblem,
    result: SearchResult,
    folder: Path,
    workers: int,
    stream: TextIO | None,
) -> FinishedRun | SuiteRun:
    """Check the numerics of the front and write everything that a run leaves."""
    resolved = _resolved(settings, problem)
    if isinstance(problem, SuiteProblem):
        scenarios = {}
        for item, member in zip(scenarios_of(settings), problem.members, strict=True):
            scenarios[item.name] = _resolved(item.settings, member.problem)
            own = replace(item.settings, devices=str(member.problem.scenario.devices))
            save_settings(scenario_folder(folder, item.name), own, problem_spec(own).identity())
        _say(stream, f"checking the numerics of Pareto points in {len(scenarios)} scenarios")
        return write_suite_outputs(SuiteRun(folder, resolved, problem, result, {}, scenarios), workers)
    run = FinishedRun(folder, resolved, problem, result, {})
    front, nearest = front_of(run), nearest_of(run)
    named = "Pareto points" if front else "points nearest to the requirements"
    _say(stream, f"checking the numerics of {len(front or nearest)} {named}")
    numerics = front_verdicts(problem, [result.evaluations[point] for point in front or nearest], workers)
    run = replace(run, numerics=numerics)
    write_outputs(run)
    return run


def _search(
    settings: RunSettings,
    goals: Goals,
    spec: ProblemSpec | SuiteSpec,
    problem: DecodeProblem | SuiteProblem,
    folder: Path,
    record: Record,
    workers: int,
    stream: TextIO | None,
    prior: Prior,
) -> SearchResult:
    """Search with recorded evaluations, and bring the study up to date however the search ends."""
    shown = stream if stream is not None else sys.stderr
    with (
        stop_on_interrupt() as stop,
        show_progress(settings.budget, shown, quiet=stream is None) as observer,
        Workers(spec, workers, stop) as pool,
    ):
        evaluate_batch = recorded(record, pool.evaluate, observer.evaluated)
        try:
            return search(
                problem,
                settings.budget,
                settings.seed,
                evaluate_batch,
                observer,
                replace(DEFAULT_SEARCH, learned=settings.cost_model),
                goals,
                prior,
                settings.stop_when_within,
            )
        finally:
            StudyView(folder, problem, goals).sync(record.evaluations)


def _lessons(settings: RunSettings, folder: Path, stream: TextIO | None) -> tuple[Lesson, ...]:
    """Return what a run learns before it begins: what its folder kept, so that a resumed run has the same."""
    if not settings.warm_start:
        return ()
    if (folder / LESSONS).exists():
        return load_lessons(folder / LESSONS)
    _say(stream, f"learning from {', '.join(settings.warm_start)}")
    return gather([Path(source) for source in settings.warm_start])


def _folder(settings: RunSettings, out: Path | None, resume: bool) -> Path:
    """Return the run folder: the given one, the newest of the same settings to resume, or a new one under runs/."""
    if out is not None:
        _require_possible(out)
        if out.exists() and not out.is_dir():
            raise UserError(
                where="--out", expected="a folder", found=f"the file {out}", way_out="give another name for the folder"
            )
        if out.is_dir() and not (out / RUN_FILE).exists() and any(out.iterdir()):
            raise UserError(
                where=f"--out {out}",
                expected="a new or empty folder, or one of an earlier run",
                found="a folder with other files",
                way_out="give another name for the folder",
            )
        require_same_settings(out, settings)
        return out
    if resume:
        earlier = [folder for folder in RUNS.glob("*") if same_settings(folder, settings)]
        if not earlier:
            raise UserError(
                where="--resume",
                expected=f"an earlier run with these settings under {RUNS}/",
                found="none",
                way_out="name its folder with --out, or start without --resume",
            )
        return max(earlier, key=lambda folder: (folder / RUN_FILE).stat().st_mtime_ns)
    stamp = datetime.now(tz=UTC).strftime("%Y%m%d-%H%M%S")
    model = Path(settings.model).stem
    numbered = (RUNS / f"{stamp}-{model}-{number}" for number in itertools.count(1))
    return next(folder for folder in numbered if not folder.exists())


def _require_possible(out: Path) -> None:
    """Raise UserError for a path that no folder can have."""
    try:
        out.exists()
        above = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    except OSError as error:
        raise UserError(
            where="--out", expected="a path", found=error.strerror or "an error", way_out="give a shorter name"
        ) from error
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UserError(
            where="--out", expected="a folder that can be written", found=f"{above}", way_out="give another place"
        )


def _resolved(settings: RunSettings, problem: DecodeProblem | SuiteProblem) -> dict[str, str | int]:
    return {
        "model": problem.scenario.workload.model,
        "hardware": settings.hardware,
        "batch": settings.batch,
        "context": settings.context,
        "devices": problem.scenario.devices,
        "weights": settings.weights,
        "kv": settings.kv,
        "speculative": settings.speculative,
        "budget": settings.budget,
        "seed": settings.seed,
        "set": " ".join(settings.restrictions),
        "objectives": ",".join(settings.objectives),
        "require": ", ".join(settings.requirements),
        "scenarios": "; ".join(settings.scenarios),
        "warm_start": " ".join(settings.warm_start),
        "cost_model": "learned" if settings.cost_model else LOWER_BOUNDS,
    }


def _infeasible(settings: RunSettings, result: SearchResult) -> UserError:
    reasons = "; ".join(
        f"{reason.count} of {result.feasibility.explained}: {reason.example}"
        for reason in result.feasibility.reasons[:5]
    )
    return UserError(
        where=f"{settings.model} on {settings.hardware}",
        expected="at least one legal design",
        found=f"none among {result.feasibility.sampled} sampled ({reasons})",
        way_out="widen the space (--set), add devices (--devices auto), or shorten the context",
    )


def _say(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        print(text, file=stream, flush=True)
