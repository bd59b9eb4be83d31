"""The search: roofline front, first designs, then batches that the learned model expects to add most hypervolume.

Every decision depends only on the problem, the seed, the budget and the evaluations so far; limits are counts. A run
that is replayed over recorded evaluations therefore takes the same way and goes on where it was interrupted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autotune.coverage import pairs_of
from autotune.enumerate import enumerate_legal
from autotune.feasibility import feasibility
from autotune.layout import Layout, clean, distinct, keys, layout_of
from autotune.learning import Forecast, accuracies, codes_of, forecast, merge, objectives_of, optimism, rows_of
from autotune.pareto import Box, box_of, hypervolume, nondominated
from autotune.problem import Codes, Evaluation, Problem
from autotune.result import SILENT, BatchReport, EvaluateBatch, Observer, SearchResult, StopReason
from autotune.roofline import NO_ROOFLINE, RooflineFront, fill, find_roofline_front, first_designs
from autotune.screening import DEFAULT_SCREENING, Candidates, ScreeningSettings, screen
from autotune.selection import Known, choose_batch
from costmodel.model import DEFAULT_MODEL, CostModel, ModelSettings, Rows, train

Floats = NDArray[np.float64]
RECENT_BATCHES = 3


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Sizes of the stages; small budgets shrink the first designs and the batches.

    Most of the first designs come from the roofline front; the rest covers pairs of knob values, so that no corner that
    is rarely legal stays unknown to the model. A batch explores more when the one before grew the hypervolume little.
    """

    first: int = 40
    batch: int = 10
    late_batch: int = 20
    late_after: int = 140
    roofline_share: float = 0.75
    explore_share: float = 0.1
    stalled_share: float = 0.5
    stalled_growth: float = 1e-3
    enumerable: int = 1 << 18
    screening: ScreeningSettings = DEFAULT_SCREENING
    model: ModelSettings = DEFAULT_MODEL

    def first_count(self, budget: int, baselines: int) -> int:
        """Return how many designs are evaluated before the model has a say."""
        return min(budget, max(min(self.first, budget * 2 // 5), baselines + 3))

    def batch_count(self, budget: int, evaluated: int) -> int:
        """Return the size of the next batch."""
        early = max(4, min(self.batch, budget // 10))
        wanted = self.late_batch if evaluated >= self.late_after else early
        return min(wanted, budget - evaluated)


DEFAULT_SEARCH = SearchSettings()


@dataclass(slots=True)
class _Run:
    """What a run knows so far."""

    problem: Problem
    layout: Layout
    budget: int
    seed: int
    evaluate_batch: EvaluateBatch
    observer: Observer
    settings: SearchSettings
    evaluations: list[Evaluation] = field(default_factory=list)
    batches: list[BatchReport] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)
    rows: dict[str, Rows] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)
    roofline: RooflineFront = NO_ROOFLINE
    box: Box | None = None
    model: CostModel | None = None
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
) -> SearchResult:
    """Evaluate at most `budget` distinct legal designs, chosen to grow the Pareto front, and return all of them."""
    run = _Run(problem, layout_of(problem), budget, seed, evaluate_batch, observer, settings)
    baselines = clean(problem, problem.baselines())
    observer.phase("roofline front")
    run.roofline, pool = find_roofline_front(problem, run.layout, run.rng(0), baselines)
    if len(pool) == 0:
        return _result(run, StopReason.INFEASIBLE, "no legal design in the sample; see the reasons")
    everything = enumerate_legal(problem) if run.layout.designs <= settings.enumerable else None
    if everything is not None and len(everything) <= budget:
        return _evaluate_everything(run, distinct(np.concatenate([baselines, everything])))
    count = settings.first_count(budget, len(baselines))
    bounded = first_designs(run.roofline, baselines, round(count * settings.roofline_share))
    first = fill(bounded, pool, pairs_of(run.layout), count)[:budget]
    if not _evaluate(run, first):
        return _result(run, StopReason.INTERRUPTED, "")
    return _improve(run, pool)


def _improve(run: _Run, pool: Codes) -> SearchResult:
    """Retrain, screen, choose and evaluate, batch by batch, until the budget is spent."""
    stage = 2
    while len(run.evaluations) < run.budget:
        run.observer.phase("learning and screening")
        run.model = train(run.rows, run.seed, run.settings.model)
        candidates = _screen(run, pool, run.rng(stage))
        if len(candidates.codes) == 0:
            return _result(run, StopReason.EXHAUSTED, "every proposal had been evaluated before")
        batch = _choose(run, candidates)
        if not _evaluate(run, batch):
            return _result(run, StopReason.INTERRUPTED, "")
        stage += 1
    return _result(run, StopReason.BUDGET, "")


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
    front = codes[nondominated(objectives_of(run.evaluations))]
    start = front if run.carried is None else distinct(np.concatenate([front, run.carried]))
    candidates = screen(run.problem, run.layout, run.model, rng, start, pool, run.seen, run.settings.screening)
    # What the model thinks best but is not chosen now is where the next evolution starts.
    run.carried = candidates.codes[nondominated(candidates.objectives)]
    run.repeats += candidates.repeats
    return candidates


def _choose(run: _Run, candidates: Candidates) -> Codes:
    assert run.box is not None
    codes = codes_of(run.evaluations, len(run.layout.sizes))
    factors = optimism(run.problem, run.forecasts[-RECENT_BATCHES:])
    known = Known(codes, objectives_of(run.evaluations), factors, run.box)
    count = run.settings.batch_count(run.budget, len(run.evaluations))
    explored = round(_explore_share(run) * count)
    return choose_batch(run.problem, run.layout, known, candidates, count, explored)


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
    if run.model is not None:
        run.forecasts.append(forecast(run.problem, run.model, new))
    run.rows = merge(run.rows, rows_of(run.problem, new))
    if run.box is None:
        run.box = _fixed_box(run)
    _report(run)
    return True


def _fixed_box(run: _Run) -> Box:
    """Return the box of the roofline front, stretched to the first designs' front: both contain the far ends."""
    measured = objectives_of(run.evaluations)
    nadir = np.maximum(run.roofline.objectives.max(axis=0), measured[nondominated(measured)].max(axis=0))
    return Box(box_of(run.roofline.objectives).ideal, tuple(nadir.tolist()))


def _report(run: _Run) -> None:
    assert run.box is not None
    objectives = objectives_of(run.evaluations)
    latency_ns, energy_pj, area_mm2 = objectives.min(axis=0).tolist()
    report = BatchReport(
        evaluated=len(run.evaluations),
        budget=run.budget,
        hypervolume=hypervolume(objectives, run.box),
        bound_hypervolume=hypervolume(run.roofline.objectives, run.box),
        best=(latency_ns, energy_pj, area_mm2),
        accuracy=accuracies(run.problem, run.forecasts[-1]) if run.forecasts else (),
    )
    run.batches.append(report)
    run.observer.batch_finished(report)


def _result(run: _Run, stop: StopReason, note: str) -> SearchResult:
    legality = feasibility(run.problem, run.layout, np.random.default_rng(run.seed))
    evaluations: Sequence[Evaluation] = run.evaluations
    return SearchResult(
        tuple(evaluations), tuple(run.batches), run.roofline, run.box, stop, note, run.repeats, legality
    )
