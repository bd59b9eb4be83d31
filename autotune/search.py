"""The search: roofline front, first designs, then batches that the learned model expects to add most hypervolume.

Every decision depends only on the problem, the goals, the seed, the budget and the evaluations so far; limits are
counts. A run that is replayed over recorded evaluations therefore takes the same way and goes on where it was
interrupted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autotune.certificate import left_factor
from autotune.coverage import pairs_of
from autotune.enumerate import enumerate_legal
from autotune.feasibility import feasibility
from autotune.goals import DEFAULT_GOALS, Goals, admit, judge_evaluations
from autotune.hypervolume_box import fixed_box
from autotune.layout import Layout, clean, distinct, keys, layout_of
from autotune.learning import (
    Forecast,
    accuracies,
    codes_of,
    forecast,
    optimism,
    rows_of,
)
from autotune.pareto import Box, box_of, hypervolume, nondominated
from autotune.problem import Codes, Evaluation, Problem
from autotune.result import SILENT, BatchReport, EvaluateBatch, Observer, SearchResult, StopReason
from autotune.roofline import (
    NO_ROOFLINE,
    RooflineFront,
    fill,
    find_roofline_front,
    first_designs,
    judged_roofline,
)
from autotune.screening import Candidates, screen
from autotune.search_settings import DEFAULT_SEARCH, SearchSettings
from autotune.selection import Known, choose_batch
from costmodel.intervals import COVERAGE, RECENT_BATCHES, Interval, interval_of, next_level
from costmodel.lessons import NO_PRIOR, Prior
from costmodel.model import BOUNDS_ALONE, CostModel, Rows, merge, train

Floats = NDArray[np.float64]
BOUNDS_MISS = "even the lower bounds of all sampled designs miss a requirement"
NOTHING_LEGAL = "no legal design in the sample; see the reasons"


@dataclass(slots=True)
class _Run:
    """What a run knows so far; `admitted` is the problem without designs that are known to miss a requirement."""

    problem: Problem
    admitted: Problem
    goals: Goals
    layout: Layout
    budget: int
    seed: int
    evaluate_batch: EvaluateBatch
    observer: Observer
    settings: SearchSettings
    prior: Prior
    stop_within: float | None
    evaluations: list[Evaluation] = field(default_factory=list)
    batches: list[BatchReport] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)
    rows: dict[str, Rows] = field(default_factory=dict)
    bounds: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    seen: set[bytes] = field(default_factory=set)
    roofline: RooflineFront = NO_ROOFLINE
    box: Box | None = None
    settled: bool = False
    model: CostModel | None = None
    trained_at: int = -1
    level: float = COVERAGE
    carried: Codes | None = None
    repeats: int = 0

    def rng(self, stage: int) -> np.random.Generator:
        """Return the generator of one stage; each has its own, so that no stage shifts the draws of another."""
        return np.random.default_rng((self.seed, stage))


def search(
    problem: Problem,
    budget: int,
    seed: int,
    evaluate_batch: EvaluateBatch,
    observer: Observer = SILENT,
    settings: SearchSettings = DEFAULT_SEARCH,
    goals: Goals = DEFAULT_GOALS,
    prior: Prior = NO_PRIOR,
    stop_within: float | None = None,
) -> SearchResult:
    """Evaluate at most `budget` distinct legal designs, chosen to grow the Pareto front, and return all of them.

    The baselines aside, no design is evaluated that is known in closed form to miss a requirement, unless all do.
    `prior` is what earlier runs measured. With `stop_within` the search ends once no known bound is
    better than the front by more than this share.
    """
    admitted = admit(problem, goals)
    layout = layout_of(problem)
    run = _Run(problem, admitted, goals, layout, budget, seed, evaluate_batch, observer, settings, prior, stop_within)
    baselines = clean(problem, problem.baselines())
    observer.phase("roofline front")
    run.roofline, pool = _roofline_front(run, admitted, baselines)
    everything = enumerate_legal(admitted) if run.layout.designs <= settings.enumerable else None
    if goals.exact and not len(everything if everything is not None else clean(admitted, pool)):
        return _evaluate_nearest(run, baselines)
    if len(pool) == 0:
        return _result(run, StopReason.INFEASIBLE, NOTHING_LEGAL)
    if everything is not None and len(everything) <= budget:
        return _evaluate_everything(run, distinct(np.concatenate([baselines, everything])))
    if prior.rows and settings.learned:
        run.model = train({}, seed, settings.model, prior.rows)
    count = settings.first_count(budget, len(baselines), warm=run.model is not None)
    ends = settings.roofline.both_ends
    bounded = first_designs(run.roofline, baselines, round(count * settings.roofline_share), ends)
    first = fill(bounded, _promising(run, pool, count), pairs_of(run.layout), count)[:budget]
    if not _evaluate(run, first):
        return _result(run, StopReason.INTERRUPTED, "")
    return _improve(run, pool)


def _promising(run: _Run, pool: Codes, count: int) -> Codes:
    """Return the designs of the pool whose bounds miss no requirement, or the whole pool where they are too few."""
    if not run.goals.requirements:
        return pool
    kept = pool[judged_roofline(run.problem, run.goals, pool).feasible]
    return kept if len(kept) >= count else clean(run.admitted, pool)


def _roofline_front(run: _Run, problem: Problem, baselines: Codes) -> tuple[RooflineFront, Codes]:
    return find_roofline_front(problem, run.layout, run.rng(0), baselines, run.goals, run.settings.roofline)


def _evaluate_nearest(run: _Run, baselines: Codes) -> SearchResult:
    """Evaluate the baselines and those that miss least, where all sampled designs are known to miss a requirement."""
    run.roofline, pool = _roofline_front(run, run.problem, baselines)
    if len(pool) == 0:
        return _result(run, StopReason.INFEASIBLE, NOTHING_LEGAL)
    count = run.settings.first_count(run.budget, len(baselines))
    finished = _evaluate(run, distinct(np.concatenate([baselines, run.roofline.codes]))[:count])
    missed = ", ".join(str(item) for item in run.goals.exact)
    note = f"no design of the sample meets {missed}; those that miss least were simulated"
    return _result(run, StopReason.OUT_OF_REACH if finished else StopReason.INTERRUPTED, note if finished else "")


def _improve(run: _Run, pool: Codes) -> SearchResult:
    """Retrain, screen, choose and evaluate, batch by batch, until the budget is spent."""
    stage = 2
    while len(run.evaluations) < run.budget:
        if run.stop_within is not None and run.batches[-1].left_factor <= 1.0 + run.stop_within:
            return _result(run, StopReason.WITHIN, f"no known bound beats the front by more than {run.stop_within:.1%}")
        run.observer.phase("learning and screening")
        run.model = _trained(run)
        candidates = _screen(run, pool, run.rng(stage))
        if len(candidates.codes) == 0:
            return _result(run, StopReason.EXHAUSTED, "every proposal had been evaluated before")
        batch = _choose(run, candidates)
        if not _evaluate(run, batch):
            return _result(run, StopReason.INTERRUPTED, "")
        stage += 1
    return _result(run, StopReason.BUDGET, "" if run.roofline.reachable else BOUNDS_MISS)


def _trained(run: _Run) -> CostModel:
    """Return the model to predict with: the last one until the record has grown enough to be worth another."""
    if not run.settings.learned:
        return BOUNDS_ALONE
    grown = len(run.evaluations) >= run.trained_at * (1.0 + run.settings.retrain_growth)
    if run.model is not None and run.trained_at >= 0 and not grown:
        return run.model
    run.trained_at = len(run.evaluations)
    return train(run.rows, run.seed, run.settings.model, run.prior.rows)


def _evaluate_everything(run: _Run, designs: Codes) -> SearchResult:
    """Evaluate a space that the budget covers."""
    for start in range(0, len(designs), run.settings.late_batch):
        if not _evaluate(run, designs[start : start + run.settings.late_batch]):
            return _result(run, StopReason.INTERRUPTED, "")
    note = f"the space has only {len(designs)} legal designs, fewer than the budget of {run.budget}"
    return _result(run, StopReason.ENUMERATED, note)


def _screen(run: _Run, pool: Codes, rng: np.random.Generator) -> Candidates:
    assert run.model is not None
    codes = codes_of(run.evaluations, len(run.layout.sizes))
    front = codes[judge_evaluations(run.problem, run.goals, run.evaluations).elite()]
    start = front if run.carried is None else distinct(np.concatenate([front, run.carried]))
    candidates = screen(
        run.admitted, run.layout, run.model, rng, start, pool, run.seen, run.settings.screening, run.goals
    )
    # What the model thinks best but is not chosen now is where the next evolution starts.
    run.carried = candidates.codes[candidates.judged.elite()]
    run.repeats += candidates.repeats
    return candidates


def _choose(run: _Run, candidates: Candidates) -> Codes:
    assert run.box is not None
    codes = codes_of(run.evaluations, len(run.layout.sizes))
    factors = optimism(run.problem, run.forecasts[-RECENT_BATCHES:], run.prior.log_width)
    judged = judge_evaluations(run.problem, run.goals, run.evaluations)
    known = Known(codes, judged.objectives[judged.feasible], factors, run.box)
    count = run.settings.batch_count(run.budget, len(run.evaluations))
    explored = round(_explore_share(run) * count)
    return choose_batch(run.problem, run.layout, run.goals, known, candidates, count, explored)


def _explore_share(run: _Run) -> float:
    """Return the share of a batch that explores: more once batches chosen by prediction have stopped to gain."""
    volumes = [report.hypervolume for report in run.batches[-2:]]
    stalled = len(volumes) == 2 and volumes[1] - volumes[0] < run.settings.stalled_growth * volumes[0]
    return run.settings.stalled_share if stalled else run.settings.explore_share


def _evaluate(run: _Run, designs: Codes) -> bool:
    """Evaluate a batch, compare it with its prediction, learn it, report it; False when the user asked to stop."""
    new = list(run.evaluate_batch(designs))
    run.evaluations += new
    if len(new) < len(designs):
        return False
    run.seen.update(keys(designs))
    interval = None
    if run.model is not None:
        found = forecast(run.problem, run.model, new)
        recent = [known.latency_log_errors for known in run.forecasts[-RECENT_BATCHES:]]
        interval = interval_of(found.latency_log_errors, recent, run.level, run.prior.log_width)
        run.level = next_level(run.level, interval)
        run.forecasts.append(found)
    run.rows = merge(run.rows, rows_of(run.problem, new))
    bounded = judged_roofline(run.problem, run.goals, designs)
    known = run.bounds if len(run.bounds) else run.roofline.objectives
    bounds = np.concatenate([known, bounded.objectives[bounded.feasible]])
    run.bounds = bounds[nondominated(bounds)]
    if not run.settled:
        run.box, run.settled = fixed_box(run.problem, run.goals, run.roofline, run.evaluations)
    if not run.settings.roofline_box:
        run.box = _observed_box(run)
    _report(run, interval)
    return True


def _observed_box(run: _Run) -> Box:
    """Return the box of the front simulated so far, as a search without bounds has to take it."""
    judged = judge_evaluations(run.problem, run.goals, run.evaluations)
    return box_of(judged.objectives[judged.front()] if judged.feasible.any() else judged.objectives)


def _report(run: _Run, interval: Interval | None) -> None:
    assert run.box is not None
    judged = judge_evaluations(run.problem, run.goals, run.evaluations)
    feasible = judged.objectives[judged.feasible]
    best = (feasible if len(feasible) else judged.objectives).min(axis=0)
    shown = (merit.shown(best[column]) for column, merit in enumerate(run.goals.objectives))
    report = BatchReport(
        evaluated=len(run.evaluations),
        budget=run.budget,
        hypervolume=hypervolume(feasible, run.box),
        bound_hypervolume=hypervolume(run.bounds, run.box),
        best=tuple((float(value), merit.unit) for value, merit in zip(shown, run.goals.objectives, strict=True)),
        feasible=len(feasible),
        least_violation=float(judged.violations.min()),
        left_factor=left_factor(feasible, run.bounds),
        interval=interval,
        accuracy=accuracies(run.problem, run.forecasts[-1]) if run.forecasts else (),
    )
    run.batches.append(report)
    run.observer.batch_finished(report)


def _result(run: _Run, stop: StopReason, note: str) -> SearchResult:
    legality = feasibility(run.problem, run.layout, np.random.default_rng(run.seed))
    evaluations: Sequence[Evaluation] = run.evaluations
    return SearchResult(
        tuple(evaluations), tuple(run.batches), run.roofline, run.box, stop, note, run.repeats, legality, run.goals
    )
