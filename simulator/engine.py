"""The fast timing engine: the same cycles, counts, signals and final state as `simulator.reference_engine`, compiled.

It trusts the legality of programs (the reference engine checks it) and skips exactly what repeats:

* repetitions of one command on one bank (a loop's whole body): the only rule that moves is the one the command sets
  itself, so that all of them up to the next refresh follow at one fixed distance;
* iterations of a loop that has come back to a state it has met before (`simulator.engine_repeat`).
"""

from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.channel import (
    CLOCK,
    COMPLETION,
    HOLD,
    NEXT_REFRESH,
    NO_CAUSE,
    OVERTAKEN_LIMIT,
    OWED_ROWS,
    ChannelState,
    IllegalProgram,
    RunReport,
    fresh_state,
)
from simulator.engine_channel import (
    DETAIL,
    LOGGED,
    NO_BANK,
    NO_ROW,
    SKIPPED,
    Channel,
    base_cycle,
    cause_of,
    earliest_cycle,
    issue,
    mark,
)
from simulator.engine_refresh import cycle_after_refreshes
from simulator.engine_repeat import Saved, begin_loop, room_for, skip_repetitions
from simulator.engine_timing import (
    EFFECT,
    NO_STEP,
    OPENS,
    REACH,
    SPECIAL,
    STEP,
    STEP_CAUSE,
    TICKS,
    Array,
    EngineTiming,
    resolve,
)
from simulator.isa import CODE_OF, EVENT_KINDS, KINDS, Kind
from simulator.issue_log import IssueLog
from simulator.jit import kernel, spliced
from simulator.program_code import (
    ALONE,
    BANK,
    DEPTH_LIMIT,
    END,
    EVENT,
    KIND,
    LOOP,
    REPEATS,
    REPETITIONS,
    ROW,
    ROW_STEP,
    SHIFTS_ROWS,
    TARGET,
    TRAITS,
    ProgramCode,
)
from simulator.timing_table import TimingTable, timing_table

SIGNAL, WAIT = CODE_OF[Kind.SIGNAL], CODE_OF[Kind.WAIT]
DONE, UNKNOWN_EVENT, OVERTAKEN = range(3)
NO_LOG: Array = np.zeros((0, 4), dtype=np.int64)


class Skipping(IntEnum):
    """What the engine may skip; the results are the same."""

    NOTHING = 0
    RUNS = 1  # repetitions of single commands
    LOOPS = 2  # repeated loop states, too


