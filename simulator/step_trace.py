"""The timeline of one decode step to look at: what every part of the system did and when, as a `perfetto.Trace`.

Operators, host, link, dispatcher, refreshes, modes and counters span the whole step. Runs of commands, bursts and open
rows are ten times more and are there for the operators that `Detail` names.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum

from simulator.channel_trace import CHANNEL, channel_tracks
from simulator.channel_use import channel_use
from simulator.command_runs import joined
from simulator.isa import Program
from simulator.perfetto import Slice, Trace, Value
from simulator.step_log import Execution, OperatorLog, StepLog
from simulator.timeline import Job
from simulator.trace_counters import channel_counters, link_counters
from simulator.utilisation import OperatorUse, first_own_cycle, utilisation

STEP = "what the step waits for"
SERVERS = {"host": "host", "down": "link down", "up": "link up"}


class Detail(StrEnum):
    """Which operators are shown down to their commands: none, the first of every task, or all."""

    NONE = "none"
    FIRST = "first"
    ALL = "all"


def step_trace(
    log: StepLog, title: str, channels: int, detail: Detail, instruction_count: Callable[[Program], int]
) -> Trace:
    """Return the timeline of a step on this many channels; a program costs the dispatcher `instruction_count`."""
    jobs = [job for operator in log.operators for job in operator.jobs]
    executions = [item for item in log.executions if len(item.runs)]
    shown = [item for operator in log.operators if _is_shown(operator, detail) for item in operator.executions]
    use, whole = channel_use(log), joined([item.runs for item in executions])
    tracks: dict[str, Sequence[Slice]] = {STEP: _operator_slices(log, utilisation(log))}
    for server, name in SERVERS.items():
        tracks[name] = [_job_slice(job) for job in jobs if job.server == server]
    tracks["dispatcher"] = _dispatcher_slices(log, executions, instruction_count)
    tracks[f"{CHANNEL} (of {channels}, in lock-step)"] = [_execution_slice(item) for item in executions]
    detailed = joined([item.runs for item in shown])
    rows = [row for item in shown for row in item.row_use.rows]
    if detail is Detail.ALL:
        rows += log.left_open
    return Trace(
        title,
        log.device,
        tracks | channel_tracks(log, whole, detailed, rows, use),
        (*link_counters(log, jobs), *channel_counters(log, whole, use)),
    )


def _is_shown(operator: OperatorLog, detail: Detail) -> bool:
    match detail:
        case Detail.NONE:
            return False
        case Detail.FIRST:
            return operator.occurrence == 0
        case Detail.ALL:
            return True


def _operator_slices(log: StepLog, operators: Sequence[OperatorUse]) -> list[Slice]:
    """Return what the step waited for: each operator from where the end of the step was to where it moved it."""
    times = Counter(item.task for item in operators)
    slices, end = [], 0
    for item in operators:
        start, end = end, end + item.use.moved_cycles
        if start < end:
            slices.append(Slice(item.task, start, end, _operator_args(log, item, times[item.task])))
    return slices


def _operator_args(log: StepLog, item: OperatorUse, times: int) -> tuple[tuple[str, Value], ...]:
    use, latency = item.use, log.report.latency_cycles
    return (
        ("operator", f"{item.operator} of the step, {item.occurrence + 1} of {times} of its task"),
        ("share of the step (%)", round(100 * use.moved_cycles / latency, 3)),
        ("moved the end of the step by (cycles)", use.moved_cycles),
        ("lasted (cycles)", use.cycles),
        ("started at cycle", item.start_cycle),
        ("ended at cycle", item.end_cycle),
        ("units busy (%)", round(100 * use.share(use.mac_cycles), 2)),
        ("data bus busy (%)", round(100 * use.share(use.data_bus_cycles), 2)),
        ("command bus busy (%)", round(100 * use.share(use.command_bus_cycles), 2)),
        ("commands", use.commands),
        ("row activations", use.row_activations),
        ("row hits", use.row_hits),
        ("refreshes", use.refreshes),
        ("link down (B)", use.link_down_bytes),
        ("link up (B)", use.link_up_bytes),
        ("host (ns)", log.device.nanoseconds(use.host_cycles)),
    )


def _job_slice(job: Job) -> Slice:
    args: list[tuple[str, Value]] = [("start cycle", job.start_cycle), ("end cycle", job.end_cycle)]
    if job.chunk_bytes:
        args.append(("bytes", int(job.chunk_bytes)))
    return Slice(job.phase, job.start_cycle, job.end_cycle, tuple(args))


def _own_time(execution: Execution) -> tuple[int, int]:
    """Return from when to when a program issued commands of its own."""
    return first_own_cycle(execution), int(execution.runs.last_cycle[-1]) + 1


def _dispatcher_slices(
    log: StepLog, executions: Sequence[Execution], instruction_count: Callable[[Program], int]
) -> list[Slice]:
    """Return the instructions that each program execution takes, over the time in which they are issued."""
    slices, dispatcher = [], log.device.dispatcher
    for execution in executions:
        start, end = _own_time(execution)
        count, commands = instruction_count(execution.phase.program), int(execution.runs.count.sum())
        args: list[tuple[str, Value]] = [
            ("instructions", count),
            ("commands", commands),
            ("instructions per µs", round(count / log.device.nanoseconds(end - start) * 1e3, 1)),
        ]
        if dispatcher is not None:
            busy = count / (end - start) / dispatcher.instructions_per_cycle
            args += [("bytes", count * dispatcher.instruction_bytes), ("dispatcher busy (%)", round(100 * busy, 2))]
        slices.append(Slice(f"{count} instructions", start, end, tuple(args)))
    return slices


def _execution_slice(execution: Execution) -> Slice:
    start, end = _own_time(execution)
    args: tuple[tuple[str, Value], ...] = (
        ("program", execution.phase.program.comment),
        ("channels that take part", round(float(execution.phase.active_channels), 2)),
        ("first command at cycle", start),
        ("last command at cycle", end - 1),
        ("completed at cycle", execution.completed_cycle),
        ("commands", int(execution.runs.count.sum())),
        ("refreshes", execution.refreshes),
    )
    return Slice(execution.phase.name, start, end, args)
