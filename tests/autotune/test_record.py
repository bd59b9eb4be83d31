"""The record of a run: survives kills at any moment, torn lines and second writers, and the study follows it."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from autotune.problem import Codes, Evaluation
from autotune.record import EVALUATIONS, decode, encode, open_record, recorded
from autotune.search import search
from autotune.study import STUDY_NAME, StudyView
from configs.errors import UserError
from tests import resumable_run
from tests.analytic_problem import small_problem, tiny_problem

BUDGET = 60


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("reference")
    resumable_run.run(folder, BUDGET, workers=1)
    return folder


def _start(folder: Path, workers: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-W", "error", "-m", "tests.resumable_run", str(folder), str(BUDGET), str(workers)]
    return subprocess.Popen(command, start_new_session=True)


def _lines(folder: Path) -> list[bytes]:
    path = folder / EVALUATIONS
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def _kill_after(process: "subprocess.Popen[bytes]", folder: Path, lines: int, delay_s: float) -> None:
    limit = time.monotonic() + 60
    while len(_lines(folder)) < lines and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.002)
    time.sleep(delay_s)
    process.kill()
    process.wait()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_killed_at_random_moments_resumes_to_the_same_record(
    tmp_path: Path, reference: Path, workers: int
) -> None:
    chance = random.Random(workers)
    for least in (1, 35):
        process = _start(tmp_path, workers)
        _kill_after(process, tmp_path, least + chance.randrange(15), chance.random() * 0.05)
        with (tmp_path / EVALUATIONS).open("ab") as file:
            file.write(b'{"codes":[1,0,' if chance.random() < 0.7 else b"")
    assert not (tmp_path / "pareto.csv").exists()
    assert 1 < len(_lines(tmp_path)) < BUDGET + 1
    assert _start(tmp_path, workers).wait(timeout=60) == 0
    assert (tmp_path / "pareto.csv").read_bytes() == (reference / "pareto.csv").read_bytes()
    if workers == 1:
        assert _lines(tmp_path) == _lines(reference)
    assert sorted(_lines(tmp_path)) == sorted(_lines(reference))


def test_workers_of_a_killed_run_end_with_it(tmp_path: Path) -> None:
    process = _start(tmp_path, workers=2)
    _kill_after(process, tmp_path, 3, 0.0)
    limit = time.monotonic() + 20
    while _alive_in_session(process.pid) and time.monotonic() < limit:
        time.sleep(0.05)
    assert _alive_in_session(process.pid) == []


def _alive_in_session(session: int) -> list[int]:
    """Return the processes of a session that still run, from the kernel's table."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, *fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == session and state != "Z":
            found.append(int(entry.name))
    return found


def test_a_finished_run_is_replayed_without_simulating(tmp_path: Path, reference: Path) -> None:
    (tmp_path / EVALUATIONS).write_bytes((reference / EVALUATIONS).read_bytes())
    seen: list[Evaluation] = []

    def refuse(designs: Codes, on_result: Callable[[Evaluation], None]) -> list[Evaluation]:
        raise AssertionError("a recorded design was simulated again")

    problem = small_problem()
    with open_record(tmp_path, problem, resume=True) as record:
        result = search(problem, BUDGET, 7, recorded(record, refuse, seen.append))
    assert list(result.evaluations) == seen == [decode(line.decode()) for line in _lines(reference)]


def test_lines_round_trip_exactly() -> None:
    problem = small_problem()
    evaluation = problem.evaluate(problem.baselines()[0])
    assert decode(encode(evaluation)) == evaluation
    assert encode(decode(encode(evaluation))) == encode(evaluation)


def test_a_figure_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(Evaluation((0,), float("nan"), 1.0, 1.0, ()))


