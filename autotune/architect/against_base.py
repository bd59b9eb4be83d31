"""Which devices beat the base device at equal capacity and average power, and whether they do at every constant.

The best designs that do so at nominal constants are simulated again on devices that the laws make at low and at high
constants, beside the best design of the base device, which is the same in every case; their energies are those of
typical currents at the same end of their band.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.decode_problem import DecodeProblem
from autotune.evaluation import mean_energy_lines
from autotune.finished import FinishedRun, best_on_base
from autotune.front_gap import bounds_front
from autotune.pareto import nondominated
from autotune.problem import CAPACITY, Evaluation
from autotune.system_energy import HOST_LINE, total_pj
from compiler.lowering import System, lower_steps
from configs.device import Basis
from configs.errors import UserError
from configs.laws import CASES, Case
from simulator.energy import on_basis
from simulator.power import W_PER_PJ_PER_NS
from simulator.timeline import StepSimulator

MOST_CHECKED = 6
ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class AtCase:
    """A design over the base device's best one, both at one case: latency, energy, average power and area as ratios."""

    case: Case
    latency_ratio: float
    energy_ratio: float
    power_ratio: float
    area_ratio: float

    @property
    def dominates(self) -> bool:
        """Whether the design is faster and takes less energy, at no more power."""
        return max(self.latency_ratio, self.energy_ratio) < 1 and self.power_ratio <= ROUNDING


@dataclass(frozen=True, slots=True)
class Rival:
    """A point that beats the base device at nominal constants, and what it is at each case; not built at some: none."""

    point: int
    cases: tuple[AtCase, ...]

    @property
    def always(self) -> bool:
        """Whether it beats the base device at low, nominal and high constants alike."""
        return len(self.cases) == len(CASES) and all(item.dominates for item in self.cases)


@dataclass(frozen=True, slots=True)
class AgainstBase:
    """The base device's best point with its power, how many points beat it, and those that were checked at all cases.

    `possible` lower bounds of sampled designs are below the base point's latency and energy: with none, no sampled
    design can beat it.
    """

    base_point: int
    base_power_w: float
    base_capacity_gib: float
    beating: int
    rivals: tuple[Rival, ...]
    possible: int


def against_base(run: FinishedRun) -> AgainstBase | None:
    """Compare every point with the best of the base device; None where that was not simulated."""
    base = best_on_base(run)
    if base is None:
        return None
    points = _beating(run, base)
    own = run.evaluations[base]
    checked = sorted(_best_of(run, points), key=lambda point: run.evaluations[point].latency_ns)[:MOST_CHECKED]
    at_base = {case: _figures(run.problem, own.codes, case) for case in CASES} if checked else {}
    bounds = bounds_front(run)
    bounded = run.goals.objectives[0].objective == "latency" and run.goals.objectives[1].objective == "energy"
    possible = int((bounds[:, :2] < np.array([own.latency_ns, own.energy_pj])).all(axis=1).sum()) if bounded else 0
    return AgainstBase(
        base_point=base,
        base_power_w=own.energy_pj / own.latency_ns * W_PER_PJ_PER_NS,
        base_capacity_gib=float(_capacities(run)[base]),
        beating=len(points),
        rivals=tuple(Rival(point, tuple(_ratios(run, point, at_base))) for point in checked),
        possible=possible,
    )


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


def _ratios(run: FinishedRun, point: int, at_base: dict[Case, tuple[float, float, float]]) -> list[AtCase]:
    found = []
    for case in CASES:
        try:
            latency_ns, energy_pj, area = _figures(run.problem, run.evaluations[point].codes, case)
        except UserError:
            continue
        base_ns, base_pj, base_area = at_base[case]
        power = energy_pj / latency_ns / (base_pj / base_ns)
        found.append(AtCase(case, latency_ns / base_ns, energy_pj / base_pj, power, area / base_area))
    return found


def _figures(problem: DecodeProblem, codes: Sequence[int], case: Case) -> tuple[float, float, float]:
    """Return latency, typical energy and area of a design whose device has been made at a case of the laws."""
    scenario, design = problem.scenario, np.array(codes, dtype=np.int64)
    device = scenario.candidates.device(design, case)
    system, simulator = System(device, scenario.devices), StepSimulator(device)
    steps = lower_steps(scenario.workload, problem.space.schedules(design), system, scenario.uniform_loads)
    reports = [simulator.run(step) for step in steps]
    latency_ns = float(np.mean([device.nanoseconds(report.latency_cycles) for report in reports]))
    lines = mean_energy_lines(scenario, on_basis(device, Basis.TYPICAL, case), reports)
    area = float(scenario.candidates.area_mm2(design[None, :], case)[0])
    return latency_ns, total_pj(lines), area


def against_lines(found: AgainstBase | None) -> Iterator[str]:
    """Yield the comparison as sentences, each with its points."""
    if found is None:
        return
    terms = f"at {found.base_capacity_gib:.3g} GiB and no more than its {found.base_power_w:.3g} W on average"
    if not found.beating:
        proof = (
            "by their lower bounds no sampled design can"
            if found.possible == 0
            else f"the lower bounds of {found.possible} sampled designs leave it possible, power aside"
        )
        best = f"point {found.base_point}, the base device's best,"
        yield f"No simulated design is faster than {best} with less energy {terms}; {proof}."
        return
    yield (
        f"{found.beating} simulated designs are faster than point {found.base_point}, the base device's best, and take "
        f"less energy, with the host's no more, {terms}."
    )
    for rival in found.rivals:
        cases = "; ".join(
            f"{item.case} constants: {item.latency_ratio:.3f} of its latency, {item.energy_ratio:.3f} of its energy, "
            f"{item.power_ratio:.3f} of its power, {item.area_ratio:.2f} of its area"
            for item in rival.cases
        )
        verdict = "does so at low, nominal and high constants alike"
        if not rival.always:
            verdict = "does not do so at all constants"
        yield f"Point {rival.point} {verdict} ({cases})."
