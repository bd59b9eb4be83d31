"""Everything a finished run leaves in its folder, made anew from the evaluations each time."""

from dataclasses import dataclass
from pathlib import Path

from autotune.finished import FinishedRun
from autotune.points import write_points
from autotune.tables import write_tables


@dataclass(frozen=True, slots=True)
class OutputPaths:
    """Where the outputs are."""

    tables: tuple[Path, ...]
    points: tuple[Path, ...]


def write_outputs(run: FinishedRun) -> OutputPaths:
    """Write tables and a folder per Pareto point."""
    return OutputPaths(tables=write_tables(run), points=write_points(run))
