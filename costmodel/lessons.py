"""What finished runs teach models of others: training data by run and task, and how well it tells of the unseen.

Each lesson is held out in turn and predicted by a model of all others. The errors of that are what a run on a device or
a model that no lesson has must expect, and so the width of its first intervals.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from configs.errors import UserError
from costmodel.accuracy import Accuracy, accuracy
from costmodel.intervals import COVERAGE, covered_as_learned, interval_half_width
from costmodel.model import DEFAULT_MODEL, NO_ROWS, CostModel, ModelSettings, Rows, merge, train

Floats = NDArray[np.float64]
SUFFIX = ".npz"
FORMAT = "cost model lessons 1"
BATCH = 10  # designs
# What reading a damaged file raises, from the file itself, the archive, and the headers of its arrays.
DAMAGED = (
    *(OSError, EOFError, ValueError, KeyError, IndexError),
    *(BadZipFile, zlib.error, NotImplementedError, RuntimeError),
    *(TypeError, SyntaxError, TokenError),
)


@dataclass(frozen=True, slots=True)
class TaskRows:
    """What one run measured of one task: its operator kind, the rows, and the names of their features."""

    task: str
    kind: str
    rows: Rows
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What one run measured, task by task, on designs of one base device for one model."""

    model: str
    device: str
    tasks: tuple[TaskRows, ...]

    @property
    def name(self) -> str:
        """Model and device in words."""
        return f"{self.model} on {self.device}"

    @property
    def rows(self) -> dict[str, Rows]:
        """All rows by operator kind."""
        return rows_of_lessons((self,))


@dataclass(frozen=True, slots=True)
class Prior:
    """What a run starts from: rows by operator kind, and the half width in log cycles to expect where it is new."""

    rows: Mapping[str, Rows] = field(default_factory=lambda: NO_ROWS)
    log_width: float = 0.0