def test_a_torn_last_line_is_dropped_and_its_design_simulated_again(tmp_path: Path, reference: Path) -> None:
    content = (reference / EVALUATIONS).read_bytes()
    (tmp_path / EVALUATIONS).write_bytes(content[:-7])
    with open_record(tmp_path, small_problem(), resume=True) as record:
        assert len(record.evaluations) == BUDGET - 1
    assert (tmp_path / EVALUATIONS).read_bytes() == b"".join(_lines(reference)[:-1])


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path, reference: Path) -> None:
    lines = _lines(reference)
    (tmp_path / EVALUATIONS).write_bytes(lines[0] + b"garbage\n" + lines[1])
    with pytest.raises(UserError, match="line 2"), open_record(tmp_path, small_problem(), resume=True):
        pass


def test_a_folder_is_written_by_one_process_only(tmp_path: Path) -> None:
    with (
        open_record(tmp_path, small_problem(), resume=False),
        pytest.raises(UserError, match=f"process {os.getpid()} writing it"),
        open_record(tmp_path, small_problem(), resume=True),
    ):
        pass


def test_the_lock_of_a_dead_process_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("999999\n")
    with open_record(tmp_path, small_problem(), resume=False):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_an_earlier_run_is_not_overwritten_without_resume(tmp_path: Path, reference: Path) -> None:
    (tmp_path / EVALUATIONS).write_bytes((reference / EVALUATIONS).read_bytes())
    with pytest.raises(UserError, match="add --resume"), open_record(tmp_path, small_problem(), resume=False):
        pass


def test_the_record_of_other_knobs_is_refused(tmp_path: Path) -> None:
    with open_record(tmp_path, small_problem(), resume=False):
        pass
    with pytest.raises(UserError, match="knobs of another"), open_record(tmp_path, tiny_problem(), resume=True):
        pass


def _trials(folder: Path) -> list[tuple[int, ...]]:
    backend = JournalFileBackend(str(folder / "study.journal"))
    study = optuna.load_study(study_name=STUDY_NAME, storage=JournalStorage(backend))
    return [tuple(trial.user_attrs["codes"]) for trial in study.trials]


def test_the_study_shows_the_record_and_is_rebuilt_when_missing_behind_or_torn(tmp_path: Path, reference: Path) -> None:
    problem = small_problem()
    evaluations = [decode(line.decode()) for line in _lines(reference)][:12]
    codes = [evaluation.codes for evaluation in evaluations]
    StudyView(tmp_path, problem).sync(evaluations[:5])
    assert _trials(tmp_path) == codes[:5]
    StudyView(tmp_path, problem).sync(evaluations)
    assert _trials(tmp_path) == codes
    journal = tmp_path / "study.journal"
    journal.write_bytes(journal.read_bytes()[:-9])
    (tmp_path / "study.journal.lock").write_text("left by a killed process")
    StudyView(tmp_path, problem).sync(evaluations)
    assert _trials(tmp_path) == codes
    StudyView(tmp_path, problem).sync(evaluations[6:])
    assert _trials(tmp_path) == codes[6:]


def test_trials_hold_knob_values_and_objectives(reference: Path) -> None:
    backend = JournalFileBackend(str(reference / "study.journal"))
    trial = optuna.load_study(study_name=STUDY_NAME, storage=JournalStorage(backend)).trials[0]
    assert trial.params["channels"] == 16
    assert trial.params["ffn.order"] == "reload"
    assert tuple(trial.values) == decode(_lines(reference)[0].decode()).metrics


def test_an_interrupt_ends_the_run_between_evaluations(tmp_path: Path) -> None:
    script = (
        "import os, signal, pathlib\n"
        "from autotune.interrupt import stop_on_interrupt\n"
        "from autotune.search import search\n"
        "from autotune.workers import Workers\n"
        "from tests.analytic_problem import small_problem\n"
        "seen = []\n"
        "def finished(evaluation):\n"
        "    seen.append(evaluation)\n"
        "    if len(seen) == 30: os.kill(os.getpid(), signal.SIGINT)\n"
        "with stop_on_interrupt() as stop, Workers(small_problem, 1, stop) as pool:\n"
        "    result = search(small_problem(), 60, 0, lambda designs: pool.evaluate(designs, finished))\n"
        "print(result.stop, len(result.evaluations))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("interrupted 30\n", 0), done.stderr
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
