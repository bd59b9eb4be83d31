"""Figures of a run, each as PDF with editable text and as PNG, sized for one column of a paper."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from autotune.figure_bars import energy_breakdown, latency_breakdown
from autotune.figure_front import better_corner, first_and_second, first_and_third
from autotune.figure_progress import cost_model_accuracy, hypervolume_progress, knob_knees
from autotune.finished import FinishedRun

STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "savefig.dpi": 250,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "figure",
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure's file name, its caption, and how to draw it."""

    name: str
    caption: str
    draw: Callable[[FinishedRun], Figure]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure that was drawn: its caption, its files, and itself as SVG."""

    name: str
    caption: str
    pdf: Path
    png: Path
    svg: bytes


PLOTS = (
    Plot(
        "hypervolume",
        "Hypervolume of the front over the evaluations, against that of the lower bounds.",
        hypervolume_progress,
    ),
    Plot(
        "latency_breakdown",
        "Where the time of a token goes, by operator, for some Pareto points; the rest is host work that no schedule "
        "changes and the embedding.",
        latency_breakdown,
    ),
    Plot(
        "energy_breakdown",
        "Where the energy of a token goes; the host processor belongs to no total and is left out.",
        energy_breakdown,
    ),
    Plot(
        "knob_knees",
        "Lowest simulated latency with each value of each hardware knob; numbers are points, a ring marks the knee.",
        knob_knees,
    ),
    Plot(
        "cost_model_accuracy",
        "Predictions by {predictor} of designs that were new: each batch is predicted, then simulated.",
        cost_model_accuracy,
    ),
)


def plots_of(run: FinishedRun) -> tuple[Plot, ...]:
    """Return every figure of a run: the projections of its front, named after the objectives, and those in `PLOTS`."""
    first, second, *others = run.goals.objectives
    colour = f", coloured by {others[0].title}" if others else ""
    hollow = " Hollow points miss a requirement." if run.goals.requirements else ""
    projections = [
        Plot(
            f"pareto_{first.objective}_{second.objective}",
            f"Every evaluated design by {first.title} and {second.title}{colour}. {better_corner(first, second)} is "
            f"better; the dashed line is what the lower bounds of all sampled and evaluated designs allow.{hollow}",
            first_and_second,
        )
    ]
    if others:
        caption = f"Every evaluated design by {first.title} and {others[0].title}, coloured by {second.title}.{hollow}"
        projections.append(Plot(f"pareto_{first.objective}_{others[0].objective}", caption, first_and_third))
    return (*projections, *(replace(plot, caption=plot.caption.format(predictor=run.predictor)) for plot in PLOTS))


def write_figures(run: FinishedRun) -> tuple[Drawing, ...]:
    """Draw every figure that the run has data for."""
    if not run.evaluations:
        return ()
    folder = run.folder / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    has_accuracy = any(batch.accuracy for batch in run.result.batches)
    plots = [plot for plot in plots_of(run) if has_accuracy or plot.draw is not cost_model_accuracy]
    if not run.result.batches:
        plots = [plot for plot in plots if plot.draw is not hypervolume_progress]
    with figure_style():
        return tuple(save_figure(plot.draw(run), plot.name, plot.caption, folder) for plot in plots)


@contextmanager
def figure_style() -> Iterator[None]:
    """Set the style while figures are drawn and saved, so that a caller's own stay as they are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)  # type: ignore[arg-type]
        yield


def save_figure(figure: Figure, name: str, caption: str, folder: Path) -> Drawing:
    """Write a figure as PDF and PNG into a folder, and return it with its SVG."""
    # The layout is found once and then kept for all three formats, which savefig would each draw twice.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    figure.set_dpi(mpl.rcParams["savefig.dpi"])
    pdf, png, svg = folder / f"{name}.pdf", folder / f"{name}.png", io.BytesIO()
    # Without dates the files of equal runs are equal.
    no_date = {"CreationDate": None, "Producer": None, "Creator": None}
    FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})  # type: ignore[no-untyped-call]
    FigureCanvasPdf(figure).print_pdf(pdf, metadata=no_date)  # type: ignore[no-untyped-call]
    FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    return Drawing(name, caption, pdf, png, svg.getvalue())
