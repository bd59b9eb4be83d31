"""The tornado chart of a sensitivity analysis: per objective, what one step of each knob alone changes."""

from collections.abc import Sequence
from math import exp, log

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from autotune.architect.effects import Effect
from autotune.architect.neighbours import DOWN, UP
from autotune.architect.sensitivity import Sensitivity
from autotune.architect.sentences import knob_words
from autotune.figure_front import COLUMN_INCHES
from autotune.merit import Merit, Sense

MOST_KNOBS = 10
LEAST_SIZE = 0.001
COLOURS = {DOWN: "#0072B2", UP: "#D55E00"}
OTHER_COLOUR = "#009E73"
LABELS = {DOWN: "next smaller value", UP: "next larger value"}
OTHER_LABEL = "another kind"
# Factors that an axis may show, the roundest first.
TICKS = (0.1, 10, 100, 0.01, 0.5, 2, 5, 0.2, 20, 50, 0.8, 1.5, 0.9, 1.1, 1.2, 0.7, 0.95, 1.05, 0.99, 1.01)
MOST_TICKS = 7
MOST_LETTERS = 30
CAPTION = (
    "What one step of each hardware knob alone does, simulated: the bar at the middle point of the analysis, the line "
    "from the least to the largest factor over all points; the knobs with the largest effects on each objective."
)


def tornado(found: Sensitivity) -> Figure:
    """Draw a panel for every objective, the knobs with the largest effects first."""
    merits = found.run.goals.objectives
    ranked = [_largest(found.effects, number) for number in range(len(merits))]
    rows = [max(len(item), 1) for item in ranked]
    size = (COLUMN_INCHES, sum(0.55 + 0.17 * count for count in rows) + 0.25)
    figure = Figure(figsize=size, layout="constrained")
    panels = np.ravel(figure.subplots(len(merits), 1, squeeze=False, height_ratios=rows))
    for number, (axes, merit, knobs) in enumerate(zip(panels, merits, ranked, strict=True)):
        _panel(axes, merit, number, knobs, found.middle_point)
    shown = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside upper center", ncols=3, handlelength=1, columnspacing=1)
    return figure


def _largest(effects: Sequence[Effect], objective: int) -> list[tuple[Effect, ...]]:
    """Return the steps of the knobs with the largest effects, knob by knob."""
    knobs: dict[str, list[Effect]] = {}
    for item in effects:
        knobs.setdefault(item.knob, []).append(item)
    sizes = {name: max(item.size(objective) for item in lot) for name, lot in knobs.items()}
    ranked = sorted((name for name in knobs if sizes[name] > LEAST_SIZE), key=lambda name: (-sizes[name], name))
    return [tuple(knobs[name]) for name in ranked[:MOST_KNOBS]]


def _panel(axes: Axes, merit: Merit, objective: int, knobs: Sequence[tuple[Effect, ...]], middle: int) -> None:
    sign = -1 if merit.sense is Sense.MORE else 1
    every = [1.0]
    for row, steps in enumerate(knobs):
        height = 0.8 / len(steps)
        for place, item in enumerate(steps):
            y = row - 0.4 + (place + 0.5) * height
            ratios = [exp(sign * change.objectives[objective]) for change in item.at]
            here = [ratio for ratio, change in zip(ratios, item.at, strict=True) if change.point == middle]
            colour, label = COLOURS.get(item.step, OTHER_COLOUR), LABELS.get(item.step, OTHER_LABEL)
            axes.barh([y] * len(here), [ratio - 1 for ratio in here], height, left=1, color=colour, label=label)
            axes.plot([min(ratios), max(ratios)], [y, y], color="0.15", linewidth=0.7, marker="|", markersize=3)
            every += ratios
    axes.axvline(1, color="0.35", linewidth=0.6)
    _ratio_axis(axes, min(every), max(every))
    axes.set_yticks(range(len(knobs)), [_name(steps, middle) for steps in knobs])
    axes.set_ylim(max(len(knobs), 1) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"{merit.title}, as a factor")


def _ratio_axis(axes: Axes, low: float, high: float) -> None:
    """Make the axis logarithmic with few plain factors on it."""
    axes.set_xscale("log")
    margin = 1.05 if high / low > 1.2 else 1.01
    axes.set_xlim(low / margin, high * margin)
    axes.xaxis.set_major_locator(FixedLocator(_spaced_ticks(low / margin, high * margin)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _spaced_ticks(low: float, high: float) -> list[float]:
    """Return plain factors inside a range, 1 and the roundest first, none too near to another."""
    gap = log(high / low) / MOST_TICKS
    chosen = [1.0]
    for tick in TICKS:
        if low <= tick <= high and all(abs(log(tick / other)) >= gap for other in chosen):
            chosen.append(tick)
    return sorted(chosen)


def _name(steps: Sequence[Effect], middle: int) -> str:
    """Return a knob with the values that the middle point, or else the first one, goes from and to, if it is short."""
    changes = [change for item in steps for change in item.at]
    before = next((change.before for change in changes if change.point == middle), changes[0].before)
    after = dict.fromkeys(str(change.after) for change in changes if change.before == before)
    name, moves = knob_words(steps[0].knob), f" {before}→{', '.join(after)}"
    return name + moves if len(name + moves) <= MOST_LETTERS else name
