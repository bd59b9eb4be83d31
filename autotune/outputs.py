"""Everything a finished run leaves in its folder, made anew from the evaluations each time."""

from dataclasses import dataclass
from pathlib import Path

from autotune.architect.beside import beside
from autotune.architect.references import write_reference_figure, write_references
from autotune.constraints import write_constraints
from autotune.figures import write_figures
from autotune.finished import FinishedRun
from autotune.points import write_points
from autotune.provenance import write_provenance
from autotune.report import write_report
from autotune.tables import write_tables


@dataclass(frozen=True, slots=True)
class OutputPaths:
    """Where the outputs are."""

    tables: tuple[Path, ...]
    points: tuple[Path, ...]
    figures: tuple[Path, ...]
    constraints: tuple[Path, ...]
    provenance: Path
    report: Path


def write_outputs(run: FinishedRun) -> OutputPaths:
    """Write tables, a folder per Pareto point, figures, constraints, provenance and the report."""
    run.folder.mkdir(parents=True, exist_ok=True)
    found = beside(run)
    drawings = (*write_figures(run), *write_reference_figure(run, found.references))
    return OutputPaths(
        tables=(*write_tables(run), write_references(run.folder, found.references)),
        points=write_points(run),
        figures=tuple(path for drawing in drawings for path in (drawing.pdf, drawing.png)),
        constraints=write_constraints(run, found),
        provenance=write_provenance(run),
        report=write_report(run, drawings, found),
    )
