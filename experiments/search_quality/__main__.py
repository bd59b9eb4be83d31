"""How near the search comes to the exact front of a space small enough to enumerate, beside other samplers.

    python -m experiments.search_quality --model llama --budget 500 --seeds 5
    python -m experiments.search_quality --problem moe --strategies ours,random --dump points

The exact front is proved once per problem and kept in a cache that names everything it depends on. Every strategy runs
to an equal number of simulations and, other samplers, again to the time that ours took, simulations included.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import optuna
import pandas as pd

from autotune.exit_codes import run_to_exit_code
from autotune.run_settings import RunSettings
from autotune.search import search
from autotune.training import lesson_of, prior_for
from configs.errors import UserError
from costmodel.lessons import NO_PRIOR, Prior
from experiments.arguments import require_from_one
from experiments.search_quality.compared import DEFAULT, EVERY, OURS, SAMPLERS, WARM
from experiments.search_quality.ground_truth import GroundTruth, Simulated
from experiments.search_quality.outcomes import Outcome, run
from experiments.search_quality.problems import NAMED, small_problem
from experiments.search_quality.tables import draw_growth, dump, summary

HEAD = ("hypervolume_mean", "hypervolume_min", "evaluations_to_99_percent")


def compare(truth: GroundTruth, strategies: Sequence[str], budget: int, seeds: int, prior: Prior) -> list[Outcome]:
    """Run every strategy with every seed, ours first; other samplers a second time to the time that ours took."""
    outcomes: list[Outcome] = []
    for seed in range(seeds):
        ours_s = None
        for name in sorted(strategies, key=lambda name: name != OURS):
            outcomes.append(run(truth, name, budget, seed, prior))
            _say(outcomes[-1])
            ours_s = outcomes[-1].seconds if name == OURS else ours_s
            if name in SAMPLERS and ours_s is not None:
                outcomes.append(run(truth, name, _most(truth, ours_s), seed, allowance_s=ours_s))
                _say(outcomes[-1])
    return outcomes


def _most(truth: GroundTruth, allowance_s: float) -> int:
    """Return how many evaluations fit into a time, were nothing thought."""
    return min(truth.proof.legal_designs, int(allowance_s / truth.proof.simulation_s) + 1)


def earlier_runs(truth: GroundTruth, settings: RunSettings, cache: Path, workers: int, budget: int) -> Prior:
    """Return what our search measured on the named problems of other models; their fronts need not be known."""
    lessons = []
    for named in NAMED.values():
        if named.settings.model != settings.model:
            with Simulated(small_problem(named.settings), cache, workers) as other:
                found = search(other.problem, budget, 0, other.evaluate)
                lessons.append(lesson_of(other.problem, found.evaluations))
    return prior_for(truth.problem, lessons, 0)


def main() -> None:
    """Run the comparison and print its table."""
    choice = _arguments()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    settings = _settings(choice)
    strategies = [name.strip() for name in choice.strategies.split(",")] if choice.strategies else list(DEFAULT)
    require_from_one(choice, "budget", "seeds", "workers")
    unknown = [name for name in strategies if name not in EVERY]
    if unknown:
        raise UserError(
            where="--strategies", expected=f"names among {', '.join(EVERY)}", found=unknown[0], way_out="give one"
        )
    with GroundTruth(small_problem(settings), choice.cache, choice.workers) as truth:
        warm = WARM in strategies
        prior = earlier_runs(truth, settings, choice.cache, choice.workers, choice.budget) if warm else NO_PRIOR
        outcomes = compare(truth, strategies, choice.budget, choice.seeds, prior)
        if choice.dump is not None:
            dump(truth, outcomes, choice.dump)
            summary(outcomes).to_csv(choice.dump / "summary.csv", index=False)
            draw_growth(outcomes, settings.scenario_text().rstrip(","), choice.dump)
        _print(truth, summary(outcomes), choice.json)


def _print(truth: GroundTruth, table: pd.DataFrame, as_json: bool) -> None:
    head = {"legal_designs": truth.proof.legal_designs, "front_points": len(truth.front)}
    if not as_json:
        print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in head.items()))
        print(table.to_string(index=False, float_format=lambda value: f"{value:.4f}"))
        return
    rows = json.loads(table.to_json(orient="records"))
    proof = {"simulation_s": truth.proof.simulation_s, "simulated_for_the_proof": truth.proof.simulated_for_the_proof}
    print(json.dumps(head | {name: rows[0][name] for name in HEAD} | proof | {"strategies": rows}))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", choices=sorted(NAMED), help="a named problem in place of the scenario below")
    parser.add_argument("--model", default="llama")
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--hardware", default="gddr6-aim")
    parser.add_argument("--weights", default="bf16")
    parser.add_argument("--kv", default="bf16")
    parser.add_argument("--space", choices=["small"], default="small", help="the space that is cut from the product's")
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--strategies", help=f"names with commas: {', '.join(EVERY)}")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path("runs/ground-truth"))
    parser.add_argument("--dump", type=Path, help="a folder for all points, the exact front, the table and the curves")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _settings(choice: argparse.Namespace) -> RunSettings:
    if choice.problem is not None:
        return NAMED[choice.problem].settings
    return RunSettings(
        choice.model,
        choice.hardware,
        batch=choice.batch,
        context=choice.context,
        devices="auto",
        weights=choice.weights,
        kv=choice.kv,
    )


def _say(outcome: Outcome) -> None:
    to_99 = outcome.evaluations_to(0.99)
    print(
        f"{outcome.strategy}, seed {outcome.seed}, equal {outcome.equal}: {outcome.hypervolume:.4f} after "
        f"{len(outcome.evaluations)}, 99 % after {to_99}, thinking {outcome.thinking_s:.1f} s",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    run_to_exit_code(main)
