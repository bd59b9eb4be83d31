"""Which devices beat the base device at equal capacity and average power, and whether they do at other constants.

The best designs that do so are simulated again on devices that the laws make at low and at high constants, and at the
adverse ones, which take for every law what is worst for the device; beside them the best design of the base device,
which is the same in every case. All of this is with typical currents, at the end of their band that the case names.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.decode_problem import DecodeProblem
from autotune.evaluation import fastest_pacing, mean_energy_lines
from autotune.finished import FinishedRun, best_on_base, changed_knobs
from autotune.pareto import nondominated
from autotune.problem import CAPACITY, Evaluation
from autotune.roofline import roofline
from autotune.system_energy import HOST_LINE, total_pj
from compiler.lowering import System, lower_steps
from configs.device import Basis
from configs.errors import UserError
from configs.knobs import HARDWARE_KNOBS
from configs.laws import LAW_CASES, Case, LawCase
from simulator.energy import on_basis
from simulator.power import W_PER_PJ_PER_NS
from simulator.timeline import StepSimulator

MOST_CHECKED = 6
ROUNDING = 1 + 1e-9
# The end of the band of typical currents at each case of the laws.
CURRENTS: dict[LawCase, Case] = {"low": "low", "nominal": "nominal", "high": "high", "adverse": "nominal"}


@dataclass(frozen=True, slots=True)
class AtCase:
    """A design over the base device's best one, both at one case, as ratios; the last is energy with the host's."""

    case: LawCase
    latency_ratio: float
    energy_ratio: float
    power_ratio: float
    area_ratio: float
    energy_with_host_ratio: float
    dominates: bool


@dataclass(frozen=True, slots=True)
class Rival:
    """A point that beats the base device, and what it is at each case; a device that cannot be built there has none.

    `always` says whether it beats the base device at every case. `costless` are the knobs that differ from the base
    device's and have something that no law prices.
    """

    point: int
    cases: tuple[AtCase, ...]
    always: bool
    costless: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AgainstBase:
    """The base device's best point with its power, how many points beat it, and those that were checked at all cases.

    Of `bounded` designs, evaluated or on the sampled roofline front, `possible` have lower bounds of latency and energy
    below the base point's: without any, none of them can beat it.
    """

    base_point: int
    base_power_w: float
    base_capacity_gib: float
    beating: int
    rivals: tuple[Rival, ...]
    bounded: int
    possible: int


@dataclass(frozen=True, slots=True)
class _Figures:
    """Latency, typical energy, that of the host, and area of a design at one case."""

    latency_ns: float
    energy_pj: float
    host_pj: float
    area_mm2: float


def against_base(run: FinishedRun) -> AgainstBase | None:
    """Compare every point with the best of the base device; None where that was not simulated."""
    base = best_on_base(run)
    if base is None:
        return None
    points, own = _beating(run, base), run.evaluations[base]
    checked = sorted(_best_of(run, points), key=lambda point: run.evaluations[point].latency_ns)[:MOST_CHECKED]
    at_base = {case: _figures(run.problem, own.codes, case) for case in LAW_CASES} if checked else {}
    bounds = _bounds(run)
    return AgainstBase(
        base_point=base,
        base_power_w=own.energy_pj / own.latency_ns * W_PER_PJ_PER_NS,
        base_capacity_gib=float(_capacities(run)[base]),
        beating=len(points),
        rivals=tuple(_rival(run, point, at_base) for point in checked),
        bounded=len(bounds),
        possible=int((bounds < np.array([own.latency_ns, own.energy_pj])).all(axis=1).sum()),
    )


def _bounds(run: FinishedRun) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the lower bounds of latency and energy of every design that they are known of: float[n, 2]."""
    codes = np.array([item.codes for item in run.evaluations], dtype=np.int64)
    sampled = run.result.roofline.codes
    if len(sampled):
        codes = np.unique(np.concatenate([codes, sampled]), axis=0)
    return roofline(run.problem, codes)[:, :2]


def _rival(run: FinishedRun, point: int, at_base: dict[LawCase, _Figures]) -> Rival:
    cases = tuple(_ratios(run, point, at_base))
    changed = {name for name, _ in changed_knobs(run, point)}
    costless = tuple(knob.name for knob in HARDWARE_KNOBS if knob.not_modelled and knob.name in changed)
    always = len(cases) == len(LAW_CASES) and all(item.dominates for item in cases)
    return Rival(point, cases, always, costless)


def _beating(run: FinishedRun, base: int) -> list[int]:
    """Return the points that are better than the base point in latency and energy, at its capacity and power.

    What takes less energy only because the host does more does not count: with the host's it takes no more either.
    """
    capacities, own = _capacities(run), run.evaluations[base]
    power, whole = own.energy_pj / own.latency_ns, _with_host(own)
    return [
        point
        for point, item in enumerate(run.evaluations)
        if item.latency_ns < own.latency_ns
        and item.energy_pj < own.energy_pj
        and _with_host(item) <= whole
        and item.energy_pj / item.latency_ns <= power * ROUNDING
        and capacities[point] >= capacities[base]
    ]


def _with_host(item: Evaluation) -> float:
    return item.energy_pj + dict(item.details).get(HOST_LINE, 0.0)


def _best_of(run: FinishedRun, points: Sequence[int]) -> list[int]:
    if not points:
        return []
    figures = np.array([(run.evaluations[point].latency_ns, run.evaluations[point].energy_pj) for point in points])
    return [points[row] for row in np.flatnonzero(nondominated(figures)).tolist()]


def _capacities(run: FinishedRun) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    codes = np.array([item.codes for item in run.evaluations], dtype=np.int64)
    return run.problem.facts(codes)[CAPACITY]


def _ratios(run: FinishedRun, point: int, at_base: dict[LawCase, _Figures]) -> list[AtCase]:
    found = []
    for case in LAW_CASES:
        try:
            own, base = _figures(run.problem, run.evaluations[point].codes, case), at_base[case]
        except UserError:
            continue
        latency, energy = own.latency_ns / base.latency_ns, own.energy_pj / base.energy_pj
        whole = (own.energy_pj + own.host_pj) / (base.energy_pj + base.host_pj)
        better = max(latency, energy) < 1 and whole <= ROUNDING and energy / latency <= ROUNDING
        area = own.area_mm2 / base.area_mm2
        found.append(AtCase(case, latency, energy, energy / latency, area, whole, better))
    return found


def _figures(problem: DecodeProblem, codes: Sequence[int], case: LawCase) -> _Figures:
    """Simulate a design whose device has been made at a case of the laws, transfers paced as in an evaluation."""
    scenario, design = problem.scenario, np.array(codes, dtype=np.int64)
    device = scenario.candidates.device(design, case)
    system, simulator = System(device, scenario.devices), StepSimulator(device)
    steps = lower_steps(scenario.workload, problem.space.schedules(design), system, scenario.uniform_loads)
    reports = [fastest_pacing(simulator, step, problem.latency_floors(design)) for step in steps]
    lines = mean_energy_lines(scenario, on_basis(device, Basis.TYPICAL, CURRENTS[case]), reports)
    return _Figures(
        latency_ns=float(np.mean([device.nanoseconds(report.latency_cycles) for report in reports])),
        energy_pj=total_pj(lines),
        host_pj=lines.get(HOST_LINE, 0.0),
        area_mm2=float(scenario.candidates.area_mm2(design[None, :], case)[0]),
    )
