"""The exact front of a problem, proved by bounds: only designs that could be on it are simulated.

Every legal design is enumerated and bounded in closed form. A design whose lower bounds are no better in any objective
than a simulated design cannot be on the front, whatever its simulation would say. Those that are left are simulated,
best bounds first, until none is. Other designs are simulated when a sampler asks for them, and everything is kept.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from autotune.decode_problem import DecodeProblem
from autotune.enumerate import enumerate_legal
from autotune.layout import layout_of
from autotune.learning import metrics_of
from autotune.pareto import Box, box_of, hypervolume, nondominated
from autotune.problem import Codes, Evaluation
from autotune.problem_spec import ProblemSpec
from autotune.record import EVALUATIONS, Record, recorded
from autotune.roofline import roofline
from autotune.workers import Workers
from experiments.search_quality.fingerprint import fingerprint

Floats = NDArray[np.float64]
FRONT = "front.json"
CHUNK = 1 << 16
ROUND = 512
TIMED = 24
# Latency and energy of bounds and simulations are summed in different orders; the area is the same expression.
ROUNDING = np.array([1 - 1e-9, 1 - 1e-9, 1.0])


@dataclass(frozen=True, slots=True)
class Proof:
    """What the enumeration found: sizes, the front's designs, and the mean process time of one simulation."""

    legal_designs: int
    simulated_for_the_proof: int
    front: tuple[tuple[int, ...], ...]
    simulation_s: float


class Simulated:
    """A problem whose simulations are kept: those that were asked for once are not repeated."""

    def __init__(self, spec: ProblemSpec, cache: Path, workers: int) -> None:
        """Load what the cache holds of this very problem."""
        self.problem: DecodeProblem = spec()
        self.folder = cache / fingerprint(spec, self.problem)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._record = Record(self.folder / EVALUATIONS)
        self._pool = Workers(spec, workers)
        self._evaluate = recorded(self._record, self._pool.evaluate, lambda _: None)

    def evaluate(self, designs: Codes) -> Sequence[Evaluation]:
        """Return the exact evaluations of legal designs (int[n, k])."""
        return self._evaluate(designs)

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes and close the record."""
        self._pool.close()
        self._record.close()


class GroundTruth(Simulated):
    """A problem with its exact front, which is proved where the cache does not hold it."""

    def __init__(self, spec: ProblemSpec, cache: Path, workers: int) -> None:
        """Load what the cache holds of this very problem, and prove the front if it does not."""
        super().__init__(spec, cache, workers)
        self.proof = self._load() or self._prove()
        self.front = np.array(self.proof.front, dtype=np.int64)
        self.front_metrics = metrics_of(self.evaluate(self.front))
        self.box: Box = box_of(self.front_metrics)
        self.exact_hypervolume = hypervolume(self.front_metrics, self.box)

    def share(self, metrics: Floats) -> float:
        """Return the hypervolume of metrics (float[n, 3]) as a fraction of the exact front's."""
        return hypervolume(metrics, self.box) / self.exact_hypervolume

    def _load(self) -> Proof | None:
        path = self.folder / FRONT
        if not path.is_file():
            return None
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Proof(**fields | {"front": tuple(tuple(codes) for codes in fields["front"])})

    def _prove(self) -> Proof:
        designs = enumerate_legal(self.problem)
        bounds = np.concatenate([roofline(self.problem, codes) for codes in _chunks(designs)])
        print(f"{len(designs)} legal designs", file=sys.stderr, flush=True)
        front, simulated = self._search_front(designs, bounds * ROUNDING)
        proof = Proof(len(designs), simulated, tuple(map(tuple, front.tolist())), self._time(designs))
        part = self.folder / f"{FRONT}.part"
        part.write_text(json.dumps(asdict(proof)), encoding="utf-8")
        part.replace(self.folder / FRONT)
        return proof

    def _search_front(self, designs: Codes, bounds: Floats) -> tuple[Codes, int]:
        """Simulate the best bounds that are left, drop what they rule out, and repeat until nothing is left."""
        left = np.arange(len(designs))
        found, metrics = designs[:0], np.zeros((0, 3))
        simulated = 0
        while len(left):
            best = left[_first_layers(bounds[left])]
            order = np.lexsort(designs[best][:, layout_of(self.problem).hardware].T)
            chosen = designs[best[order]]
            print(
                f"the {len(chosen)} designs of the best bounds, simulated where not kept", file=sys.stderr, flush=True
            )
            new = metrics_of(self.evaluate(chosen))
            simulated += len(chosen)
            found, metrics = np.concatenate([found, chosen]), np.concatenate([metrics, new])
            kept = nondominated(metrics)
            found, metrics = found[kept], metrics[kept]
            left = np.setdiff1d(left, best)
            for point in metrics:
                left = left[(bounds[left] < point).any(axis=1)]
            progress = f"{simulated} simulated, {len(left)} could still be on the front of {len(found)}"
            print(progress, file=sys.stderr, flush=True)
        return found, simulated

    def _time(self, designs: Codes) -> float:
        """Return the mean process time of one evaluation, warm, over designs drawn from all."""
        sample = designs[np.random.default_rng(0).choice(len(designs), min(TIMED, len(designs)), replace=False)]
        for codes in sample[:2]:
            self.problem.evaluate(codes)
        start = time.process_time()
        for codes in sample:
            self.problem.evaluate(codes)
        return (time.process_time() - start) / len(sample)


def _first_layers(bounds: Floats) -> NDArray[np.int64]:
    """Return the rows of the first non-dominated layers that are `ROUND` together, or of the first alone."""
    remaining = np.arange(len(bounds))
    chosen: list[NDArray[np.int64]] = []
    while len(remaining) and sum(map(len, chosen)) < ROUND:
        layer = nondominated(bounds[remaining])
        chosen.append(remaining[layer])
        remaining = remaining[~layer]
    return np.concatenate(chosen)


def _chunks(designs: Codes) -> list[Codes]:
    return [designs[start : start + CHUNK] for start in range(0, len(designs), CHUNK)]
