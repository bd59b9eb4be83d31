"""What a check of numerics found, and the comparisons that every check is made of."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.schedule import Schedule, schedule_text
from configs.device import Host
from simulator.channel import CLOSED
from simulator.functional import Channel, FlatProgram, HostMemory
from simulator.isa import Program
from simulator.program_text import print_program

Floats = NDArray[np.float32]
Rewrite = Callable[[str, Program], Program]

# Checks throw the host's times away.
UNTIMED_HOST = Host(
    name="untimed",
    memory_bandwidth_gb_per_s=1,
    vector_gflops=1,
    matrix_gflops=1,
    launch_ns=0,
    power_w=1,
)


def as_lowered(_: str, program: Program) -> Program:
    """Return the program as it is; tests pass functions that break it instead, to see that this is caught."""
    return program


@dataclass(frozen=True, slots=True)
class Failure:
    """The first thing that went wrong: where, what was expected and found, and the command that wrote it if known."""

    operator: str
    element: str
    expected: str
    found: str
    command: str = ""
    case: str = ""


@dataclass(frozen=True, slots=True)
class NumericsReport:
    """Whether a schedule computes what it should; `cases` counts kernels executed on values."""

    schedule: str
    passed: bool
    cases: int
    note: str = ""
    failure: Failure | None = None

    def __str__(self) -> str:
        """Return one line: the verdict, and the first failure with both sides."""
        if self.failure is None:
            return f"{self.schedule}: numerics passed, {self.note or f'{self.cases} kernels executed'}"
        what = self.failure
        written = f", written by {what.command}" if what.command else ""
        written += f"; smallest failing case: {what.case}" if what.case else ""
        return (
            f"{self.schedule}: numerics failed in {what.operator}, {what.element}: "
            f"expected {what.expected}, found {what.found}{written}"
        )


class MismatchError(Exception):
    """Raised inside a check at the first wrong value; `failure` says which."""

    def __init__(self, failure: Failure) -> None:
        """Keep the failure."""
        super().__init__(f"{failure.operator}, {failure.element}: expected {failure.expected}, found {failure.found}")
        self.failure = failure


def passed(schedule: Schedule, cases: int, note: str = "") -> NumericsReport:
    """Return the report of a schedule without faults."""
    return NumericsReport(schedule_text(schedule), True, cases, note)


def failed(schedule: Schedule, cases: int, failure: Failure) -> NumericsReport:
    """Return the report of a schedule with a fault."""
    return NumericsReport(schedule_text(schedule), False, cases, "", failure)


def command_text(flat: FlatProgram, instruction: int) -> str:
    """Return the text of the command behind an instruction; empty where there is none."""
    command = flat.commands[instruction] if instruction >= 0 else None
    return print_program(Program((command,))).strip() if command is not None else ""


def expect_at_rest(channel: Channel, memory: HostMemory, operator: str) -> None:
    """Raise MismatchError unless a program left memory mode and closed rows behind and handed over its results."""
    if channel.register_mode[0] or (channel.open_row != CLOSED).any():
        mode = "register mode" if channel.register_mode[0] else "memory mode"
        found = f"{mode}, {np.count_nonzero(channel.open_row != CLOSED)} open rows"
        raise MismatchError(Failure(operator, "state after the last command", "memory mode, all rows closed", found))
    kept = np.flatnonzero((memory.output_events >= 0) & (memory.taken == 0))
    if len(kept):
        event = memory.output_events[kept[0]]
        found = f"{len(kept)} outputs that no SIGNAL handed over"
        raise MismatchError(Failure(operator, f"output entry {kept[0]}", f"a SIGNAL of event {event}", found))


@dataclass(frozen=True, slots=True)
class Result:
    """One kernel's y[v, n] with what it should be: bit for bit, exactly in fp64, and the bound on their distance."""

    operator: str
    found: Floats
    emulated: Floats
    exact: NDArray[np.float64]
    bound: NDArray[np.float64]
    integers: NDArray[np.bool_]
    writer: Callable[[int, int], str]

    def check(self) -> None:
        """Raise MismatchError at the first element that breaks one of the three conditions."""
        same = self.found.view(np.uint32) == self.emulated.view(np.uint32)
        self._require(same, self.emulated, "")
        self._require((self.found == self.exact) | ~self.integers, self.exact, " exactly, on integers")
        inside = np.abs(self.found - self.exact) <= self.bound
        self._require(inside, self.exact, " within the error bound")

    def _require(self, fine: NDArray[np.bool_], expected: NDArray[np.floating], how: str) -> None:
        if fine.all():
            return
        vector, output = (int(place) for place in np.argwhere(~fine)[0])
        raise MismatchError(
            Failure(
                operator=self.operator,
                element=f"vector {vector}, output {output} ({np.count_nonzero(~fine)} of {fine.size} are wrong)",
                expected=f"{float(expected[vector, output])!r}{how}",
                found=repr(float(self.found[vector, output])),
                command=self.writer(vector, output),
            )
        )
