"""The record of a run: `evaluations.jsonl`, one line per finished evaluation, on disk before anything acts on it.

It is the truth; everything else in the run folder can be made again from it. A line that a killed process left torn is
dropped, and a resumed run looks finished designs up here instead of simulating them.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autotune.lock import folder_lock
from autotune.problem import Codes, Evaluation, Knob, Problem, TaskMeasurement
from autotune.result import EvaluateBatch
from configs.errors import UserError

EVALUATIONS = "evaluations.jsonl"
SPACE = "space.json"
EvaluateNew = Callable[[Codes, Callable[[Evaluation], None]], Sequence[Evaluation]]


class Record:
    """The finished evaluations of one run folder, in the order of finishing."""

    def __init__(self, path: Path) -> None:
        """Load what is there, drop a torn last line, and open the file for appending."""
        self._known = {evaluation.codes: evaluation for evaluation in load_evaluations(path)}
        self._file = path.open("ab")

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """All evaluations so far, in the order of finishing."""
        return tuple(self._known.values())

    def find(self, codes: tuple[int, ...]) -> Evaluation | None:
        """Return the evaluation of a design, if it is finished."""
        return self._known.get(codes)

    def append(self, evaluation: Evaluation) -> Evaluation:
        """Write one evaluation to disk and return it exactly as a later load will."""
        line = encode(evaluation)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        stored = decode(line)
        self._known[stored.codes] = stored
        return stored

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextmanager
def open_record(folder: Path, problem: Problem, resume: bool) -> Iterator[Record]:
    """Open the record of a run folder under its lock; raises UserError when the folder holds another run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / EVALUATIONS).touch()
    except OSError as error:
        raise UserError(
            where=str(folder),
            expected="a folder that can be written",
            found=error.strerror or "an error",
            way_out="choose another folder with --out",
        ) from error
    with folder_lock(folder):
        path = folder / EVALUATIONS
        if not resume and path.exists() and path.stat().st_size:
            raise UserError(
                where=str(folder),
                expected="a new run folder",
                found="the evaluations of an earlier run",
                way_out="add --resume to continue it, or choose another folder",
            )
        _check_space(folder / SPACE, problem.knobs)
        record = Record(path)
        _check_codes(path, record.evaluations, problem.knobs)
        try:
            yield record
        finally:
            record.close()


def recorded(record: Record, evaluate_new: EvaluateNew, on_finished: Callable[[Evaluation], None]) -> EvaluateBatch:
    """Return a batch evaluator that looks designs up in the record, simulates the others, and records them at once.

    `on_finished` sees every evaluation, looked up or new; `evaluate_new` is `Workers.evaluate` or like it.
    """

    def finish(evaluation: Evaluation) -> None:
        on_finished(record.append(evaluation))

    def evaluate_batch(designs: Codes) -> list[Evaluation]:
        known = [record.find(tuple(codes)) for codes in designs.tolist()]
        for evaluation in known:
            if evaluation is not None:
                on_finished(evaluation)
        missing = [row for row, evaluation in enumerate(known) if evaluation is None]
        if missing:
            evaluate_new(designs[missing], finish)
        found = (record.find(tuple(codes)) for codes in designs.tolist())
        return [evaluation for evaluation in found if evaluation is not None]

    return evaluate_batch


def encode(evaluation: Evaluation) -> str:
    """Return an evaluation as one line of JSON; a figure that is not finite is a bug and raises ValueError."""
    fields = {
        "codes": [int(code) for code in evaluation.codes],
        "latency_ns": float(evaluation.latency_ns),
        "energy_pj": float(evaluation.energy_pj),
        "area_mm2": float(evaluation.area_mm2),
        "tasks": [
            {
                "task": task.task,
                "kind": str(task.kind),
                "multiplicity": int(task.multiplicity),
                "cycles": int(task.cycles),
                "bound_cycles": int(task.bound_cycles),
            }
            for task in evaluation.tasks
        ],
        "details": {name: float(value) for name, value in evaluation.details},
    }
    return json.dumps(fields, allow_nan=False, separators=(",", ":"))


def decode(line: str) -> Evaluation:
    """Return the evaluation of one line of JSON."""
    fields: dict[str, Any] = json.loads(line)
    return Evaluation(
        codes=tuple(fields["codes"]),
        latency_ns=fields["latency_ns"],
        energy_pj=fields["energy_pj"],
        area_mm2=fields["area_mm2"],
        tasks=tuple(TaskMeasurement(**task) for task in fields["tasks"]),
        details=tuple(fields["details"].items()),
    )


def load_evaluations(path: Path) -> list[Evaluation]:
    """Read the evaluations, after cutting off a last line that has no end: its design is simulated again."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    return [
        _decode_line(path, number, line)
        for number, line in enumerate(whole.decode(errors="replace").splitlines(), start=1)
    ]


def _decode_line(path: Path, number: int, line: str) -> Evaluation:
    try:
        return decode(line)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            where=f"{path}, line {number}",
            expected="one evaluation as JSON",
            found=line[:60],
            way_out="restore the file, or remove the line: its design is then simulated again",
        ) from error


def _check_codes(path: Path, evaluations: Sequence[Evaluation], knobs: tuple[Knob, ...]) -> None:
    """Raise UserError for an evaluation whose codes name no values of the knobs."""
    for evaluation in evaluations:
        fits = len(evaluation.codes) == len(knobs) and all(
            isinstance(code, int) and 0 <= code < len(knob.values)
            for code, knob in zip(evaluation.codes, knobs, strict=True)
        )
        if not fits:
            raise UserError(
                where=str(path),
                expected=f"codes of {len(knobs)} knobs",
                found=str(evaluation.codes)[:60],
                way_out="restore the file, or remove the line: its design is then simulated again",
            )


def _check_space(path: Path, knobs: tuple[Knob, ...]) -> None:
    """Write the knobs that codes refer to beside the evaluations, or compare with what was written before."""
    listed = [{"name": k.name, "group": k.group, "values": list(k.values), "unit": k.unit} for k in knobs]
    text = json.dumps(listed, indent=1) + "\n"
    if not path.exists():
        part = path.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    elif path.read_text(encoding="utf-8") != text:
        raise UserError(
            where=str(path),
            expected="the knobs of this problem",
            found="the knobs of another one",
            way_out="resume with the settings of the first run, or choose another folder",
        )
