"""A decode step from the inside: per operator the work of host and link, and what the channel issued phase by phase.

`log_step` walks a step with an observer that keeps everything; utilisation and timeline are functions of its `StepLog`.
"""

from dataclasses import dataclass, field

from configs.device import Device
from simulator.channel import RunReport
from simulator.command_runs import CommandRuns, runs_of
from simulator.engine_timing import STEP, EngineTiming
from simulator.issue_log import IssueLog
from simulator.row_log import BankWatch, OpenRow, RowUse
from simulator.step import PimPhase, Step
from simulator.timeline import Job, StepReport, StepSimulator


@dataclass(frozen=True, slots=True)
class Execution:
    """One program run on the channel; `completed_cycle` is when everything issued until its end has completed."""

    phase: PimPhase
    runs: CommandRuns
    row_use: RowUse
    completed_cycle: int
    refreshes: int


@dataclass(frozen=True, slots=True)
class OperatorLog:
    """One operator of the step, the `occurrence`-th of its task from 0.

    It could begin at `ready_cycle`; who depends on it could at `end_cycle`. It moved the end of the step by
    `moved_cycles`: their sum is the latency.
    """

    task: str
    occurrence: int
    ready_cycle: int
    end_cycle: int
    moved_cycles: int
    jobs: tuple[Job, ...]
    executions: tuple[Execution, ...]


@dataclass(frozen=True, slots=True)
class StepLog:
    """A step, its operators in program order, the rules of its device, and the rows still open at its end."""

    device: Device
    timing: EngineTiming
    report: StepReport
    operators: tuple[OperatorLog, ...]
    left_open: tuple[OpenRow, ...]

    @property
    def executions(self) -> tuple[Execution, ...]:
        """What the channel ran, in order."""
        return tuple(execution for operator in self.operators for execution in operator.executions)


def log_step(simulator: StepSimulator, step: Step, slowdown: int = 1) -> StepLog:
    """Simulate a step like `StepSimulator.run` and return everything that happened."""
    timing = simulator.engine.timing
    recorder = _Recorder(step, timing, BankWatch.of(simulator.device, timing))
    report = simulator.run(step, slowdown, recorder)
    left_open = recorder.banks.left_open(report.latency_cycles)
    return StepLog(simulator.device, timing, report, tuple(recorder.operators), left_open)


@dataclass(slots=True)
class _Recorder:
    """Keeps what a `StepObserver` is told."""

    step: Step
    timing: EngineTiming
    banks: BankWatch
    operators: list[OperatorLog] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    occurrences: dict[str, int] = field(default_factory=dict)

    def served(self, job: Job) -> None:
        self.jobs.append(job)

    def executed(self, phase: PimPhase, report: RunReport, log: IssueLog) -> None:
        runs = runs_of(log, self.timing.kinds[:, STEP])
        self.executions.append(Execution(phase, runs, self.banks.use(runs), report.completed, report.refreshes))

    def finished(self, task_index: int, ready: int, end: int, moved: int) -> None:
        task = self.step.tasks[task_index].task
        occurrence = self.occurrences.get(task, 0)
        self.occurrences[task] = occurrence + 1
        jobs, executions = tuple(self.jobs), tuple(self.executions)
        self.operators.append(OperatorLog(task, occurrence, ready, end, moved, jobs, executions))
        self.jobs.clear()
        self.executions.clear()
