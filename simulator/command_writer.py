"""Writes every command that one channel issues in a step: a `StepObserver` that fills a `simulator.command_table`."""

import csv
from collections.abc import Iterator
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.addressing import LEVELS, addressing
from simulator.channel import RunReport
from simulator.command_table import CommandRow
from simulator.isa import (
    ACTIVATES,
    CODE_OF,
    EVENT_KINDS,
    KINDS,
    OPERANDS,
    PRECHARGES,
    REFRESHES,
    Command,
    Instruction,
    Kind,
    Loop,
    Program,
    command_count,
)
from simulator.issue_log import IssueLog
from simulator.step import PimPhase, Step
from simulator.timeline import Job

ABSENT = -1
CHANNEL = 0  # of all channels, in lock-step, the one that is written
# What the log of a channel says in full. The controller issues commands of these kinds on its own, and no others.
FROM_LOG = ACTIVATES | PRECHARGES | REFRESHES | {Kind.ACT1, Kind.TMOD}
DATA = ("column", "data")
OperandsOf = dict[Kind, tuple[str, ...]]
OPERANDS_OF: OperandsOf = {
    **dict.fromkeys((Kind.RD, Kind.WR, Kind.RDA, Kind.WRA), DATA),
    Kind.WRA16: ("column", "lane", "data"),
    Kind.MAC: ("column", "lane", "buffer", "register"),
    Kind.MAC16: ("column", "lane", "buffer", "register"),
    Kind.MACL16: ("column", "lane", "buffer", "register"),
    Kind.SCALE16: ("column",),
    Kind.EWMUL16: ("column",),
    Kind.AF16: ("register",),
    Kind.RDCP: ("column", "buffer"),
    Kind.WRCP: ("column", "buffer"),
    Kind.WRGB: ("buffer", "data"),
    Kind.WRMAC16: ("register", "data"),
    Kind.RDMAC16: ("register", "data"),
    Kind.RDAF16: ("register", "data"),
}
"""Operands that a command has beside bank and row."""
WITH_STRIDES = {kind: (*OPERANDS_OF[kind], "data") for kind in (Kind.MAC16, Kind.MACL16)}
"""What multiplies have where one serves several vectors."""

Array = NDArray[np.int64]


def commands_of_step(step: Step) -> int:
    """Return how many commands the programs of a step issue on a channel, the controller's own not counted."""
    of_task = [
        sum(_issued(phase.program.body) for phase in task.phases if isinstance(phase, PimPhase)) for task in step.tasks
    ]
    return sum(of_task[index] for index in step.sequence)


def _issued(body: tuple[Instruction, ...]) -> int:
    events = sum(
        item.count * (command_count(item.body) - _issued(item.body))
        if isinstance(item, Loop)
        else item.kind in EVENT_KINDS
        for item in body
    )
    return command_count(body) - events


