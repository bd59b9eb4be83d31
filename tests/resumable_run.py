"""A whole recorded run on the small problem, to be started as a process, killed and started again.

Usage: python -m tests.resumable_run FOLDER BUDGET WORKERS
"""

import sys
import time
from functools import partial
from pathlib import Path

from autotune.learning import metrics_of
from autotune.pareto import nondominated
from autotune.problem import Codes, Evaluation
from autotune.record import open_record, recorded
from autotune.result import SearchResult
from autotune.search import search
from autotune.study import StudyView
from autotune.workers import Workers
from tests.analytic_problem import small_problem

SIMULATION_S = 0.004


def pause(codes: Codes) -> None:
    """Take as long as a quick simulation, so that kills hit the middle of batches."""
    time.sleep(SIMULATION_S)


def ignore(evaluation: Evaluation) -> None:
    """Show nothing."""


def run(folder: Path, budget: int, workers: int) -> SearchResult:
    """Run or resume the folder and leave its Pareto front as a table."""
    factory = partial(small_problem, pause)
    problem = factory()
    with open_record(folder, problem, resume=True) as record, Workers(factory, workers) as pool:
        result = search(problem, budget, 7, recorded(record, pool.evaluate, ignore))
        StudyView(folder, problem).sync(record.evaluations)
    front = nondominated(metrics_of(result.evaluations))
    lines = [f"{e.codes},{e.metrics}" for e, kept in zip(result.evaluations, front, strict=True) if kept]
    (folder / "pareto.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return result


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
