"""How long does a whole decode step take to simulate, and how much memory? Lowering is excluded, refresh is on.

Each measurement is a process of its own that never loads torch; the times are its CPU time, the best of 15 warm rounds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compiler.frontend import import_model
from compiler.graph_text import print_graph
from compiler.passes import run_passes
from configs.model_config import load_model_config

ROOT = Path(__file__).parents[2]
STEPS = [("llama-2-7b", 4096), ("llama-3.1-8b", 4096), ("llama-3.1-70b", 131_072)]


def _measured(graph: Path, context: int, mapping: str, **environment: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.step_process", str(graph), str(context), mapping]
    run = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, check=True, capture_output=True, text=True, timeout=600
    )
    return dict(json.loads(run.stdout))


def _graph_file(model: str, context: int, folder: Path) -> Path:
    path = folder / "step.graph"
    path.write_text(print_graph(run_passes(import_model(load_model_config(model), 1, context))), encoding="utf-8")
    return path


@pytest.mark.parametrize("mapping", ["hand", "overlapped"])
@pytest.mark.parametrize(("model", "context"), STEPS, ids=[model for model, _ in STEPS])
def test_warm_step(model: str, context: int, mapping: str, tmp_path: Path, benchmark: Any) -> None:
    graph = _graph_file(model, context, tmp_path)
    found = benchmark.pedantic(lambda: _measured(graph, context, mapping), rounds=1)
    assert found["commands"] > 100_000
    benchmark.extra_info |= found


def test_first_step_on_a_new_machine(tmp_path: Path, benchmark: Any) -> None:
    """Cold: nothing is compiled yet; and again, with the machine code of the run before at hand."""
    graph = _graph_file("llama-2-7b", 4096, tmp_path)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    found = benchmark.pedantic(lambda: _measured(graph, 4096, "hand", **cache), rounds=1)
    again = _measured(graph, 4096, "hand", **cache)
    assert again["first_s"] < found["first_s"]
    benchmark.extra_info |= {"compiling_s": found["first_s"], "loading_s": again["first_s"]}
