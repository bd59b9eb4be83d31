"""The timeline of one decode step: host, link and channels as first-in-first-out servers joined by events.

Times are cycles of the device clock from the moment the token id is known to the host. Operators run in program order,
each when the operators it depends on have finished and its server is free; what crosses the link waits for the chunk
before it in the same direction. All channels of all devices are in lock-step, so that one channel is simulated.
A `StepObserver` is told everything on the way (`simulator.step_log` keeps it).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from configs.device import Device, Host
from simulator.channel import RunReport
from simulator.engine import Engine
from simulator.instructions import instruction_count
from simulator.isa import KINDS, Program
from simulator.issue_log import IssueLog
from simulator.program_code import ProgramCode, flatten
from simulator.step import HostPhase, Phase, PimPhase, Step

Cycles = NDArray[np.int64]
NONE_ARRIVE: Cycles = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work of the server host, down or up; down and up are the directions of the link."""

    server: str
    phase: str
    start_cycle: int
    end_cycle: int
    chunk_bytes: int


class StepObserver(Protocol):
    """Told what happens while a step is walked, operator by operator in program order."""

    def served(self, job: Job) -> None:
        """Host or link did a piece of the current operator."""

    def executed(self, phase: PimPhase, report: RunReport, log: IssueLog) -> None:
        """The channel executed a phase of the current operator."""

    def finished(self, task_index: int, ready: int, end: int, moved: int) -> None:
        """The current operator, ready at a cycle, ended at another, and so moved the end of the step by some."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one decode step took.

    `owner_cycles` is how far the phases of each owner moved the end of the step: the sum over owners is the latency.
    `counts` are commands by kind over all channels of all devices, `down_bytes` and `up_bytes` per device;
    `commands_simulated` are those of one channel, `own_commands` the controller's among them; `refresh_cycles` is how
    long refreshes kept the channel's commands waiting, `stalls` what else they waited for, by cause of the timing table
    (empty unless the simulator explains); `slowdown` is how many times slower than the link the host paced its
    transfers.
    """

    latency_cycles: int
    owner_cycles: Mapping[str, int]
    counts: NDArray[np.float64]
    commands_simulated: int
    own_commands: int
    down_bytes: int
    up_bytes: int
    host_busy_cycles: int
    channel_busy_cycles: float
    link_busy_cycles: int
    dispatcher_busy_cycles: int
    refreshes: int
    refresh_cycles: int
    stalls: NDArray[np.int64]
    slowdown: int


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """Chunks of a phase on one direction of the link: how long each takes, and all before it: int[n] each."""

    sizes: tuple[int, ...]
    cycles: Cycles
    before: Cycles
    total_cycles: int
    total_bytes: int


@dataclass(slots=True)
class Server:
    """A first-in-first-out server; `free` is when its last job ends."""

    name: str
    free: int = 0
    busy: int = 0
    observer: StepObserver | None = None

    def serve(self, phase: str, ready: int, duration: int) -> int:
        """Serve one job after those before it; return when it ends."""
        start = max(self.free, ready)
        self.free = start + duration
        self.busy += duration
        if self.observer is not None:
            self.observer.served(Job(self.name, phase, start, self.free, 0))
        return self.free

    def serve_chunks(self, phase: str, ready: Cycles, chunks: Chunks) -> Cycles:
        """Serve chunks one after the other, each from the cycle it is ready; return when each ends: int[n].

        A chunk starts once one before it, or the server, kept busy without a gap since it became ready, is done.
        """
        starts = chunks.before + np.maximum(np.maximum.accumulate(ready - chunks.before), self.free)
        ends: Cycles = starts + chunks.cycles
        self.free = int(ends[-1])
        self.busy += chunks.total_cycles
        if self.observer is not None:
            for start, end, size in zip(starts.tolist(), ends.tolist(), chunks.sizes, strict=True):
                self.observer.served(Job(self.name, phase, start, end, size))
        return ends


@dataclass(slots=True)
class Totals:
    """Sums that grow while the step runs."""

    counts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(KINDS)))
    commands: int = 0
    own_commands: int = 0
    channel_busy: float = 0.0
    refreshes: int = 0
    refresh_cycles: int = 0
    stalls: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    down_bytes: int = 0
    up_bytes: int = 0