class Engine:
    """Runs programs on channels of one device."""

    def __init__(self, device: Device, skipping: Skipping = Skipping.LOOPS, *, explain: bool = False) -> None:
        """Resolve the timing table once; with `explain` every run says what its commands waited for."""
        self.device, self.skipping, self.explain = device, skipping, explain
        self.table: TimingTable = timing_table(device)
        self.timing: EngineTiming = resolve(device, self.table, skip_runs=skipping >= Skipping.RUNS)
        self._known = sum(1 << CODE_OF[kind] for kind in KINDS if self.table.has(kind) or kind in EVENT_KINDS)
        self._causes = len(self.table.causes) if explain else 0
        self._known_touched: dict[int, tuple[int, bool]] = {}
        self._saved = room_for(self._arrays(self.fresh_state(), (0, False), NO_LOG))

    @cached_property
    def _walking(self) -> EngineTiming:
        """The rules for a walk in which every repetition is issued."""
        return resolve(self.device, self.table, skip_runs=False)

    def fresh_state(self) -> ChannelState:
        """Return the state at cycle 0."""
        return fresh_state(self.device, self.table)

    def run(self, code: ProgramCode, state: ChannelState, events: NDArray[np.int64]) -> RunReport:
        """Issue a program on a channel, writing into `state`, and return what happened.

        `events[n]` is the cycle at which event n arrives. Raises IllegalProgram for a command or bank the device does
        not have, an unknown event, or a command that finds no room between two refreshes; `state` is then of no use.
        """
        channel = self._channel(code, state, NO_LOG)
        return self._execute(code, self.timing, channel, state, events, self.skipping is Skipping.LOOPS)

    def run_logged(
        self, code: ProgramCode, state: ChannelState, events: NDArray[np.int64]
    ) -> tuple[RunReport, IssueLog]:
        """Issue a program without skipping anything, and return every command beside the report."""
        rows = 1 << 12
        while True:
            tried = state.copy()
            channel = self._channel(code, tried, np.zeros((rows, 4), dtype=np.int64))
            report = self._execute(code, self._walking, channel, tried, events, False)
            logged = int(channel.summary[LOGGED])
            if logged <= rows:
                for name in ChannelState.__slots__:
                    getattr(state, name)[:] = getattr(tried, name)
                return report, IssueLog(*(np.ascontiguousarray(column) for column in channel.log[:logged].T))
            rows = logged

    def _touched(self, kinds: int) -> tuple[int, bool]:
        """Return how many nodes commands of these kinds (a bit each) reach, and whether a window looks back at any."""
        if kinds not in self._known_touched:
            tree = self.table.addressing
            codes = [code for code in range(len(KINDS)) if kinds >> code & 1]
            reach = max((tree.reach[code] for code in codes), default=1)
            remembers = bool(self.timing.kinds[codes, SPECIAL].any())
            self._known_touched[kinds] = ((*tree.first_node, tree.nodes)[reach], remembers)
        return self._known_touched[kinds]

    def _channel(self, code: ProgramCode, state: ChannelState, log: Array) -> Channel:
        if code.lowest_bank < 0 or code.highest_bank >= len(state.open_row):
            found = f"banks {code.lowest_bank} to {code.highest_bank}"
            raise IllegalProgram(f"program: expected bank in 0..{len(state.open_row) - 1}, found {found}")
        if code.kinds & ~self._known:
            unknown = next(kind for kind in code.occurring() if not self._known >> CODE_OF[kind] & 1)
            raise IllegalProgram(f"program: expected commands {self.device.name} has, found {unknown}")
        return self._arrays(state, self._touched(code.kinds), log)

    def _arrays(self, state: ChannelState, touched: tuple[int, bool], log: Array) -> Channel:
        return Channel(
            ready=state.ready,
            cause=state.cause,
            history=state.history,
            open_row=state.open_row,
            owed_row=state.owed_row,
            scalars=state.scalars,
            counts=np.zeros(len(KINDS), dtype=np.int64),
            stalls=np.zeros(self._causes, dtype=np.int64),
            summary=np.array((-1, 0, 0, 0, 0, 0, 0, *touched), dtype=np.int64),
            rows=np.zeros(len(state.open_row), dtype=np.int64),
            log=log,
        )

    def _execute(
        self,
        code: ProgramCode,
        timing: EngineTiming,
        channel: Channel,
        state: ChannelState,
        events: Array,
        skip_loops: bool,
    ) -> RunReport:
        signals = np.full(code.signals, -1, dtype=np.int64)
        variables = np.zeros(DEPTH_LIMIT, dtype=np.int64)
        status = _run(code, timing, channel, self._saved, variables, events, signals, skip_loops)
        first_issue, refreshes, refresh_cycles, own, skipped, _, detail, _, _ = channel.summary.tolist()
        if status == UNKNOWN_EVENT:
            raise IllegalProgram(f"WAIT: expected one of {len(events)} known events, found event {detail}")
        if status == OVERTAKEN:
            raise IllegalProgram(
                f"{KINDS[detail]}: expected room between two refreshes, found none in {OVERTAKEN_LIMIT} tries"
            )
        return RunReport(
            first_issue=first_issue,
            last_issue=state.clock if first_issue >= 0 else -1,
            completed=state.completion,
            counts=tuple(channel.counts.tolist()),
            signals=tuple(signals.tolist()),
            refreshes=refreshes,
            refresh_cycles=refresh_cycles,
            own_commands=own,
            stalls=tuple(channel.stalls.tolist()),
            skipped=skipped,
        )


@spliced
def _value(code: ProgramCode, place: int, operand: int, variables: Array, depth: int) -> int:
    """Return an operand for the current loop variables."""
    value = code.constant[place, operand]
    for level in range(depth):
        value += code.coefficient[place, operand, level] * variables[level]
    return value  # type: ignore[no-any-return]


