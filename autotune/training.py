"""Lessons for the cost model from the folders of finished runs, and which of them suit a problem."""

from collections.abc import Sequence
from pathlib import Path

from autotune.architect.stored_run import stored_run
from autotune.decode_problem import DecodeProblem
from autotune.learning import rows_of
from autotune.problem import Evaluation
from autotune.suite import SuiteProblem
from configs.errors import UserError
from costmodel.features import feature_names
from costmodel.lessons import NO_PRIOR, SUFFIX, Lesson, Prior, TaskRows, load_lessons, prior_of


def lesson_of(problem: DecodeProblem, evaluations: Sequence[Evaluation]) -> Lesson:
    """Return what evaluations of a problem teach, task by task."""
    tasks = []
    for column, task in enumerate(problem.tasks):
        rows = rows_of(problem, evaluations, (column,))[problem.kind(task)]
        tasks.append(TaskRows(task, problem.kind(task), rows, feature_names(problem.kind(task))))
    return Lesson(problem.scenario.workload.model, problem.scenario.base.name, tuple(tasks))


def gather(sources: Sequence[Path]) -> tuple[Lesson, ...]:
    """Return the lessons of run folders and of files of training data; raises UserError for anything else."""
    found = [lesson for source in sources for lesson in _lessons_in(source)]
    for lesson in found:
        _require_same_features(lesson)
    return tuple(found)


def _lessons_in(source: Path) -> tuple[Lesson, ...]:
    try:
        if source.suffix == SUFFIX:
            return load_lessons(source)
        stored = stored_run(source)
    except OSError as error:
        raise UserError(
            where=str(source),
            expected="the folder of a run, or training data",
            found=error.strerror or "an error",
            way_out="give the folder that explore named, such as runs/NAME",
        ) from error
    return (lesson_of(stored.spec(), stored.run.evaluations),)


def prior_for(problem: DecodeProblem | SuiteProblem, lessons: Sequence[Lesson], seed: int) -> Prior:
    """Return what a run on a problem starts from."""
    if not lessons:
        return NO_PRIOR
    scenario = problem.scenario
    return prior_of(lessons, scenario.workload.model, scenario.base.name, seed)


def _require_same_features(lesson: Lesson) -> None:
    """Raise UserError for training data of another version: its columns mean something else."""
    for item in lesson.tasks:
        if item.features != feature_names(item.kind):
            raise UserError(
                where=f"training data of {lesson.name}, {item.task}",
                expected="the features that this version computes",
                found="those of another version",
                way_out="make the runs again with this version, then explore train",
            )