class StepSimulator:
    """Runs steps on one device type; keeps what depends on the device or a program alone."""

    def __init__(self, device: Device, *, explain: bool = False) -> None:
        """Resolve the timing table once; raises ValueError for a device without link or host.

        With `explain` the reports say what commands waited for.
        """
        if device.link is None or device.host is None:
            raise ValueError(f"{device.name} has no link or host section: a step needs both")
        self.device, self.link, self.host = device, device.link, device.host
        self.engine = Engine(device, explain=explain)
        self._codes: dict[int, tuple[Program, ProgramCode]] = {}
        self._sent: dict[int, tuple[Program, int]] = {}
        self._chunks: dict[tuple[int, int], tuple[PimPhase, Chunks, Chunks]] = {}

    def run(self, step: Step, slowdown: int = 1, observer: StepObserver | None = None) -> StepReport:
        """Simulate one step from fresh channels; with `slowdown` the host sends and takes chunks that much slower.

        An observer changes nothing but the time this takes.
        """
        return _Run(self, slowdown, observer).execute(step)

    def forget(self) -> None:
        """Drop the flattened programs and the transfers of the steps so far."""
        self._codes.clear()
        self._sent.clear()
        self._chunks.clear()

    def code(self, program: Program) -> ProgramCode:
        """Return the flattened program, flattened once per program object."""
        kept = self._codes.get(id(program))
        if kept is None:
            kept = self._codes[id(program)] = (program, flatten(program))
        return kept[1]

    def dispatch_cycles(self, program: Program) -> int:
        """Return how long the dispatcher sends the instructions of a program, counted once per program object."""
        dispatcher = self.device.dispatcher
        if dispatcher is None:
            return 0
        kept = self._sent.get(id(program))
        if kept is None:
            sent = instruction_count(program, dispatcher.sequencer_loop_depth)
            kept = self._sent[id(program)] = (program, ceil(sent / dispatcher.instructions_per_cycle))
        return kept[1]

    def host_cycles(self, host: Host, phase: HostPhase) -> int:
        """Return the cycles of a host phase."""
        return self.cycles(phase.work_ns + (host.launch_ns if phase.launch else 0.0))

    def chunks(self, phase: PimPhase, slowdown: int) -> tuple[Chunks, Chunks]:
        """Return what a phase sends down and up, counted once per phase object."""
        kept = self._chunks.get((id(phase), slowdown))
        if kept is None:
            down, up = (self._transfers(sizes, slowdown) for sizes in (phase.down_bytes, phase.up_bytes))
            kept = self._chunks[id(phase), slowdown] = (phase, down, up)
        return kept[1:]

    def _transfers(self, sizes: tuple[int, ...], slowdown: int) -> Chunks:
        bandwidth = self.link.bandwidth_gb_per_s
        cycles = np.array([self.cycles(slowdown * size / bandwidth) for size in sizes], dtype=np.int64)
        return Chunks(sizes, cycles, np.cumsum(cycles) - cycles, int(cycles.sum()), sum(sizes))

    @property
    def bytes_per_cycle(self) -> float:
        """What one direction of the link moves in a cycle."""
        return self.link.bandwidth_gb_per_s * self.device.cycle_ps / 1000

    def cycles(self, nanoseconds: float) -> int:
        """Convert a duration to whole cycles, rounded up."""
        return ceil(nanoseconds * 1000 / self.device.cycle_ps)


def _ready(phase: Phase, task_ready: int, ends: list[int]) -> int:
    """Return when a phase may start: after those it names, by default after the one before it."""
    if phase.after is None:
        return ends[-1] if ends else task_ready
    return max((ends[index] for index in phase.after), default=task_ready)


