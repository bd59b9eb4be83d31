"""The samplers that the search is compared with, at equal evaluations: random ones, Optuna's, and evolution on a model.

All begin with the problem's baselines. An illegal proposal of a sampler is repaired: the nearest legal design that is
found by redrawing more and more of its knobs is evaluated in its place, and its figures are told for the proposal. A
design that was evaluated before is told again without costing budget; after many of those in a row a random legal one
takes the proposal's place. Nothing is told as failed: that stalls the samplers. They are told the same objectives as
the search, and the margins of its requirements; what is known to miss one counts as illegal.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import numpy as np
import optuna
from optuna.samplers import BaseSampler, GPSampler, NSGAIIISampler, NSGAIISampler, QMCSampler, TPESampler

from autotune.evolution import evolution
from autotune.goals import DEFAULT_GOALS, Goals, admit, judge_evaluations
from autotune.layout import Layout, clean, keys, layout_of
from autotune.problem import Codes, Evaluation, Problem
from autotune.result import EvaluateBatch
from autotune.sampling import stratified, uniform
from autotune.study import distributions_of, tell_constraints

PATIENCE = 20
DRAWS = 1024


class Strategy(Protocol):
    """A search that is compared with ours: at most `budget` distinct designs, decided by the seed."""

    def __call__(
        self,
        problem: Problem,
        budget: int,
        seed: int,
        evaluate_batch: EvaluateBatch,
        goals: Goals = DEFAULT_GOALS,
    ) -> tuple[Evaluation, ...]:
        """Return the evaluations in the order proposed."""
        ...


def random_search(
    problem: Problem, budget: int, seed: int, evaluate_batch: EvaluateBatch, goals: Goals = DEFAULT_GOALS
) -> tuple[Evaluation, ...]:
    """Evaluate the baselines, then legal designs drawn uniformly."""
    rng = np.random.default_rng(seed)
    designs = clean(problem, problem.baselines())
    for drawn in _random_legal(admit(problem, goals), layout_of(problem), rng):
        if len(designs) >= budget:
            break
        taken = set(keys(designs))
        designs = np.concatenate([designs, drawn[[key not in taken for key in keys(drawn)]]])
    return tuple(evaluate_batch(designs[:budget]))


def optuna_search(
    make_sampler: Callable[[int], BaseSampler],
    problem: Problem,
    budget: int,
    seed: int,
    evaluate_batch: EvaluateBatch,
    goals: Goals = DEFAULT_GOALS,
) -> tuple[Evaluation, ...]:
    """Run one of Optuna's samplers by ask and tell until `budget` distinct legal designs are evaluated."""
    study = optuna.create_study(directions=["minimize"] * len(goals.objectives), sampler=make_sampler(seed))
    return _AskTell(problem, study, budget, seed, evaluate_batch, goals).run()


def _nsga2(population: int, seed: int) -> BaseSampler:
    return NSGAIISampler(population_size=population, seed=seed)


def _nsga3(seed: int) -> BaseSampler:
    return _quietly(lambda: NSGAIIISampler(population_size=50, seed=seed))