NO_PRIOR = Prior()


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How a lesson was predicted by a model of the others, and by the bounds alone, on average over its tasks.

    `covered` of all its predictions lay within `factor` of the measurement, an interval from the errors on the other
    lessons. `followed` of them lay in intervals that start there and follow the errors batch by batch, as those of a
    run do. All three are None where the other lessons have no others to learn from.
    """

    name: str
    learned: Accuracy
    bound: Accuracy
    factor: float | None
    covered: float | None
    followed: float | None


def rows_of_lessons(lessons: Sequence[Lesson]) -> dict[str, Rows]:
    """Return the rows of lessons by operator kind."""
    found: dict[str, Rows] = {}
    for lesson in lessons:
        for item in lesson.tasks:
            found = merge(found, {item.kind: item.rows})
    return found


def prior_of(lessons: Sequence[Lesson], model: str, device: str, seed: int = 0) -> Prior:
    """Return the prior for a run.

    Its width is that of errors on lessons held out whole, unless one is of the run's model and device: then of errors
    on that one's every other design, by a model of the rest.
    """
    if not lessons:
        return NO_PRIOR
    same = [lesson for lesson in lessons if (lesson.model, lesson.device) == (model, device)]
    if same:
        half = trained([_every_other(lesson, 0) if lesson in same else lesson for lesson in lessons], seed)
        errors = [log_errors(_every_other(lesson, 1), half) for lesson in same]
    else:
        errors = [log_errors(lesson, trained(_others(lessons, lesson), seed)) for lesson in lessons]
    return Prior(rows_of_lessons(lessons), interval_half_width(np.concatenate(errors), COVERAGE))


def _every_other(lesson: Lesson, first: int) -> Lesson:
    """Return a lesson of every other design."""
    rows = slice(first, None, 2)
    return replace(lesson, tasks=tuple(replace(item, rows=item.rows.picked(rows)) for item in lesson.tasks))


def held_out(lessons: Sequence[Lesson], seed: int = 0, whole_devices: bool = False) -> tuple[HeldOut, ...]:
    """Predict every lesson from the others, or from those of other devices; none where there are no others."""
    return tuple(
        _held_out(lessons, lesson, seed, whole_devices) for lesson in lessons if _others(lessons, lesson, whole_devices)
    )


def trained(lessons: Sequence[Lesson], seed: int, settings: ModelSettings = DEFAULT_MODEL) -> CostModel:
    """Return the model of lessons alone."""
    return train({}, seed, settings, rows_of_lessons(lessons))


def importance(lessons: Sequence[Lesson], seed: int) -> dict[str, dict[str, float]]:
    """Return by operator kind how much each feature takes away of the error, as shares, the largest first."""
    names = {item.kind: item.features for lesson in lessons for item in lesson.tasks}
    model = trained(lessons, seed)
    found = {
        kind: zip(names[kind], model.kinds[kind].importance(len(names[kind])), strict=True) for kind in model.kinds
    }
    return {kind: dict(sorted(shares, key=lambda item: -item[1])) for kind, shares in found.items()}


def log_errors(lesson: Lesson, model: CostModel) -> Floats:
    """Return log(predicted / measured) of every row of a lesson."""
    return np.concatenate(_errors_by_task(lesson, model))


def _errors_by_task(lesson: Lesson, model: CostModel) -> list[Floats]:
    return [np.log(_predicted(item, model) / np.maximum(item.rows.cycles, 1.0)) for item in lesson.tasks]


def _held_out(lessons: Sequence[Lesson], lesson: Lesson, seed: int, whole_devices: bool) -> HeldOut:
    others = _others(lessons, lesson, whole_devices)
    model = trained(others, seed)
    factor = covered = followed = None
    apart = [(other, rest) for other in others if (rest := _others(others, other, whole_devices))]
    if apart:
        errors = [log_errors(other, trained(rest, seed)) for other, rest in apart]
        width = interval_half_width(np.concatenate(errors), COVERAGE)
        factor = float(np.exp(width))
        covered = float((np.abs(log_errors(lesson, model)) <= width).mean())
        followed = covered_as_learned(_batches(lesson, model), width)
    learned = [accuracy(_predicted(item, model), item.rows.cycles) for item in lesson.tasks]
    bound = [accuracy(item.rows.bound_cycles, item.rows.cycles) for item in lesson.tasks]
    return HeldOut(lesson.name, _mean(learned), _mean(bound), factor, covered, followed)


def _batches(lesson: Lesson, model: CostModel) -> list[Floats]:
    """Return the errors on all tasks of `BATCH` designs after the other, in the order in which they were measured."""
    errors = _errors_by_task(lesson, model)
    designs = min(map(len, errors), default=0)
    return [np.concatenate([each[start : start + BATCH] for each in errors]) for start in range(0, designs, BATCH)]


def _others(lessons: Sequence[Lesson], lesson: Lesson, whole_devices: bool = False) -> list[Lesson]:
    """Return the other lessons, or those of other devices."""
    if whole_devices:
        return [other for other in lessons if other.device != lesson.device]
    return [other for other in lessons if other is not lesson]


def _predicted(item: TaskRows, model: CostModel) -> Floats:
    return np.maximum(model.predict(item.kind, item.rows.features, item.rows.bound_cycles), 1.0)


def _mean(found: Sequence[Accuracy]) -> Accuracy:
    return Accuracy(
        count=sum(item.count for item in found),
        pairwise=float(np.mean([item.pairwise for item in found])),
        peak_at_1=float(np.mean([item.peak_at_1 for item in found])),
        peak_at_5=float(np.mean([item.peak_at_5 for item in found])),
        top_percent_recall=float(np.mean([item.top_percent_recall for item in found])),
        mape=float(np.mean([item.mape for item in found])),
    )


def save_lessons(path: Path, lessons: Sequence[Lesson]) -> None:
    """Write lessons as a .npz of plain arrays, whole or not at all; raises UserError where none can be."""
    if path.suffix != SUFFIX:
        raise UserError(
            where=str(path), expected=f"a name that ends in {SUFFIX}", found=path.suffix or "none", way_out="add it"
        )
    arrays: dict[str, NDArray[np.generic]] = {"format": np.array(FORMAT)}
    for number, lesson in enumerate(lessons):
        arrays[f"{number}/about"] = np.array([lesson.model, lesson.device])
        for place, item in enumerate(lesson.tasks):
            start = f"{number}/{place}"
            arrays[f"{start}/about"] = np.array([item.task, item.kind])
            arrays[f"{start}/names"] = np.array(item.features)
            arrays[f"{start}/features"] = item.rows.features
            arrays[f"{start}/cycles"] = np.stack([item.rows.cycles, item.rows.bound_cycles])
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        part.replace(path)
    except OSError as error:
        raise UserError(
            where=str(path),
            expected="a file that can be written",
            found=error.strerror or "an error",
            way_out="choose another place",
        ) from error


def load_lessons(path: Path) -> tuple[Lesson, ...]:
    """Read lessons back; raises UserError for a file that holds none."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        if str(arrays["format"]) != FORMAT:
            raise ValueError("another format")
        found = tuple(_lesson(arrays, number) for number in range(sum(name.count("/") == 1 for name in arrays)))
        if not any(lesson.tasks for lesson in found):
            raise ValueError("no measured task")
        return found
    except DAMAGED as error:
        raise UserError(
            where=str(path),
            expected="training data that `explore train` wrote",
            found=str(error) or "another file",
            way_out="make it with `explore train RUN --out FILE`, or give the folder of a run",
        ) from error


def _lesson(arrays: Mapping[str, NDArray[np.generic]], number: int) -> Lesson:
    model, device = (str(text) for text in arrays[f"{number}/about"])
    tasks: list[TaskRows] = []
    while f"{number}/{len(tasks)}/about" in arrays:
        start = f"{number}/{len(tasks)}"
        task, kind = (str(text) for text in arrays[f"{start}/about"])
        names = tuple(str(name) for name in arrays[f"{start}/names"])
        features, cycles = (np.asarray(arrays[f"{start}/{what}"], dtype=np.float64) for what in ("features", "cycles"))
        if features.shape != (cycles.shape[-1], len(names)) or cycles.shape[:-1] != (2,):
            raise ValueError(f"features {features.shape} and cycles {cycles.shape} of {task}")
        if not (np.isfinite(features).all() and np.isfinite(cycles).all() and (cycles >= 0).all()):
            raise ValueError(f"figures of {task} that are no numbers or negative")
        tasks.append(TaskRows(task, kind, Rows(features, *cycles), names))
    return Lesson(model, device, tuple(tasks))