@spliced
def _skip_run(timing: EngineTiming, channel: Channel, kind: int, bank: int, left: int) -> int:
    """Jump over the repetitions of the command just issued that no refresh overtakes, and return their number."""
    step, cycle = timing.kinds[kind, STEP], channel.scalars[CLOCK]
    skipped = min(left, (channel.scalars[NEXT_REFRESH] - 1 - cycle) // step)
    if skipped > 0:
        mark(timing, channel, kind, bank, cycle + skipped * step)
        channel.counts[kind] += skipped
        channel.summary[SKIPPED] += skipped
        if channel.stalls.shape[0] > 0:
            channel.stalls[timing.kinds[kind, STEP_CAUSE]] += skipped * (step - timing.kinds[kind, TICKS])
    return max(skipped, 0)  # type: ignore[no-any-return]


@spliced
def _command(timing: EngineTiming, channel: Channel, kind: int, bank: int, row: int) -> bool:
    """Issue a command of the program, and return whether refreshes left it room."""
    cycle = max(earliest_cycle(timing, channel, kind, bank), channel.scalars[HOLD])
    if channel.stalls.shape[0] > 0:
        base = base_cycle(timing, channel, kind)
        cause = cause_of(timing, channel, kind, bank, cycle) if cycle > base else NO_CAUSE
        if cause >= 0:
            channel.stalls[cause] += cycle - base
    if cycle >= channel.scalars[NEXT_REFRESH] or channel.scalars[OWED_ROWS] > 0:
        cycle = cycle_after_refreshes(timing, channel, kind, bank)
        if cycle < 0:
            return False
    issue(timing, channel, kind, bank, row, cycle)
    return True


@kernel
def _run(
    code: ProgramCode,
    timing: EngineTiming,
    channel: Channel,
    saved: Saved,
    variables: Array,
    events: Array,
    signals: Array,
    skip_loops: bool,
) -> int:
    """Walk the program and return a status; a bad status leaves the event or kind it is about in the summary."""
    instructions = code.instructions
    depth, place = 0, 0
    while place < len(instructions):
        kind = instructions[place, KIND]
        if kind == LOOP:
            if instructions[place, REPETITIONS] == 0:
                place = instructions[place, TARGET]
            else:
                variables[depth] = 0
                if skip_loops and instructions[place, TRAITS] & REPEATS:
                    begin_loop(saved, depth)
                depth += 1
        elif kind == END:
            start = instructions[place, TARGET]
            count, traits = instructions[start, REPETITIONS], instructions[start, TRAITS]
            variables[depth - 1] += 1
            if skip_loops and traits & REPEATS and variables[depth - 1] < count - 1:
                shifts_rows = traits & SHIFTS_ROWS != 0
                row_step = instructions[start, ROW_STEP]
                skip_repetitions(
                    channel, saved, variables, timing.longest_window, depth - 1, count, shifts_rows, row_step
                )
            if variables[depth - 1] < count:
                place = start
            else:
                depth -= 1
        elif kind == SIGNAL:
            signals[_value(code, place, EVENT, variables, depth)] = channel.scalars[COMPLETION]
        elif kind == WAIT:
            event = _value(code, place, EVENT, variables, depth)
            if event >= len(events) or events[event] < 0:
                channel.summary[DETAIL] = event
                return UNKNOWN_EVENT
            channel.scalars[HOLD] = max(channel.scalars[HOLD], events[event])
        else:
            bank = _value(code, place, BANK, variables, depth) if timing.kinds[kind, REACH] > 1 else NO_BANK
            row = _value(code, place, ROW, variables, depth) if timing.kinds[kind, EFFECT] == OPENS else NO_ROW
            if not _command(timing, channel, kind, bank, row):
                channel.summary[DETAIL] = kind
                return OVERTAKEN
            if instructions[place, TRAITS] & ALONE and timing.kinds[kind, STEP] != NO_STEP:
                left = instructions[instructions[place + 1, TARGET], REPETITIONS] - 1 - variables[depth - 1]
                variables[depth - 1] += _skip_run(timing, channel, kind, bank, left)
        place += 1
    return DONE
