"""How near the search comes to the exact front of a space small enough to enumerate, beside other samplers.

    python -m experiments.search_quality --model llama --budget 500 --seeds 5

Every legal design is simulated once (kept in a cache file that names everything it depends on); each strategy then runs
on these exact evaluations at an equal number of simulations, and again with the wall-clock that ours took: a baseline
may go on until its own time, simulations included, is used up. Simulations served from the cache are charged the mean
time that one took when the space was enumerated.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import optuna
from numpy.typing import NDArray

from autotune.baselines import STRATEGIES
from autotune.decode_problem import DecodeProblem
from autotune.enumerate import enumerate_legal
from autotune.exit_codes import run_to_exit_code
from autotune.pareto import Box, box_of, hypervolume, nondominated
from autotune.problem import Codes, Evaluation
from autotune.problem_spec import ProblemSpec, problem_spec
from autotune.record import Record
from autotune.run_settings import RunSettings
from autotune.search import search
from autotune.space import space_of
from autotune.workers import Workers

# The small space: sizes of the hardware with one buffer size, how reductions and tokens are split; the rest is fixed.
SMALL_SPACE = (
    "hardware=base",
    "channels=8..64",
    "banks_per_channel=8..64",
    "row_bytes=1024..8192",
    "lanes=8..64",
    "column_bytes=16..128",
    "global_buffer_bytes=4096",
    "*.place=pim",
    "*.order=reload",
    "*.merged=1",
    "*.registers=32",
    "*.preactivate=1",
    "*.segment_columns=16",
    "*.reduction_split=1,4",
    "*.token_split=4,32",
    "*.context_segment_columns=16",
)
Floats = NDArray[np.float64]
OURS = "ours"
COMPARED = ("nsga2-20", "nsga2-50", "random")


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """All legal designs with their exact evaluations, the front's box, and what one simulation takes on one core."""

    by_codes: dict[tuple[int, ...], Evaluation]
    front: Codes
    box: Box
    exact_hypervolume: float
    simulation_s: float


class Replayed:
    """Serves exact evaluations and counts them; may stop when a time allowance is used up."""

    def __init__(self, truth: GroundTruth, allowance_s: float | None = None) -> None:
        """Start the clock."""
        self._truth, self._allowance_s = truth, allowance_s
        self._start = time.process_time()
        self.served: list[Evaluation] = []

    @property
    def spent_s(self) -> float:
        """Process time so far, with every evaluation charged as if it had been simulated."""
        return time.process_time() - self._start + len(self.served) * self._truth.simulation_s

    def __call__(self, designs: Codes) -> Sequence[Evaluation]:
        """Serve a batch; fewer than asked for once the allowance is used up."""
        answers = []
        for codes in designs.tolist():
            if self._allowance_s is not None and self.spent_s > self._allowance_s:
                break
            answers.append(self._truth.by_codes[tuple(codes)])
            self.served.append(answers[-1])
        return answers


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of one strategy: hypervolume as a fraction of the exact front's, and evaluations to 99 % of it."""

    strategy: str
    seed: int
    equal: str
    hypervolume: float
    evaluations: int
    to_99_percent: int | None
    seconds: float


def small_space(settings: RunSettings) -> ProblemSpec:
    """Return the problem of the small space; as many vectors as possible share an open row."""
    spec = problem_spec(settings)
    knobs = space_of(spec.workload.schedulables, {}, spec.base).knobs
    reuse: dict[str, tuple[int | str, ...]] = {
        knob.label: knob.values[-1:] for knob in knobs if knob.name in ("score_reuse", "context_reuse", "reuse")
    }
    return replace(spec, restrictions={**spec.restrictions, **reuse})


def ground_truth(spec: ProblemSpec, cache: Path, workers: int) -> GroundTruth:
    """Simulate every legal design of the space, or load what was simulated before."""
    problem = spec()
    designs = enumerate_legal(problem)
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{_fingerprint(spec, problem)}.jsonl"
    print(f"{len(designs)} legal designs; exact evaluations in {path}")
    record = Record(path)
    missing = designs[[record.find(tuple(codes)) is None for codes in designs.tolist()]]

    def keep(evaluation: Evaluation) -> None:
        record.append(evaluation)

    with Workers(spec, workers) as pool:
        for start in range(0, len(missing), 500):
            pool.evaluate(missing[start : start + 500], keep)
            print(f"  {min(start + 500, len(missing))}/{len(missing)} simulated", flush=True)
    by_codes = {evaluation.codes: evaluation for evaluation in record.evaluations}
    record.close()
    objectives = np.array([by_codes[tuple(codes)].metrics for codes in designs.tolist()])
    on_front = nondominated(objectives)
    box = box_of(objectives[on_front])
    return GroundTruth(
        by_codes, designs[on_front], box, hypervolume(objectives[on_front], box), _simulation_s(problem, designs)
    )


