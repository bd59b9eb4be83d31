"""Figures of merit: what a design can be optimised for or held to, each with unit, sense and meaning, in one table.

A figure follows from the metrics of a design (latency, energy, area) and from facts that are known without simulating
it (`Problem.facts`). Written as something to minimise, every objective is a non-decreasing function of the metrics, so
that it takes lower bounds of the metrics to its own lower bound; `exact` figures depend on no simulation at all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from autotune.problem import AREA, CAPACITY, DEVICES, DIES, METRICS, TOKENS
from autotune.units import MJ_PER_PJ, MS_PER_NS
from simulator.power import W_PER_PJ_PER_NS

Floats = NDArray[np.float64]
Facts = Mapping[str, Floats]
Value = Callable[[Floats, Facts], Floats]
LATENCY_COLUMN, ENERGY_COLUMN, AREA_COLUMN = range(len(METRICS))
J_PER_PJ = 1e-12
MM2_PER_CM2 = 100.0
# Die yield as in Feng and Ma, Chiplet Actuary (DAC 2022): negative binomial with ten critical levels; their defect
# densities run from 0.07 (28 nm) to 0.11 (5 nm) per cm². Assumption: 0.1 for a DRAM process, without repair.
DEFECTS_PER_CM2 = 0.1
CRITICAL_LEVELS = 10.0


class Sense(StrEnum):
    """Which way a figure is better, if it never gets worse with smaller metrics; neither where that does not hold."""

    LESS = "minimised"
    MORE = "maximised"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Merit:
    """One figure: `figure` is its name in requirements, `objective` in --objectives (empty: requirements only).

    `metric` is the metric it is, up to a unit; `exact` figures are known in closed form. `column` names it in tables,
    `heading` in narrow ones, `label` beside an axis; `best` names the point of a front that is best in it.
    """

    figure: str
    unit: str
    sense: Sense
    meaning: str
    value: Value
    objective: str = ""
    metric: int | None = None
    scale: float = 1.0
    exact: bool = False
    column: str = ""
    heading: str = ""
    label: str = ""
    best: str = ""

    @property
    def title(self) -> str:
        """The name of the objective in words."""
        return self.objective.replace("_", " ")

    def minimised(self, metrics: Floats, facts: Facts) -> Floats:
        """Return the figure as something to minimise: the metric itself, the value, or its reciprocal: float[n]."""
        if self.metric is not None:
            return metrics[:, self.metric]
        value = self.value(metrics, facts)
        return 1.0 / value if self.sense is Sense.MORE else value

    def shown(self, minimised: Floats) -> Floats:
        """Return values in the figure's unit from those that are minimised."""
        return 1.0 / minimised if self.sense is Sense.MORE else minimised * self.scale

    def stored(self, minimised: Floats) -> Floats:
        """Return values as tables keep them: metrics in their own units, other figures in theirs."""
        return minimised if self.metric is not None else self.shown(minimised)


def _metric(column: int, scale: float) -> Value:
    def value(metrics: Floats, facts: Facts) -> Floats:
        return metrics[:, column] * scale

    return value


def _throughput(metrics: Floats, facts: Facts) -> Floats:
    return facts[TOKENS] / metrics[:, LATENCY_COLUMN] * 1e9


def _tokens_per_j(metrics: Floats, facts: Facts) -> Floats:
    return facts[TOKENS] / (metrics[:, ENERGY_COLUMN] * J_PER_PJ)


def _throughput_per_area(metrics: Floats, facts: Facts) -> Floats:
    return _throughput(metrics, facts) / metrics[:, AREA_COLUMN]


def _energy_delay(metrics: Floats, facts: Facts) -> Floats:
    return metrics[:, ENERGY_COLUMN] * MJ_PER_PJ * (metrics[:, LATENCY_COLUMN] * MS_PER_NS)


def _cost(metrics: Floats, facts: Facts) -> Floats:
    return metrics[:, AREA_COLUMN] / die_yield(metrics[:, AREA_COLUMN] / facts[DIES])


def _power(metrics: Floats, facts: Facts) -> Floats:
    return metrics[:, ENERGY_COLUMN] / metrics[:, LATENCY_COLUMN] * W_PER_PJ_PER_NS


def _fact(name: str, metrics: Floats, facts: Facts) -> Floats:
    return facts[name]


def die_yield(die_mm2: Floats) -> Floats:
    """Return the share of dies without a defect: negative binomial."""
    defects = die_mm2 / MM2_PER_CM2 * DEFECTS_PER_CM2
    good: Floats = (1.0 + defects / CRITICAL_LEVELS) ** -CRITICAL_LEVELS
    return good


