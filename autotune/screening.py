"""The candidates of one batch: random legal designs, children of the front, and a short evolution on the model."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from autotune.goals import Goals, Judged, judge
from autotune.layout import Layout, distinct, keys
from autotune.learning import predict_cycles
from autotune.problem import Codes, Problem
from autotune.proposals import children, composites
from autotune.sampling import stratified, uniform_legal
from costmodel.model import CostModel

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScreeningSettings:
    """How many designs each source proposes per batch; the model predicts all of them, in all up to 10,000."""

    random: int = 800
    children: int = 1200
    generations: int = 8
    generation_children: int = 1200
    hardware: int = 24
    donors: int = 48
    stratified: bool = True


DEFAULT_SCREENING = ScreeningSettings()


@dataclass(frozen=True, slots=True)
class Candidates:
    """Legal designs that were never evaluated, with predicted cycles and verdicts; `repeats` were dropped."""

    codes: Codes
    cycles: Floats
    judged: Judged
    repeats: int


def screen(
    problem: Problem,
    layout: Layout,
    model: CostModel,
    rng: np.random.Generator,
    front: Codes,
    donors: Codes,
    seen: set[bytes],
    settings: ScreeningSettings,
    goals: Goals,
) -> Candidates:
    """Propose and predict candidates; `front` are good designs to start from, `donors` legal ones to take from."""
    predict = partial(predict_cycles, problem, model)
    codes = distinct(np.concatenate(_first(problem, layout, predict, rng, front, donors, settings)))
    cycles = predict(codes)
    judged = judge(problem, goals, codes, problem.metrics(codes, cycles))
    for _ in range(settings.generations):
        known = set(keys(codes))
        young = children(problem, layout, rng, codes[judged.elite()], settings.generation_children)
        young = young[[key not in known for key in keys(young)]]
        if len(young) == 0:
            break
        young_cycles = predict(young)
        codes, cycles = np.concatenate([codes, young]), np.concatenate([cycles, young_cycles])
        judged = judged.joined(judge(problem, goals, young, problem.metrics(young, young_cycles)))
    fresh = np.array([key not in seen for key in keys(codes)], dtype=np.bool_)
    return Candidates(codes[fresh], cycles[fresh], judged.of(fresh), int((~fresh).sum()))


def _first(
    problem: Problem,
    layout: Layout,
    predict: Callable[[Codes], Floats],
    rng: np.random.Generator,
    front: Codes,
    donors: Codes,
    settings: ScreeningSettings,
) -> list[Codes]:
    """Return the front itself and what is proposed before anything is predicted, by source."""
    draw = stratified if settings.stratified else uniform_legal
    spread = draw(problem, layout, rng, settings.random, donors)
    hardware = np.concatenate([front, spread])[:, layout.hardware]
    picked = hardware[rng.integers(0, len(hardware), size=settings.hardware)]
    lent = np.concatenate([front, donors])
    lent = lent[rng.integers(0, len(lent), size=settings.donors)]
    best = composites(problem, layout, picked, lent, predict)
    return [front, spread, best, children(problem, layout, rng, front, settings.children)]