def _simulation_s(problem: DecodeProblem, designs: Codes) -> float:
    """Return the mean process time of one evaluation, measured warm on designs spread over the space."""
    sample = designs[:: max(1, len(designs) // 20)]
    for codes in sample[:2]:
        problem.evaluate(codes)
    start = time.process_time()
    for codes in sample:
        problem.evaluate(codes)
    return (time.process_time() - start) / len(sample)


def _fingerprint(spec: ProblemSpec, problem: DecodeProblem) -> str:
    """Return a name of everything the evaluations depend on."""
    return hashlib.sha256(repr((spec.identity(), spec.devices, problem.knobs)).encode()).hexdigest()[:16]


def run_ours(problem: DecodeProblem, truth: GroundTruth, budget: int, seed: int) -> tuple[Outcome, float]:
    """Run our search once; return its outcome and what it took."""
    served = Replayed(truth)
    search(problem, budget, seed, served)
    return _outcome(OURS, seed, "simulations", truth, served), served.spent_s


def run_compared(
    problem: DecodeProblem, truth: GroundTruth, budget: int, seed: int, allowance_s: float
) -> Iterable[Outcome]:
    """Run every other sampler twice: to the same number of simulations, and to the same time."""
    for name in COMPARED:
        served = Replayed(truth)
        STRATEGIES[name](problem, budget, seed, served)
        yield _outcome(name, seed, "simulations", truth, served)
        timed = Replayed(truth, allowance_s)
        STRATEGIES[name](problem, len(truth.by_codes), seed, timed)
        yield _outcome(name, seed, "time", truth, timed)


def _outcome(name: str, seed: int, equal: str, truth: GroundTruth, served: Replayed) -> Outcome:
    objectives = np.array([evaluation.metrics for evaluation in served.served])
    share = hypervolume(objectives, truth.box) / truth.exact_hypervolume
    return Outcome(name, seed, equal, share, len(objectives), _evaluations_to(objectives, truth, 0.99), served.spent_s)


def _evaluations_to(objectives: Floats, truth: GroundTruth, share: float) -> int | None:
    """Return after how many evaluations a share of the exact hypervolume was reached, by bisection; None if never."""
    goal = share * truth.exact_hypervolume
    if hypervolume(objectives, truth.box) < goal:
        return None
    low, high = 1, len(objectives)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if hypervolume(objectives[:middle], truth.box) >= goal else (middle + 1, high)
    return low


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """Return one row per strategy and kind of equality."""
    rows: list[dict[str, object]] = []
    for name, equal in dict.fromkeys((outcome.strategy, outcome.equal) for outcome in outcomes):
        mine = [outcome for outcome in outcomes if (outcome.strategy, outcome.equal) == (name, equal)]
        reached = [outcome.to_99_percent for outcome in mine if outcome.to_99_percent is not None]
        rows.append(
            {
                "strategy": name,
                "equal": equal,
                "hypervolume_mean": float(np.mean([outcome.hypervolume for outcome in mine])),
                "hypervolume_min": min(outcome.hypervolume for outcome in mine),
                "evaluations_mean": float(np.mean([outcome.evaluations for outcome in mine])),
                "evaluations_to_99_percent": float(np.mean(reached)) if len(reached) == len(mine) else None,
                "seconds_mean": float(np.mean([outcome.seconds for outcome in mine])),
            }
        )
    return rows


def main() -> None:
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama")
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--hardware", default="gddr6-aim")
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path("runs/ground-truth"))
    parser.add_argument("--json", action="store_true")
    choice = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    settings = RunSettings(
        choice.model, choice.hardware, context=choice.context, devices="auto", restrictions=SMALL_SPACE
    )
    spec = small_space(settings)
    truth = ground_truth(spec, choice.cache, choice.workers)
    problem = spec()
    outcomes: list[Outcome] = []
    for seed in range(choice.seeds):
        ours, seconds = run_ours(problem, truth, choice.budget, seed)
        outcomes += [ours, *run_compared(problem, truth, choice.budget, seed, seconds)]
    rows = summary(outcomes)
    head = {"legal_designs": len(truth.by_codes), "front_points": len(truth.front), "simulation_s": truth.simulation_s}
    if choice.json:
        print(json.dumps({**head, **{k: v for k, v in rows[0].items() if k != "strategy"}, "strategies": rows}))
        return
    print(", ".join(f"{name} {value:.4g}" for name, value in head.items()))
    for row in rows:
        print("  ".join(f"{v:.4f}" if isinstance(v, float) else f"{v!s:>11}" for v in row.values()))


if __name__ == "__main__":
    run_to_exit_code(main)
