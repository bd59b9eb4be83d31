"""Progress of a search on stderr: a live line on a terminal, one plain line per batch elsewhere, or nothing.

The time left is an estimate for the eye; no decision depends on it.
"""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from autotune.problem import Evaluation
from autotune.result import SILENT, BatchReport, Observer


def describe(report: BatchReport) -> str:
    """Return the state after a batch in one line, with units."""
    share = report.hypervolume / report.bound_hypervolume if report.bound_hypervolume else 0.0
    parts = [f"best {', '.join(_amount(*item) for item in report.best)}"]
    if report.feasible < report.evaluated:
        parts.append(_requirements_met(report))
    if report.feasible:
        parts.append(f"hypervolume {100 * share:.1f} % of the known bound front")
    for name, accuracy in report.accuracy[:1]:
        parts.append(f"model on new {name}: ranks {100 * accuracy.pairwise:.0f} %, error {100 * accuracy.mape:.1f} %")
    return "; ".join(parts)


def _amount(value: float, unit: str) -> str:
    """Return a value with its unit in plain letters."""
    return f"{value:.4g} {unit.replace('²', '2').replace('·', ' ')}"


def _requirements_met(report: BatchReport) -> str:
    if report.feasible:
        return f"{report.feasible} of {report.evaluated} meet the requirements"
    return f"none meets the requirements, the nearest misses by {math.expm1(report.least_violation):.2%}"


class PlainProgress:
    """Writes one line per batch."""

    def __init__(self, stream: TextIO) -> None:
        """Start the clock for the time left."""
        self._stream = stream
        self._start = time.monotonic()

    def phase(self, text: str) -> None:
        """Show nothing: a phase is over before its line would be read."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """Show nothing: the batch gets a line."""

    def batch_finished(self, report: BatchReport) -> None:
        """Write how far the search is."""
        elapsed_s = time.monotonic() - self._start
        left_s = elapsed_s / report.evaluated * (report.budget - report.evaluated)
        line = f"{report.evaluated}/{report.budget} designs; {describe(report)}; about {left_s:.0f} s left"
        print(line, file=self._stream, flush=True)


class _FiguredBar(Progress):
    """A progress bar with a line of figures below it, wrapped to the terminal."""

    figures = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, then the figures."""
        yield from super().get_renderables()
        yield Text(self.figures)


class LiveProgress:
    """Keeps one bar and one line of figures up to date on a terminal."""

    def __init__(self, bar: _FiguredBar, task: TaskID) -> None:
        """Take the bar that is shown."""
        self._bar = bar
        self._task = task

    def phase(self, text: str) -> None:
        """Show what is being done."""
        self._bar.update(self._task, phase=text)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Count one more design."""
        self._bar.update(self._task, advance=1, phase="simulating")

    def batch_finished(self, report: BatchReport) -> None:
        """Show the figures of the batch."""
        self._bar.update(self._task, completed=report.evaluated)
        self._bar.figures = describe(report)


@contextmanager
def show_progress(budget: int, stream: TextIO, quiet: bool) -> Iterator[Observer]:
    """Yield the observer that suits the stream: silent, plain lines, or live."""
    if quiet:
        yield SILENT
        return
    if not stream.isatty():
        yield PlainProgress(stream)
        return
    columns = (
        TextColumn("{task.fields[phase]:<22}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("designs,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with _FiguredBar(*columns, console=Console(file=stream), transient=True) as bar:
        yield LiveProgress(bar, bar.add_task("search", total=budget, phase="starting"))
