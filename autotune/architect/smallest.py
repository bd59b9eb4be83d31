"""The smallest device for a latency: what was found, what nothing smaller reaches, and what lower bounds rule out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.architect.binding import BindingLimit, limits_of
from autotune.finished import FinishedRun, best_on_base
from autotune.goals import judge_bounds, violations_of
from autotune.learning import codes_of, metrics_of
from autotune.merit import AREA_COLUMN, LATENCY_COLUMN
from autotune.problem import TOKENS
from autotune.requirements import Requirement
from autotune.roofline import roofline
from autotune.units import MS_PER_NS

Floats = NDArray[np.float64]
BASE_SHARES = (1.0, 0.75, 0.5)
LATENCY, THROUGHPUT = "latency_ms", "throughput_tokens_per_s"
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Target:
    """A latency to reach, and where it comes from; `base_point` is the base device's best where it follows from it."""

    latency_ns: float
    source: str
    base_point: int | None = None


@dataclass(frozen=True, slots=True)
class FastestSmaller:
    """The fastest simulated point with less area: by which share it misses the target, and what binds it."""

    point: int
    area_mm2: float
    excess: float
    binding: BindingLimit


@dataclass(frozen=True, slots=True)
class SmallestDevice:
    """The simulated point of least area that meets a target and every other requirement; None where none does.

    `smaller` is the fastest point of less area, or the fastest of all where nothing meets the target. Of the
    `bounded_designs`, which were evaluated or lie on the front of all sampled bounds, none below `bound_area_mm2` has a
    latency bound that meets the target; None where none has at all.
    """

    target: Target
    point: int | None
    area_mm2: float | None
    smaller: FastestSmaller | None
    bound_area_mm2: float | None
    bounded_designs: int


def latency_targets(run: FinishedRun) -> tuple[Target, ...]:
    """Return the user's limit of the latency, or the base device's best point and shares of it; none without either."""
    limits = [(_limit_ns(run, item), str(item)) for item in run.goals.requirements if _is_latency(item)]
    if limits:
        return (Target(*min(limits)),)
    base = best_on_base(run)
    if base is None:
        return ()
    own = run.evaluations[base].latency_ns
    return tuple(Target(share * own, f"{share:.0%} of the base device's best", base) for share in BASE_SHARES)


def smallest_devices(run: FinishedRun) -> tuple[SmallestDevice, ...]:
    """Return the smallest device of every target."""
    if not run.evaluations or np.isnan(metrics_of(run.evaluations)[:, AREA_COLUMN]).any():
        return ()
    bounds = _bounds(run)
    return tuple(_smallest(run, target, bounds) for target in latency_targets(run))


def _smallest(run: FinishedRun, target: Target, bounds: Floats) -> SmallestDevice:
    metrics, admitted = metrics_of(run.evaluations), _admitted(run)
    latency, area = metrics[:, LATENCY_COLUMN], metrics[:, AREA_COLUMN]
    meets = np.flatnonzero(admitted & (latency <= target.latency_ns))
    point = min(meets.tolist(), key=lambda row: (area[row], latency[row]), default=None)
    below = np.inf if point is None else area[point]
    smaller = np.flatnonzero(admitted & (area < below))
    fastest = min(smaller.tolist(), key=lambda row: (latency[row], area[row]), default=None)
    enough = bounds[bounds[:, LATENCY_COLUMN] <= target.latency_ns, AREA_COLUMN]
    return SmallestDevice(
        target=target,
        point=point,
        area_mm2=None if point is None else float(area[point]),
        smaller=None if fastest is None else _fastest_smaller(run, fastest, target),
        bound_area_mm2=float(enough.min()) if len(enough) else None,
        bounded_designs=len(bounds),
    )


def _fastest_smaller(run: FinishedRun, point: int, target: Target) -> FastestSmaller:
    item = run.evaluations[point]
    return FastestSmaller(point, item.area_mm2, item.latency_ns / target.latency_ns - 1, limits_of(run, (point,))[0])


def _admitted(run: FinishedRun) -> NDArray[np.bool_]:
    """Return which points meet every requirement but those of the latency: bool[n]."""
    others = [column for column, item in enumerate(run.goals.requirements) if not _is_latency(item)]
    met: NDArray[np.bool_] = violations_of(run.judged.margins[:, others]) == 0.0
    return met


def _bounds(run: FinishedRun) -> Floats:
    """Return the lower bounds of sampled and evaluated designs that violate no other requirement: float[n, 3]."""
    known = [codes_of(run.evaluations, len(run.problem.knobs))]
    if run.result.roofline.codes.shape[1]:
        known.append(run.result.roofline.codes)
    codes = np.concatenate(known)
    metrics = roofline(run.problem, codes)
    bounded = [item for item in run.goals.requirements if item.bounded]
    others = [column for column, item in enumerate(bounded) if not _is_latency(item)]
    margins = judge_bounds(run.problem, run.goals, codes, metrics).margins
    admitted: Floats = metrics[violations_of(margins[:, others]) == 0.0]
    return admitted


def _is_latency(item: Requirement) -> bool:
    figure, at_most = item.merit.figure, item.at_most
    return (figure == LATENCY and at_most) or (figure == THROUGHPUT and not at_most)


def _limit_ns(run: FinishedRun, item: Requirement) -> float:
    if item.merit.figure == LATENCY:
        return item.limit / MS_PER_NS
    tokens = run.problem.facts(codes_of(run.evaluations[:1], len(run.problem.knobs)))[TOKENS]
    return float(tokens[0]) / item.limit * NS_PER_S
