"""What a search is for: objectives and requirements, and how designs are judged by them.

A design is feasible when it misses no requirement. Fronts hold feasible designs only; while there are none, the designs
that miss least go first. Requirements on figures that are known in closed form rule designs out before any simulation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.learning import codes_of, metrics_of
from autotune.merit import DEFAULT_OBJECTIVES, OBJECTIVES, Facts, Merit, known_metrics, project
from autotune.pareto import nondominated
from autotune.problem import HARDWARE_GROUP, Codes, Evaluation, Knob, Problem
from autotune.requirements import Requirement, known_figures, parse_requirement
from configs.device_mistakes import nearest
from configs.errors import UserError

Floats = NDArray[np.float64]
FEWEST_OBJECTIVES, MOST_OBJECTIVES = 2, 4
# As many designs start a search while none is known to be feasible.
NEAREST = 32


@dataclass(frozen=True, slots=True)
class Goals:
    """The objectives, all to be improved at once, and the requirements that a design has to meet."""

    objectives: tuple[Merit, ...] = DEFAULT_OBJECTIVES
    requirements: tuple[Requirement, ...] = ()

    @property
    def exact(self) -> tuple[Requirement, ...]:
        """The requirements that need no simulation."""
        return tuple(item for item in self.requirements if item.merit.exact)


DEFAULT_GOALS = Goals()


@dataclass(frozen=True, slots=True)
class Judged:
    """Minimised objectives (float[n, m]) of designs, and margins of requirements (float[n, r]), positive if missed."""

    objectives: Floats
    margins: Floats

    @property
    def violations(self) -> Floats:
        """The sum of the positive margins of each design, 0 for a feasible one: float[n]."""
        return violations_of(self.margins)

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which designs meet every requirement: bool[n]."""
        feasible: NDArray[np.bool_] = self.violations == 0.0
        return feasible

    def joined(self, other: "Judged") -> "Judged":
        """Return the verdicts on both lots of designs, in order."""
        return Judged(
            np.concatenate([self.objectives, other.objectives]), np.concatenate([self.margins, other.margins])
        )

    def of(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Judged":
        """Return the verdicts on some of the designs."""
        return Judged(self.objectives[rows], self.margins[rows])

    def front(self) -> NDArray[np.int64]:
        """Return the rows of the feasible designs that no other feasible one beats, in order."""
        rows = np.flatnonzero(self.feasible)
        return rows[nondominated(self.objectives[rows])]

    def elite(self) -> NDArray[np.int64]:
        """Return the rows to go on from: the front, or without a feasible design those that miss least, best first."""
        front = self.front()
        return front if len(front) else np.argsort(self.violations, kind="stable")[:NEAREST]


def violations_of(margins: Floats) -> Floats:
    """Return the sum of the positive margins of each design: float[n]."""
    total: Floats = np.maximum(margins, 0.0).sum(axis=1)
    return total


def goals_of(objectives: Sequence[str], requirements: Sequence[str], knobs: Sequence[Knob]) -> Goals:
    """Return the goals that names and texts stand for; raises UserError naming what is known."""
    for name in objectives:
        if name not in OBJECTIVES:
            raise UserError(
                where="--objectives",
                expected=f"some of {', '.join(OBJECTIVES)}",
                found=repr(name),
                way_out=nearest(name, OBJECTIVES) or "give names from this list with commas between them",
            )
    if len(set(objectives)) < len(objectives) or not FEWEST_OBJECTIVES <= len(objectives) <= MOST_OBJECTIVES:
        raise UserError(
            where="--objectives",
            expected=f"{FEWEST_OBJECTIVES} to {MOST_OBJECTIVES} different objectives",
            found=",".join(objectives) or "none",
            way_out=f"choose among {', '.join(OBJECTIVES)}",
        )
    figures = known_figures(knobs)
    return Goals(
        tuple(OBJECTIVES[name] for name in objectives),
        tuple(parse_requirement(text, figures) for text in dict.fromkeys(requirements)),
    )


def facts_of(problem: Problem, codes: Codes) -> Facts:
    """Return what is known of designs without simulating them, numeric hardware knobs included: float[n] each."""
    knobs = {
        knob.name: np.array(knob.values, dtype=np.float64)[codes[:, column]]
        for column, knob in enumerate(problem.knobs)
        if knob.group == HARDWARE_GROUP and all(isinstance(value, int) for value in knob.values)
    }
    return knobs | dict(problem.facts(codes))


def judge(problem: Problem, goals: Goals, codes: Codes, metrics: Floats) -> Judged:
    """Judge designs (int[n, k]) by their metrics, simulated or predicted (float[n, 3])."""
    facts = facts_of(problem, codes)
    return Judged(project(goals.objectives, metrics, facts), _margins(goals.requirements, metrics, facts))


def judge_bounds(problem: Problem, goals: Goals, codes: Codes, metrics: Floats) -> Judged:
    """Judge designs by lower bounds of their metrics: only what no simulation can satisfy is held against them."""
    facts = facts_of(problem, codes)
    bounded = tuple(item for item in goals.requirements if item.bounded)
    return Judged(project(goals.objectives, metrics, facts), _margins(bounded, metrics, facts))


def judge_evaluations(problem: Problem, goals: Goals, evaluations: Sequence[Evaluation]) -> Judged:
    """Judge simulated designs in their order."""
    return judge(problem, goals, codes_of(evaluations, len(problem.knobs)), metrics_of(evaluations))


def admit(problem: Problem, goals: Goals) -> Problem:
    """Return the problem with only those designs legal that miss no requirement known in closed form."""
    return _Admitted(problem, goals) if goals.exact else problem


def _margins(requirements: Sequence[Requirement], metrics: Floats, facts: Facts) -> Floats:
    columns = [item.margin(metrics, facts) for item in requirements]
    return np.stack(columns, axis=1) if columns else np.zeros((len(metrics), 0))


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A problem in which designs that are known to miss a requirement are not legal; all else is the problem's."""

    problem: Problem
    goals: Goals

    @property
    def knobs(self) -> tuple[Knob, ...]:
        return self.problem.knobs

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.problem.tasks

    def kind(self, task: str) -> str:
        return self.problem.kind(task)

    def legal(self, codes: Codes) -> NDArray[np.bool_]:
        legal = self.problem.legal(codes)
        rows = np.flatnonzero(legal)
        if len(rows):
            facts = facts_of(self.problem, codes[rows])
            legal[rows] = violations_of(_margins(self.goals.exact, known_metrics(facts), facts)) == 0.0
        return legal

    def reasons(self, codes: Codes) -> tuple[str, ...]:
        return self.problem.reasons(codes)

    def canonical(self, codes: Codes) -> Codes:
        return self.problem.canonical(codes)

    def feature_names(self, kind: str) -> tuple[str, ...]:
        return self.problem.feature_names(kind)

    def features(self, codes: Codes, task: str) -> Floats:
        return self.problem.features(codes, task)

    def bound_cycles(self, codes: Codes) -> Floats:
        return self.problem.bound_cycles(codes)

    def metrics(self, codes: Codes, cycles: Floats) -> Floats:
        return self.problem.metrics(codes, cycles)

    def facts(self, codes: Codes) -> Facts:
        return self.problem.facts(codes)

    def baselines(self) -> Codes:
        return self.problem.baselines()

    def evaluate(self, codes: Codes) -> Evaluation:
        return self.problem.evaluate(codes)
