"""How well the cost model tells of devices that it has never seen: every device held out whole, with all its models.

    python -m experiments.unseen_devices [--designs 300] [--json]

Random legal designs of the whole space, spread over the hardware, are simulated on each device; a model of the rows of
all other devices predicts them. Every task of a scenario is judged by itself, as only designs of one task compete.
Intervals come from the errors on the other devices, each held out in turn (covered), and then follow the errors on the
device batch by batch, as those of a run do (followed). Simulations are kept and not repeated.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from autotune.exit_codes import run_to_exit_code
from autotune.layout import layout_of
from autotune.problem_spec import problem_spec
from autotune.run_settings import RunSettings
from autotune.sampling import stratified
from autotune.training import lesson_of
from costmodel.lessons import HeldOut, Lesson, held_out
from experiments.arguments import require_from_one
from experiments.search_quality.ground_truth import Simulated

SCENARIOS = (
    RunSettings("llama", "gddr6-aim", context=4096, devices="auto"),
    RunSettings("qwen3-8b", "gddr6-aim", context=32768, devices="auto"),
    RunSettings("mistral-7b", "attacc", context=8192, devices="auto"),
    RunSettings("llama", "attacc", context=2048, devices="auto"),
    RunSettings("llama-2-7b", "hbm-pim-like", context=2048, devices="auto"),
    RunSettings("qwen3-8b", "hbm-pim-like", context=8192, devices="auto"),
)


def lessons_of(designs: int, seed: int, cache: Path, workers: int) -> Iterator[Lesson]:
    """Yield what random designs of every scenario teach."""
    for settings in SCENARIOS:
        with Simulated(problem_spec(settings), cache, workers) as known:
            problem, rng = known.problem, np.random.default_rng(seed)
            drawn = stratified(problem, layout_of(problem), rng, 2 * designs, problem.baselines())
            found = known.evaluate(drawn[rng.permutation(len(drawn))[:designs]])
        print(f"{settings.scenario_text()} {len(found)} designs", file=sys.stderr, flush=True)
        yield lesson_of(problem, found)


def table(found: tuple[HeldOut, ...]) -> pd.DataFrame:
    """Return one row per lesson: the learned model, beside it the bounds alone."""
    return pd.DataFrame([_row(item) for item in found])


def _row(item: HeldOut) -> dict[str, object]:
    return {
        "held out": item.name,
        "tasks measured": item.learned.count,
        "pairs": item.learned.pairwise,
        "pairs, bound": item.bound.pairwise,
        "top 1 %": item.learned.top_percent_recall,
        "top 1 %, bound": item.bound.top_percent_recall,
        "peak at 5": item.learned.peak_at_5,
        "error": item.learned.mape,
        "error, bound": item.bound.mape,
        "factor": item.factor,
        "covered": item.covered,
        "followed": item.followed,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path("runs/unseen-devices"))
    parser.add_argument("--json", action="store_true")
    choice = parser.parse_args()
    require_from_one(choice, "designs", "workers")
    lessons = tuple(lessons_of(choice.designs, choice.seed, choice.cache, choice.workers))
    found = held_out(lessons, choice.seed, whole_devices=True)
    if choice.json:
        print(json.dumps([asdict(item) for item in found]))
        return
    print(table(found).to_string(index=False, float_format=lambda value: f"{value:.3f}"))


if __name__ == "__main__":
    run_to_exit_code(main)
