"""Evolution on a learned model, as schedule tuners search: to compare with.

A population of random legal designs and of the best measured ones is mutated for a few generations, the model's verdict
deciding who survives; the best of the last generation are measured, a share of every batch being random. The model is
this project's, learning the cycles themselves; there are no bounds, no box, no hypervolume. After MetaSchedule (Shao et
al., NeurIPS 2022), with non-dominated sorting in place of its single cost.
"""

import numpy as np
from numpy.typing import NDArray

from autotune.goals import DEFAULT_GOALS, Goals, admit, judge, judge_evaluations
from autotune.layout import Layout, clean, distinct, keys, layout_of
from autotune.learning import codes_of, predict_cycles, rows_of
from autotune.pareto import nondominated
from autotune.problem import Codes, Evaluation, Problem
from autotune.proposals import mutate
from autotune.result import EvaluateBatch
from autotune.sampling import uniform_legal
from costmodel.model import ModelSettings, train

Floats = NDArray[np.float64]
POPULATION = 512
GENERATIONS = 4
BATCH = 20
RANDOM_SHARE = 0.05
MODEL = ModelSettings(residual=False)


def evolution(
    problem: Problem, budget: int, seed: int, evaluate_batch: EvaluateBatch, goals: Goals = DEFAULT_GOALS
) -> tuple[Evaluation, ...]:
    """Evaluate the baselines and random designs, then the best of an evolution per batch."""
    rng, layout, admitted = np.random.default_rng(seed), layout_of(problem), admit(problem, goals)
    baselines = clean(problem, problem.baselines())
    first = distinct(np.concatenate([baselines, uniform_legal(admitted, layout, rng, BATCH, baselines)]))
    found = list(evaluate_batch(first[: min(budget, BATCH + len(baselines))]))
    while found and len(found) < budget:
        proposed = _evolved(problem, admitted, goals, layout, rng, found, seed)
        batch = proposed[: min(BATCH, budget - len(found))]
        new = list(evaluate_batch(batch)) if len(batch) else []
        found += new
        if not new:
            break
    return tuple(found)


def _evolved(
    problem: Problem,
    admitted: Problem,
    goals: Goals,
    layout: Layout,
    rng: np.random.Generator,
    found: list[Evaluation],
    seed: int,
) -> Codes:
    """Return designs that were never measured, those that the model thinks best first, a few random ones among them."""
    model = train(rows_of(problem, found), seed, MODEL)
    measured = codes_of(found, len(layout.sizes))
    elite = measured[judge_evaluations(problem, goals, found).elite()]
    fresh = uniform_legal(admitted, layout, rng, POPULATION, elite)
    population = distinct(np.concatenate([elite, fresh]))[:POPULATION]
    for _ in range(GENERATIONS):
        parents = population[rng.integers(0, len(population), size=POPULATION)]
        pool = distinct(np.concatenate([population, clean(admitted, mutate(layout, rng, parents))]))
        judged = judge(problem, goals, pool, problem.metrics(pool, predict_cycles(problem, model, pool)))
        population = pool[_ranked(judged.objectives, judged.violations)][:POPULATION]
    seen = set(keys(measured))
    best = population[[key not in seen for key in keys(population)]]
    fresh = fresh[[key not in seen for key in keys(fresh)]]
    random = fresh[: max(1, round(RANDOM_SHARE * BATCH))]
    return distinct(np.concatenate([best[: BATCH - len(random)], random, best, fresh]))


def _ranked(objectives: Floats, violations: Floats) -> NDArray[np.int64]:
    """Return the rows in the order of their non-dominated layer, those that violate least first."""
    layer = np.zeros(len(objectives), dtype=np.int64)
    remaining = np.arange(len(objectives))
    for number in range(len(objectives)):
        front = nondominated(objectives[remaining])
        layer[remaining[front]] = number
        remaining = remaining[~front]
        if len(remaining) == 0:
            break
    return np.lexsort((layer, violations))