class CommandWriter:
    """A `StepObserver` that writes the table; a phase at a time is in memory, and the operands of distinct programs."""

    def __init__(self, step: Step, device: Device, target: TextIO) -> None:
        """Write the header."""
        self._device = device
        self._addressing = addressing(device)
        self._operands: dict[int, tuple[Program, dict[str, Array]]] = {}
        self._operators = _operators(step)
        self._current = next(self._operators, ("", 0))
        self._writer = csv.writer(target, lineterminator="\n")
        self._writer.writerow(CommandRow._fields)
        self.rows = 0

    def served(self, job: Job) -> None:
        """Host and link issue no commands."""

    def finished(self, task_index: int, ready: int, end: int, moved: int) -> None:
        """Go on to the next operator."""
        self._current = next(self._operators, ("", 0))

    def executed(self, phase: PimPhase, report: RunReport, log: IssueLog) -> None:
        """Write the commands of a phase."""
        task, occurrence = self._current
        numbers = self._columns(log, phase.program)
        kinds = [str(KINDS[code]) for code in log.kind.tolist()]
        columns = [numbers[name].tolist() for name in CommandRow._fields if name in numbers]
        rest = (task, occurrence, phase.name)
        rows = zip(log.cycle.tolist(), kinds, *columns, strict=True)
        self._writer.writerows((*row, *rest) for row in rows)
        self.rows += len(log)

    def _columns(self, log: IssueLog, program: Program) -> dict[str, Array]:
        """Return all columns of numbers but the cycle."""
        operands = self._operands_of(program)
        own = ~np.isin(log.kind, [CODE_OF[kind] for kind in FROM_LOG])
        if int(own.sum()) != len(operands["kind"]) or not np.array_equal(log.kind[own], operands["kind"]):
            raise AssertionError(f"{program.comment}: the channel issued other commands than the program has")
        found = {
            name: np.full(len(log), ABSENT, dtype=np.int64) for name in ("row", *DATA, "lane", "buffer", "register")
        }
        for name, column in found.items():
            column[own] = operands[name]
        opens = np.isin(log.kind, [CODE_OF[kind] for kind in ACTIVATES])
        found["row"][opens] = log.row[opens]
        bank = log.bank.copy()
        bank[own] = operands["bank"]
        levels = dict(zip(("pc", "rank_or_sid", "bg", "bank"), self._levels(log.kind, bank), strict=True))
        channel = np.full(len(log), CHANNEL, dtype=np.int64)
        return {"channel": channel, **levels, "col": found.pop("column"), **found}

    def _levels(self, kind: Array, bank: Array) -> Iterator[Array]:
        """Yield the place of each command within every level below the channel."""
        reach, below = np.array(self._addressing.reach, dtype=np.int64)[kind], self._addressing.banks_below
        for level in range(1, len(LEVELS)):
            place = bank % below[level - 1] // below[level]
            yield np.where(reach > level, place, ABSENT)

    def _operands_of(self, program: Program) -> dict[str, Array]:
        if id(program) not in self._operands:
            self._operands[id(program)] = (program, _resolved_operands(program))
        return self._operands[id(program)][1]


def _operators(step: Step) -> Iterator[tuple[str, int]]:
    """Yield task and occurrence of every operator of a step."""
    seen: dict[str, int] = {}
    for index in step.sequence:
        name = step.tasks[index].task
        seen[name] = seen.get(name, -1) + 1
        yield name, seen[name]


def _resolved_operands(program: Program) -> dict[str, Array]:
    """Return kind and operands of the commands whose operands are not in the log, in order."""
    parts: list[Array] = [np.zeros((0, 1 + len(OPERANDS)), dtype=np.int64)]
    strides = program.vectors_per_multiply > 1
    _resolve(program.body, (), OPERANDS_OF | (WITH_STRIDES if strides else {}), parts)
    table = np.concatenate(parts)
    found = {"kind": table[:, 0]} | {name: table[:, 1 + place] for place, name in enumerate(OPERANDS)}
    found["column"] = np.where(found["column"] == ABSENT, ABSENT, found["column"] // program.accesses_per_column)
    return found


def _resolve(
    body: tuple[Instruction, ...], variables: tuple[int, ...], operands_of: OperandsOf, parts: list[Array]
) -> None:
    for item in body:
        match item:
            case Loop(count, (Command() as command,)):
                _append(command, variables, count, operands_of, parts)
            case Loop(count, inner):
                for index in range(count):
                    _resolve(inner, (*variables, index), operands_of, parts)
            case Command():
                _append(item, variables, None, operands_of, parts)


def _append(
    command: Command, variables: tuple[int, ...], count: int | None, operands_of: OperandsOf, parts: list[Array]
) -> None:
    """Add one command, or so many of a loop around nothing else."""
    if command.kind in FROM_LOG or command.kind in EVENT_KINDS:
        return
    present = ("bank", "row", *operands_of.get(command.kind, ()))
    part = np.full((1 if count is None else count, 1 + len(OPERANDS)), ABSENT, dtype=np.int64)
    part[:, 0] = CODE_OF[command.kind]
    inner = variables if count is None else (*variables, 0)
    for place, name in enumerate(OPERANDS):
        if name not in present:
            continue
        operand = getattr(command, name)
        step = dict(operand.terms).get(len(variables), 0) if count is not None else 0
        part[:, 1 + place] = operand.at(inner) + step * np.arange(len(part))
    parts.append(part)