FIGURES = (
    Merit(
        "latency_ms",
        "ms",
        Sense.LESS,
        "time of one decode step, in which every sequence of the batch gets its next token",
        _metric(LATENCY_COLUMN, MS_PER_NS),
        objective="latency",
        metric=LATENCY_COLUMN,
        scale=MS_PER_NS,
        column=METRICS[LATENCY_COLUMN],
        heading="ms/token",
        label="latency per token (ms)",
        best="fastest",
    ),
    Merit(
        "energy_mj",
        "mJ",
        Sense.LESS,
        "energy of the memory side in one decode step",
        _metric(ENERGY_COLUMN, MJ_PER_PJ),
        objective="energy",
        metric=ENERGY_COLUMN,
        scale=MJ_PER_PJ,
        column=METRICS[ENERGY_COLUMN],
        heading="mJ/token",
        label="energy per token (mJ)",
        best="least energy",
    ),
    Merit(
        "area_mm2",
        "mm²",
        Sense.LESS,
        "DRAM silicon of all devices",
        _metric(AREA_COLUMN, 1.0),
        objective="area",
        metric=AREA_COLUMN,
        exact=True,
        column=METRICS[AREA_COLUMN],
        heading="mm²",
        label="DRAM silicon (mm²)",
        best="smallest",
    ),
    Merit(
        "throughput_tokens_per_s",
        "tokens/s",
        Sense.MORE,
        "tokens of the whole batch per second",
        _throughput,
        objective="throughput",
        column="throughput_tokens_per_s",
        heading="tokens/s",
        label="throughput (tokens/s)",
        best="highest throughput",
    ),
    Merit(
        "tokens_per_s_per_w",
        "tokens/J",
        Sense.MORE,
        "tokens per second and watt of the memory side, which are tokens per joule",
        _tokens_per_j,
        objective="tokens_per_s_per_w",
        column="tokens_per_s_per_w",
        heading="tokens/J",
        label="tokens per joule",
        best="most tokens per joule",
    ),
    Merit(
        "tokens_per_s_per_mm2",
        "tokens/s/mm²",
        Sense.MORE,
        "tokens of the whole batch per second and DRAM silicon",
        _throughput_per_area,
        objective="tokens_per_s_per_mm2",
        column="tokens_per_s_per_mm2",
        heading="tokens/s/mm²",
        label="throughput per silicon (tokens/s/mm²)",
        best="most throughput per silicon",
    ),
    Merit(
        "edp",
        "mJ·ms",
        Sense.LESS,
        "energy-delay product: energy times latency of one decode step",
        _energy_delay,
        objective="edp",
        column="edp_mj_ms",
        heading="mJ·ms",
        label="energy-delay product (mJ·ms)",
        best="least energy-delay product",
    ),
    Merit(
        "cost",
        "mm² of wafer",
        Sense.LESS,
        "relative cost: wafer area spent per working set of dies, which is area over die yield",
        _cost,
        objective="cost",
        exact=True,
        column="cost_wafer_mm2",
        heading="cost",
        label="relative cost (mm² of wafer)",
        best="cheapest",
    ),
    Merit("power_avg_w", "W", Sense.NEITHER, "energy of the memory side over latency", _power),
    Merit("capacity_gib", "GiB", Sense.NEITHER, "what all devices can store", partial(_fact, CAPACITY), exact=True),
    Merit("devices", "", Sense.NEITHER, "devices behind the host", partial(_fact, DEVICES), exact=True),
)
OBJECTIVES = {merit.objective: merit for merit in FIGURES if merit.objective}
DEFAULT_OBJECTIVES = tuple(OBJECTIVES[name] for name in ("latency", "energy", "area"))


def known_metrics(facts: Facts) -> Floats:
    """Return metrics of which only those are there that need no simulation; the others are not numbers: float[n, 3]."""
    area = facts[AREA]
    unknown = np.full(len(area), np.nan)
    return np.stack([unknown, unknown, area], axis=1)


def knob_figure(name: str, unit: str) -> Merit:
    """Return the value of a numeric hardware knob as a figure for requirements."""
    return Merit(name, unit, Sense.NEITHER, "hardware knob", partial(_fact, name), exact=True)


def project(merits: Sequence[Merit], metrics: Floats, facts: Facts) -> Floats:
    """Return figures as something to minimise (float[n, m]) for metrics (float[n, 3]) and facts (float[n] each)."""
    return np.stack([merit.minimised(metrics, facts) for merit in merits], axis=1)


def titles(merits: Sequence[Merit]) -> str:
    """Return the objectives in words, as in "latency, energy and area"."""
    *first, last = (merit.title for merit in merits)
    return f"{', '.join(first)} and {last}" if first else last