class _Run:
    """One walk over a step; owns the mutable servers and the channel."""

    def __init__(self, simulator: StepSimulator, slowdown: int, observer: StepObserver | None) -> None:
        self.of = simulator
        self.slowdown = slowdown
        self.observer = observer
        self.hosts, self.down, self.up = (Server(name, observer=observer) for name in ("host", "down", "up"))
        self.dispatcher = Server("dispatcher")
        self.channel = simulator.engine.fresh_state()
        self.totals = Totals()
        self.latency = simulator.cycles(simulator.link.latency_ns)

    def execute(self, step: Step) -> StepReport:
        finished: list[int] = []
        owner_cycles: dict[str, int] = {}
        end = 0
        for task_index, dependencies in zip(step.sequence, step.dependencies, strict=True):
            ready = max((finished[index] for index in dependencies), default=0)
            before = end
            ends: list[int] = []
            for phase in step.tasks[task_index].phases:
                ends.append(self._phase(phase, _ready(phase, ready, ends)))
                owner_cycles[phase.owner] = owner_cycles.get(phase.owner, 0) + max(end, ends[-1]) - end
                end = max(end, ends[-1])
            finished.append(max(ends, default=ready))
            if self.observer is not None:
                self.observer.finished(task_index, ready, finished[-1], end - before)
        return self._report(end, owner_cycles)

    def _phase(self, phase: Phase, ready: int) -> int:
        if isinstance(phase, HostPhase):
            return self.hosts.serve(phase.name, ready, self.of.host_cycles(self.of.host, phase))
        return self._pim_phase(phase, ready)

    def _pim_phase(self, phase: PimPhase, ready: int) -> int:
        """Send the chunks down, run the program, send its results up; nothing to send up leaves the host free.

        The dispatcher fetches ahead: a program's last results come no earlier than its last instruction was sent.
        """
        down, up = self.of.chunks(phase, self.slowdown)
        arrivals = NONE_ARRIVE
        if down.sizes:
            arrivals = self.down.serve_chunks(phase.name, np.full(len(down.sizes), ready), down) + self.latency
        report = self._execute(phase, arrivals)
        self._count(phase, report)
        self.totals.down_bytes += down.total_bytes
        self.totals.up_bytes += up.total_bytes
        dispatched = self.dispatcher.serve(phase.name, ready + self.latency, self.of.dispatch_cycles(phase.program))
        if len(report.signals) != len(up.sizes):
            raise ValueError(
                f"{phase.name}: expected {len(up.sizes)} signals, one per chunk, found {len(report.signals)}"
            )
        if not up.sizes:
            return ready
        signals = np.array(report.signals, dtype=np.int64)
        signals[-1] = max(signals[-1], dispatched)
        return int(self.up.serve_chunks(phase.name, signals, up)[-1]) + self.latency

    def _execute(self, phase: PimPhase, arrivals: NDArray[np.int64]) -> RunReport:
        if self.observer is None:
            return self.of.engine.run(self.of.code(phase.program), self.channel, arrivals)
        report, log = self.of.engine.run_logged(self.of.code(phase.program), self.channel, arrivals)
        self.observer.executed(phase, report, log)
        return report

    def _count(self, phase: PimPhase, report: RunReport) -> None:
        totals = self.totals
        counts = np.array(report.counts)
        totals.counts += counts * phase.active_channels
        totals.commands += int(counts.sum())
        totals.own_commands += report.own_commands
        totals.channel_busy += (report.completed - report.first_issue) * phase.active_channels
        totals.refreshes += report.refreshes
        totals.refresh_cycles += report.refresh_cycles
        if report.stalls:
            totals.stalls = np.array(report.stalls, dtype=np.int64) + (totals.stalls if len(totals.stalls) else 0)

    def _report(self, end: int, owner_cycles: dict[str, int]) -> StepReport:
        totals = self.totals
        return StepReport(
            latency_cycles=end,
            owner_cycles=owner_cycles,
            counts=totals.counts,
            commands_simulated=totals.commands,
            own_commands=totals.own_commands,
            down_bytes=totals.down_bytes,
            up_bytes=totals.up_bytes,
            host_busy_cycles=self.hosts.busy,
            channel_busy_cycles=totals.channel_busy,
            link_busy_cycles=max(self.down.busy, self.up.busy),
            dispatcher_busy_cycles=self.dispatcher.busy,
            refreshes=totals.refreshes,
            refresh_cycles=totals.refresh_cycles,
            stalls=totals.stalls,
            slowdown=self.slowdown,
        )
