"""How sensitive a finished run's Pareto points are to every hardware knob: simulated, one at a time and in pairs.

Designs are appended to `sensitivity.jsonl` in the run folder as they are finished, so that an interrupted analysis goes
on where it stopped. The points themselves are simulated again, which shows that the program still finds what it found.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import TextIO

import numpy as np

from autotune.architect.effects import (
    Effect,
    Interaction,
    Simulated,
    effects_of,
    interactions_of,
    judged_designs,
    middle,
    pairs_to_move,
)
from autotune.architect.importance import Importance, importances
from autotune.architect.neighbours import Move, Neighbour, Surroundings, moves_from, neighbours, surroundings
from autotune.architect.stored_run import StoredRun, stored_run
from autotune.finished import FinishedRun
from autotune.interrupt import StopFlag, stop_on_interrupt
from autotune.lock import folder_lock
from autotune.problem import HARDWARE_GROUP, Evaluation, Knob
from autotune.progress import show_progress
from autotune.record import Record, recorded
from autotune.workers import Workers
from configs.errors import UserError

DESIGNS = "sensitivity.jsonl"
MADE_FROM = "sensitivity-made-from.json"
SAME_LATENCY = 1e-12
REPORTS = 10


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A finished analysis: what was moved around which points, what it did, and what the trials say beside it.

    `simulated` are all designs, numbered in the order of the plan; `fixed` the knobs that the run itself did not vary.
    """

    run: FinishedRun
    around: Surroundings
    plan: tuple[Neighbour, ...]
    simulated: tuple[Simulated, ...]
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    importances: tuple[Importance, ...]
    fixed: tuple[str, ...]

    @property
    def middle_point(self) -> int:
        """The point that pairs are moved around."""
        return self.around.centres[middle(self.around.centres)].point


def analyse(folder: Path, points: int, workers: int, stream: TextIO) -> Sensitivity | None:
    """Simulate what is around the points of a run; None when interrupted. Raises UserError for no finished run."""
    stored = stored_run(folder)
    print("learning the run's schedules and choosing designs", file=stream, flush=True)
    around = surroundings(stored, points)
    with folder_lock(folder), stop_on_interrupt() as stop:
        begin(folder, stored, stream)
        record = Record(folder / DESIGNS)
        try:
            with Workers(around.spec, workers, stop) as pool:
                simulate = _Simulate(record, pool, stop, stream)
                return _analyse(stored, around, simulate)
        finally:
            record.close()


def _analyse(stored: StoredRun, around: Surroundings, simulate: "_Simulate") -> Sensitivity | None:
    plan: list[Neighbour] = []
    for row, centre in enumerate(around.centres):
        moves: list[tuple[Move, ...]] = [(), *((move,) for move in moves_from(around.problem, centre.codes))]
        plan += neighbours(around, row, moves)
    if not simulate(plan):
        return None
    _require_as_recorded(stored, around, simulate.record)
    centres, goals = around.centres, stored.run.goals
    known = _by_codes(around, stored, plan, simulate.record)
    pairs = pairs_to_move(centres, plan, known)
    plan += neighbours(around, middle(centres), pairs)
    if not simulate(plan):
        return None
    simulated = judged_designs(around, goals, _evaluations(plan, simulate.record))
    known = {item.evaluation.codes: item for item in simulated}
    effects = effects_of(centres, plan, known)
    knobs = [knob for knob in stored.run.problem.knobs if knob.group == HARDWARE_GROUP]
    return Sensitivity(
        run=stored.run,
        around=around,
        plan=tuple(plan),
        simulated=simulated,
        effects=effects,
        interactions=interactions_of(centres, plan, known),
        importances=importances(stored.run, effects),
        fixed=tuple(knob.name for knob in knobs if len(knob.values) == 1),
    )


class _Simulate:
    """Simulates the designs of a plan that are not on record yet, and tells how far it is."""

    def __init__(self, record: Record, pool: Workers, stop: StopFlag, stream: TextIO) -> None:
        self.record = record
        self._pool = pool
        self._stop = stop
        self._stream = stream

    def __call__(self, plan: Sequence[Neighbour]) -> bool:
        """Return whether all are finished; not when the user asked to stop."""
        designs = designs_of(plan)
        missing = np.array([codes for codes in designs if self.record.find(codes) is None], dtype=np.int64)
        if len(missing) == 0:
            return True
        print(f"simulating {len(missing)} designs, {len(designs) - len(missing)} are on record", file=self._stream)
        with show_progress(len(missing), self._stream, quiet=not self._stream.isatty()) as observer:
            finished = 0

            def tell(evaluation: Evaluation) -> None:
                nonlocal finished
                finished += 1
                observer.evaluated(evaluation)
                if not self._stream.isatty() and finished % max(1, len(missing) // REPORTS) == 0:
                    print(f"{finished}/{len(missing)} designs", file=self._stream, flush=True)

            recorded(self.record, self._pool.evaluate, tell)(missing)
        if self._stop.requested:
            done = len(designs) - len(missing) + finished
            print(
                f"stopped with {done} of {len(designs)} designs; the same command goes on from here", file=self._stream
            )
        return not self._stop.requested


def designs_of(plan: Sequence[Neighbour]) -> tuple[tuple[int, ...], ...]:
    """Return the different designs of a plan in order, which is how they are numbered."""
    return tuple(dict.fromkeys(codes for item in plan for codes in item.designs))


def _evaluations(plan: Sequence[Neighbour], record: Record) -> list[Evaluation]:
    found = (record.find(codes) for codes in designs_of(plan))
    return [item for item in found if item is not None]


def _by_codes(
    around: Surroundings, stored: StoredRun, plan: Sequence[Neighbour], record: Record
) -> dict[tuple[int, ...], Simulated]:
    judged = judged_designs(around, stored.run.goals, _evaluations(plan, record))
    return {item.evaluation.codes: item for item in judged}


def _require_as_recorded(stored: StoredRun, around: Surroundings, record: Record) -> None:
    """Raise UserError where a point has another latency now than when the run evaluated it."""
    for centre in around.centres:
        own, now = stored.run.evaluations[centre.point], record.find(_canonical(around, centre.codes))
        if now is not None and not isclose(own.latency_ns, now.latency_ns, rel_tol=SAME_LATENCY):
            raise UserError(
                where=f"{stored.run.folder}, point {centre.point}",
                expected=f"the {own.latency_ns} ns of its evaluation",
                found=f"{now.latency_ns} ns",
                way_out="the device file or the program has changed since: make a new run",
            )


def _canonical(around: Surroundings, codes: tuple[int, ...]) -> tuple[int, ...]:
    design = np.array([codes], dtype=np.int64)
    return tuple(around.problem.canonical(design)[0].tolist())


def begin(folder: Path, stored: StoredRun, stream: TextIO) -> None:
    """Keep what is on record where device, model, sources and knobs are the same, and begin anew otherwise."""
    now = json.dumps(stored.spec.identity()) + "\n"
    made_from = folder / MADE_FROM
    if (folder / DESIGNS).exists() and (not made_from.exists() or made_from.read_text(encoding="utf-8") != now):
        print(f"{DESIGNS} is of another version of the program: beginning anew", file=stream, flush=True)
        (folder / DESIGNS).unlink()
    made_from.write_text(now, encoding="utf-8")


def knob_values(knobs: Sequence[Knob], codes: Sequence[int]) -> dict[str, int | str]:
    """Return the values of a design by knob."""
    return {knob.label: knob.values[code] for knob, code in zip(knobs, codes, strict=True)}
