"""The main job: settings -> problem -> search -> numerics of the front -> result folder."""

import itertools
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from autotune.decode_problem import DecodeProblem
from autotune.finished import FinishedRun, front_points
from autotune.front_numerics import front_verdicts
from autotune.interrupt import stop_on_interrupt
from autotune.outputs import write_outputs
from autotune.problem import Evaluation
from autotune.problem_spec import ProblemSpec, problem_spec
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
from autotune.study import StudyView
from autotune.workers import Workers
from configs.errors import UserError

RUNS = Path("runs")


@dataclass(frozen=True, slots=True)
class Exploration:
    """A finished or interrupted run."""

    folder: Path
    problem: DecodeProblem
    result: SearchResult
    front: tuple[Evaluation, ...]
    numerics: dict[tuple[int, ...], str]


def explore(
    settings: RunSettings,
    *,
    out: Path | None = None,
    workers: int = 0,
    resume: bool = False,
    stream: TextIO | None = None,
) -> Exploration:
    """Run the main job and leave its folder; progress goes to `stream`. Raises UserError for a user's mistake."""
    folder = _folder(settings, out, resume)
    _say(stream, f"importing {settings.model}")
    spec = problem_spec(settings)
    problem = spec()
    count = workers if workers else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    identity = spec.identity()
    require_same_identity(folder, identity)
    with open_record(folder, problem, resume) as record:
        save_settings(folder, settings, identity)
        result = _search(settings, spec, problem, folder, record, count, stream)
        if result.stop is StopReason.INFEASIBLE:
            raise _infeasible(settings, result)
        front = tuple(result.evaluations[point] for point in front_points(result.evaluations))
        _say(stream, f"checking the numerics of {len(front)} Pareto points")
        numerics = front_verdicts(problem, front, count)
        write_outputs(FinishedRun(folder, _resolved(settings, problem), problem, result, numerics))
    return Exploration(folder, problem, result, front, numerics)


def _search(
    settings: RunSettings,
    spec: ProblemSpec,
    problem: DecodeProblem,
    folder: Path,
    record: Record,
    workers: int,
    stream: TextIO | None,
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
            return search(problem, settings.budget, settings.seed, evaluate_batch, observer)
        finally:
            StudyView(folder, problem.knobs).sync(record.evaluations)


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


def _resolved(settings: RunSettings, problem: DecodeProblem) -> dict[str, str | int]:
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
