"""The text form of a step: `parse_step(print_step(step)) == step`; programs as in `simulator.program_text`.

    step    := task* "order" run*
    task    := "task" NAME phase*
    phase   := "host" QUOTED "owner" QUOTED "work_ns" NUMBER ("launch" | "resume") after
             | "pim" QUOTED "owner" QUOTED "channels" NUMBER "down" chunks "up" chunks after  program  "end"
    after   := "after" ("previous" | "start" | phase number ("," phase number)*)
    chunks  := "-" | BYTES ("x" count)? ("," BYTES ("x" count)?)*
    run     := task number ("after" run number ("," run number)*)?

Tasks, phases and runs are numbered from 0, lines that start with `#` are comments, `BYTESxCOUNT` are equal chunks.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from configs.errors import UserError
from simulator.program_text import parse_program, print_program
from simulator.step import HostPhase, Phase, PimPhase, Step, TaskPhases

NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[+-]?[0-9]{1,3})?"
NUMBERS = r"[0-9]{1,9}(?:,[0-9]{1,9})*"
AFTER = rf"after (?P<after>previous|start|{NUMBERS})"
CHUNK = r"[0-9]{1,18}(?:x[0-9]{1,6})?"
CHUNKS = rf"-|{CHUNK}(?:,{CHUNK})*"
NAMES = r'"(?P<name>[^"]*)" owner "(?P<owner>[^"]*)"'
TASK = re.compile(r"task (?P<name>.+)", re.ASCII)
HOST = re.compile(rf"host {NAMES} work_ns (?P<work>{NUMBER}) (?P<launch>launch|resume) {AFTER}", re.ASCII)
PIM = re.compile(
    rf"pim {NAMES} channels (?P<channels>{NUMBER}) down (?P<down>{CHUNKS}) up (?P<up>{CHUNKS}) {AFTER}", re.ASCII
)
RUN = re.compile(rf"(?P<task>[0-9]{{1,9}})(?: after (?P<after>{NUMBERS}))?", re.ASCII)
ORDER, END = "order", "end"


def print_step(step: Step, comments: Mapping[int, str] | None = None) -> Iterator[str]:
    """Yield the text of a step task by task, then the order; `comments` stand at the head of tasks, by their number."""
    for number, task in enumerate(step.tasks):
        yield "".join(f"{line}\n" for line in _task_lines(task, (comments or {}).get(number, "")))
    runs = zip(step.sequence, step.dependencies, strict=True)
    lines = (f"  {task} after {_joined(after)}" if after else f"  {task}" for task, after in runs)
    yield "".join(f"{line}\n" for line in (ORDER, *lines))


def parse_step(text: str, source: str = "step text") -> Step:
    """Return the step that `text` denotes; raises UserError with the line number where it breaks the grammar."""
    draft = _Draft(text.splitlines(), source)
    while (line := draft.next_line()) is not None:
        if draft.ordered:
            draft.add_run(line)
        elif line == ORDER:
            draft.ordered = True
        elif found := TASK.fullmatch(line):
            draft.tasks.append((found["name"], []))
        else:
            draft.add_phase(line)
    if not draft.ordered:
        raise _error(source, f"a line `{ORDER}` behind the tasks", "the end of the text")
    tasks = tuple(TaskPhases(name, tuple(phases)) for name, phases in draft.tasks)
    return Step(tasks, tuple(task for task, _ in draft.runs), tuple(after for _, after in draft.runs))


@dataclass(slots=True)
class _Draft:
    """What has been read so far; `at` counts the lines taken."""

    lines: list[str]
    source: str
    at: int = 0
    ordered: bool = False
    tasks: list[tuple[str, list[Phase]]] = field(default_factory=list)
    runs: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    @property
    def where(self) -> str:
        return f"{self.source}, line {self.at}"

    def next_line(self) -> str | None:
        """Take the next line that says something; None at the end."""
        while self.at < len(self.lines):
            self.at += 1
            line = self.lines[self.at - 1].strip()
            if line and not line.startswith("#"):
                return line
        return None

    def add_phase(self, line: str) -> None:
        if not self.tasks:
            raise _error(self.where, "`task NAME` before its phases", line)
        phases = self.tasks[-1][1]
        if found := HOST.fullmatch(line):
            launch = found["launch"] == "launch"
            after = self._after(found["after"], len(phases))
            phases.append(HostPhase(found["name"], found["owner"], float(found["work"]), launch, after))
        elif found := PIM.fullmatch(line):
            after = self._after(found["after"], len(phases))
            first = self.at
            while self.next_line() != END:
                if self.at >= len(self.lines):
                    raise _error(self.where, f"`{END}` behind the program of {found['name']}", "the end of the text")
            # Empty lines in place of what stands before, so that mistakes are told with their line.
            program = parse_program("\n" * first + "\n".join(self.lines[first : self.at - 1]), self.source)
            chunks = _parsed_chunks(found["down"]), _parsed_chunks(found["up"])
            phases.append(PimPhase(found["name"], found["owner"], program, *chunks, float(found["channels"]), after))
        else:
            raise _error(self.where, "a task, a host or pim phase, or the order", line)

    def _after(self, text: str, phases: int) -> tuple[int, ...] | None:
        if text in ("previous", "start"):
            return None if text == "previous" else ()
        return self._below(_parsed_numbers(text), phases, "phase")

    def add_run(self, line: str) -> None:
        found = RUN.fullmatch(line)
        if found is None:
            raise _error(self.where, "`TASK after RUN,RUN`", line)
        (task,) = self._below((int(found["task"]),), len(self.tasks), "task")
        after = self._below(_parsed_numbers(found["after"] or ""), len(self.runs), "run")
        self.runs.append((task, after))

    def _below(self, numbers: tuple[int, ...], limit: int, what: str) -> tuple[int, ...]:
        unknown = [number for number in numbers if number >= limit]
        if unknown:
            raise _error(self.where, f"a {what} before it, of which there are {limit}", str(unknown[0]))
        return numbers


def _task_lines(task: TaskPhases, comment: str) -> Iterator[str]:
    yield from (f"# {line}" for line in comment.splitlines())
    yield f"task {task.task}"
    for phase in task.phases:
        match phase:
            case HostPhase():
                launch = "launch" if phase.launch else "resume"
                head = f'host "{phase.name}" owner "{phase.owner}" work_ns {float(phase.work_ns)!r} {launch}'
                yield f"  {head} after {_after_text(phase)}"
            case PimPhase():
                chunks = f"down {_chunks_text(phase.down_bytes)} up {_chunks_text(phase.up_bytes)}"
                channels = f"channels {float(phase.active_channels)!r}"
                yield f'  pim "{phase.name}" owner "{phase.owner}" {channels} {chunks} after {_after_text(phase)}'
                yield from (f"    {line}" for line in print_program(phase.program).splitlines())
                yield f"  {END}"


def _after_text(phase: Phase) -> str:
    if phase.after is None:
        return "previous"
    return _joined(phase.after) or "start"


def _chunks_text(chunks: tuple[int, ...]) -> str:
    counted = ((size, sum(1 for _ in equal)) for size, equal in groupby(chunks))
    return ",".join(f"{size}x{count}" if count > 1 else str(size) for size, count in counted) or "-"


def _parsed_chunks(text: str) -> tuple[int, ...]:
    if text == "-":
        return ()
    counted = (part.partition("x") for part in text.split(","))
    return tuple(int(size) for size, _, count in counted for _ in range(int(count or 1)))


def _joined(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _parsed_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",")) if text else ()


def _error(where: str, expected: str, found: str) -> UserError:
    return UserError(
        where=where, expected=expected, found=repr(found), way_out="see the grammar in simulator/step_text.py"
    )
