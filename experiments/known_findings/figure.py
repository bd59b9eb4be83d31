"""The panels of all findings in one figure, as PDF with editable text and as PNG, as wide as a page of a paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from autotune.figures import STYLE
from experiments.known_findings.finding import Finding

PAGE_INCHES, ROW_INCHES = 7.2, 2.45
COLUMNS = 3
NAME = "known_findings"


def write_figure(measured: Sequence[tuple[Finding[Any], Sequence[Any]]], folder: Path) -> tuple[Path, Path]:
    """Draw every finding from its rows; return the files."""
    panels = [(panel, rows) for finding, rows in measured for panel in finding.panels]
    pdf, png = folder / f"{NAME}.pdf", folder / f"{NAME}.png"
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)  # type: ignore[arg-type]
        lines = -(-len(panels) // COLUMNS)
        figure = Figure(figsize=(PAGE_INCHES, lines * ROW_INCHES), layout="constrained")
        places = figure.subplots(lines, COLUMNS, squeeze=False).ravel()
        for axes, (panel, rows) in zip(places, panels, strict=False):
            panel(axes, rows)
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        # The layout is found once and then kept for both formats; without dates the files of equal runs are equal.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        figure.savefig(pdf, metadata={"CreationDate": None, "Producer": None, "Creator": None})
        figure.savefig(png, metadata={"Software": None})
    return pdf, png
