"""How well every operator of a step used what it ran on: one row per operator, and the sum of those of a task.

Cycles and commands are those of the representative channel. An operator lasts from the first thing done for it, once it
could begin, to the last, so that operators may overlap; `moved_cycles`, how far each moved the end of the step, adds up
to the latency.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from simulator.channel_use import ChannelUse, busy_cycles, channel_use
from simulator.isa import CODE_OF, REFRESHES
from simulator.step_log import Execution, OperatorLog, StepLog


@dataclass(frozen=True, slots=True)
class Use:
    """Sums over one or more operators."""

    cycles: int = 0
    moved_cycles: int = 0
    mac_cycles: int = 0
    data_bus_cycles: int = 0
    command_bus_cycles: int = 0
    commands: int = 0
    row_activations: int = 0
    column_accesses: int = 0
    row_hits: int = 0
    refreshes: int = 0
    link_down_bytes: int = 0
    link_up_bytes: int = 0
    host_cycles: int = 0

    def __add__(self, other: "Use") -> "Use":
        """Return the sum of both."""
        return Use(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(Use)))

    def share(self, cycles: int) -> float:
        """Return some cycles as a share of the operators' own; 0 for operators that take no time."""
        return cycles / self.cycles if self.cycles else 0.0


@dataclass(frozen=True, slots=True)
class OperatorUse:
    """One operator: its place in the step, its task and occurrence, and from when to when it lasted."""

    operator: int
    task: str
    occurrence: int
    start_cycle: int
    end_cycle: int
    use: Use


def utilisation(log: StepLog) -> tuple[OperatorUse, ...]:
    """Return the use of every operator in program order."""
    shared = channel_use(log)
    return tuple(_operator_use(number, item, shared) for number, item in enumerate(log.operators))


def use_by_task(operators: Sequence[OperatorUse]) -> dict[str, tuple[int, Use]]:
    """Return how often each task ran and the sum of its operators, in the order of first occurrence."""
    total: dict[str, tuple[int, Use]] = {}
    for item in operators:
        times, use = total.get(item.task, (0, Use()))
        total[item.task] = (times + 1, use + item.use)
    return total


def first_own_cycle(execution: Execution) -> int:
    """Return when a program issued its first command: refreshes that fell due before are not its own."""
    kinds = execution.runs.kind.tolist()
    refreshes = {CODE_OF[kind] for kind in REFRESHES}
    own = next((place for place, kind in enumerate(kinds) if kind not in refreshes), 0)
    return int(execution.runs.first_cycle[own])


def _operator_use(number: int, item: OperatorLog, shared: ChannelUse) -> OperatorUse:
    executions = [execution for execution in item.executions if len(execution.runs)]
    starts = [job.start_cycle for job in item.jobs] + [first_own_cycle(execution) for execution in executions]
    # A program can change modes or open a row ahead, before what it computes with is there.
    start = max(item.ready_cycle, min(starts, default=item.ready_cycle))
    end = max([item.end_cycle, *(execution.completed_cycle for execution in executions)])
    use = Use(
        cycles=end - start,
        moved_cycles=item.moved_cycles,
        mac_cycles=sum(busy_cycles(execution.runs, shared.units) for execution in executions),
        data_bus_cycles=sum(busy_cycles(execution.runs, shared.data_bus) for execution in executions),
        command_bus_cycles=sum(busy_cycles(execution.runs, shared.command_bus) for execution in executions),
        commands=sum(int(execution.runs.count.sum()) for execution in executions),
        row_activations=sum(execution.row_use.activations for execution in executions),
        column_accesses=sum(execution.row_use.accesses for execution in executions),
        row_hits=sum(execution.row_use.hits for execution in executions),
        refreshes=sum(execution.refreshes for execution in executions),
        link_down_bytes=sum(int(job.chunk_bytes) for job in item.jobs if job.server == "down"),
        link_up_bytes=sum(int(job.chunk_bytes) for job in item.jobs if job.server == "up"),
        host_cycles=sum(job.end_cycle - job.start_cycle for job in item.jobs if job.server == "host"),
    )
    return OperatorUse(number, item.task, item.occurrence, start, end, use)