def _quietly(make: Callable[[], BaseSampler]) -> BaseSampler:
    """Make a sampler, or one with an option, that Optuna marks as experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return make()


def _tpe(seed: int) -> BaseSampler:
    return _quietly(lambda: TPESampler(seed=seed, multivariate=True))


def _quasi_random(seed: int) -> BaseSampler:
    return _quietly(lambda: QMCSampler(seed=seed, warn_independent_sampling=False))


def _gaussian_process(seed: int) -> BaseSampler:
    return _quietly(lambda: GPSampler(seed=seed))


STRATEGIES: dict[str, Strategy] = {
    "random": random_search,
    "nsga2-20": partial(optuna_search, partial(_nsga2, 20)),
    "nsga2-50": partial(optuna_search, partial(_nsga2, 50)),
    "nsga3": partial(optuna_search, _nsga3),
    "tpe": partial(optuna_search, _tpe),
    "quasi-random": partial(optuna_search, _quasi_random),
    "evolution": evolution,
}
# Not among them for its cost: it thinks for seconds per design, longer the more there are.
GAUSSIAN_PROCESS: Strategy = partial(optuna_search, _gaussian_process)


class _AskTell:
    """One run of an Optuna sampler."""

    def __init__(
        self,
        problem: Problem,
        study: optuna.Study,
        budget: int,
        seed: int,
        evaluate_batch: EvaluateBatch,
        goals: Goals,
    ) -> None:
        self._problem = admit(problem, goals)
        self._baselines = clean(problem, problem.baselines())
        self._first = set(keys(self._baselines))
        self._goals = goals
        self._study = study
        self._budget = budget
        self._evaluate_batch = evaluate_batch
        self._layout = layout_of(problem)
        self._rng = np.random.default_rng(seed)
        self._random = _random_legal(self._problem, self._layout, self._rng)
        self._distributions = distributions_of(problem.knobs)
        self._index = [{value: code for code, value in enumerate(knob.values)} for knob in problem.knobs]
        self._found: dict[bytes, Evaluation] = {}

    def run(self) -> tuple[Evaluation, ...]:
        for codes in self._baselines[: self._budget].tolist():
            pairs = zip(self._problem.knobs, codes, strict=True)
            self._study.enqueue_trial({knob.label: knob.values[code] for knob, code in pairs})
        repeats = 0
        while len(self._found) < self._budget:
            trial = self._study.ask(self._distributions)
            design = self._design(trial) if repeats < PATIENCE else self._unseen()
            if design is None:
                break
            repeats = repeats + 1 if keys(design)[0] in self._found else 0
            evaluation = self._evaluate(design)
            if evaluation is None:
                break
            judged = judge_evaluations(self._problem, self._goals, [evaluation])
            tell_constraints(trial, self._goals, judged.margins[0].tolist())
            self._study.tell(trial, judged.objectives[0].tolist())
        return tuple(self._found.values())

    def _evaluate(self, design: Codes) -> Evaluation | None:
        key = keys(design)[0]
        if key not in self._found:
            answer = self._evaluate_batch(design)
            if not answer:
                return None
            self._found[key] = answer[0]
        return self._found[key]

    def _design(self, trial: optuna.Trial) -> Codes | None:
        """Return the legal canonical design that stands for a proposal: int[1, k]."""
        pairs = zip(self._problem.knobs, self._index, strict=True)
        codes = np.array([[index[trial.params[knob.label]] for knob, index in pairs]], dtype=np.int64)
        legal = clean(self._problem, codes)
        if len(legal) == 0 and keys(codes)[0] in self._first:
            return codes
        return legal if len(legal) else self._repair(codes)

    def _repair(self, codes: Codes) -> Codes | None:
        for changed in range(1, codes.shape[1] + 1):
            variants = np.repeat(codes, 64, axis=0)
            redrawn = self._rng.random(variants.shape).argsort(axis=1) < changed
            variants = np.where(redrawn, uniform(self._layout, self._rng, 64), variants)
            legal = clean(self._problem, variants)
            if len(legal):
                return legal[:1]
        return self._unseen()

    def _unseen(self) -> Codes | None:
        for drawn in self._random:
            fresh = drawn[[key not in self._found for key in keys(drawn)]]
            if len(fresh):
                return fresh[:1]
        return None


def _random_legal(problem: Problem, layout: Layout, rng: np.random.Generator) -> Iterator[Codes]:
    """Yield lots of legal designs: uniform ones, or spread over the hardware where uniform draws are never legal."""
    baselines = clean(problem, problem.baselines())
    for _ in range(1000):
        drawn = clean(problem, uniform(layout, rng, DRAWS))
        if len(drawn) == 0:
            drawn = stratified(problem, layout, rng, DRAWS, baselines)
        if len(drawn) == 0:
            return
        yield drawn
