"""Evaluating designs in several processes, which may die: their designs are tried again, alone, up to three times.

Results come back in the order of submission whatever the number of workers; each is handed on as soon as it is there.
"""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType

from autotune.interrupt import StopFlag
from autotune.problem import Codes, Evaluation, Problem

MOST_RETRIES = 3
ProblemFactory = Callable[[], Problem]
OnResult = Callable[[Evaluation], None]


class WorkerDeathError(Exception):
    """Raised when a worker process died on every try of one design: killed for memory, or a crash in native code."""

    def __init__(self, codes: tuple[int, ...], deaths: int) -> None:
        """Keep the design that cannot be evaluated."""
        super().__init__(
            f"design {codes}: expected an evaluation, found {deaths} dead worker processes; "
            "look above for their last words, check the memory, or run with one worker to see the crash"
        )
        self.codes = codes
        self.deaths = deaths


class Workers:
    """Evaluates batches in `count` processes that build the problem from a picklable factory; one runs in-process."""

    def __init__(self, factory: ProblemFactory, count: int, stop: StopFlag | None = None) -> None:
        """Start nothing yet; `stop` is looked at between evaluations."""
        self._factory = factory
        self._count = count
        self._stop = stop if stop is not None else StopFlag()
        self._problem: Problem | None = None
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Workers":
        """Return the workers."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes."""
        self.close()

    def close(self) -> None:
        """End the processes; the next batch would start new ones."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def evaluate(self, designs: Codes, on_result: OnResult) -> tuple[Evaluation, ...]:
        """Return the evaluations of designs (int[n, k]) in their order; fewer when the user asked to stop."""
        if self._count > 1 and len(designs) > 1:
            return _Batch(self, designs, on_result).run()
        found: list[Evaluation] = []
        for codes in designs:
            if self._stop.requested:
                break
            found.append(self._evaluate_here(codes))
            on_result(found[-1])
        return tuple(found)

    def _evaluate_here(self, codes: Codes) -> Evaluation:
        if self._problem is None:
            self._problem = self._factory()
        return _evaluate_named(self._problem, codes)

    def submit(self, codes: Codes) -> "Future[Evaluation]":
        """Hand one design to a process, starting the pool when there is none."""
        if self._pool is None:
            context = multiprocessing.get_context("forkserver")
            self._pool = ProcessPoolExecutor(self._count, context, _initialize, (self._factory,))
        return self._pool.submit(_evaluate, codes)

    @property
    def count(self) -> int:
        """The number of processes."""
        return self._count

    @property
    def stopping(self) -> bool:
        """Whether the user asked to stop."""
        return self._stop.requested


class _Batch:
    """One batch on its way through the processes."""

    def __init__(self, workers: Workers, designs: Codes, on_result: OnResult) -> None:
        self._workers = workers
        self._designs = designs
        self._on_result = on_result
        self._waiting = deque(range(len(designs)))
        self._running: dict[Future[Evaluation], int] = {}
        self._results: dict[int, Evaluation] = {}
        self._deaths: Counter[int] = Counter()
        self._suspects: set[int] = set()

    def run(self) -> tuple[Evaluation, ...]:
        while self._waiting or self._running:
            lost = self._submit()
            if not self._running and not lost:
                break
            lost += self._collect()
            if lost:
                self._requeue(sorted({*lost, *self._running.values()}))
        return tuple(self._results[row] for row in sorted(self._results))

    def _submit(self) -> list[int]:
        """Keep every process busy; after a death suspects run alone, so that the next death names its design."""
        limit = 1 if self._suspects else self._workers.count
        while self._waiting and len(self._running) < limit and not self._workers.stopping:
            row = self._waiting.popleft()
            try:
                self._running[self._workers.submit(self._designs[row])] = row
            except BrokenProcessPool:
                return [row]
        return []

    def _collect(self) -> list[int]:
        """Take what is finished and return the rows whose process died."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        lost = []
        for future in sorted(done, key=self._running.__getitem__):
            row = self._running.pop(future)
            try:
                evaluation = future.result()
            except BrokenProcessPool:
                lost.append(row)
                continue
            self._results[row] = evaluation
            self._suspects.discard(row)
            self._on_result(evaluation)
        return lost

    def _requeue(self, rows: list[int]) -> None:
        """Drop the broken pool and put the designs that were in it first in the queue."""
        self._workers.close()
        self._running.clear()
        self._deaths.update(rows)
        for row in rows:
            if self._deaths[row] > MOST_RETRIES:
                raise WorkerDeathError(tuple(self._designs[row].tolist()), self._deaths[row])
        self._suspects.update(rows)
        self._waiting.extendleft(reversed(rows))


_PROBLEM: Problem | None = None


def _initialize(factory: ProblemFactory) -> None:
    """Build the problem once per process; leave Ctrl-C to the parent, and end when it is gone."""
    global _PROBLEM
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _PROBLEM = factory()


def _exit_with_parent() -> None:
    """End this process when the parent died: a killed parent cannot end its workers itself."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _evaluate(codes: Codes) -> Evaluation:
    assert _PROBLEM is not None
    return _evaluate_named(_PROBLEM, codes)


def _evaluate_named(problem: Problem, codes: Codes) -> Evaluation:
    try:
        return problem.evaluate(codes)
    except Exception as error:
        error.add_note(f"while evaluating the design {tuple(codes.tolist())}")
        raise
