"""The forms of `explore compile`: what stands in each, checked before anything is written, and the figures told of it.

`prepared` checks and returns a `Form`; writing it streams. All but the plan can be of one operator.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

import numpy as np

from autotune.compiled import Compiled, known_operators, unknown_operator
from autotune.imported import Imported
from compiler.aim.emit import end_of_trace
from compiler.aim.step_trace import TracedPhase, traced_phases
from compiler.aim.text import trace_text
from compiler.graph_text import print_graph
from compiler.memory.planner import plan_of
from compiler.memory.text import print_plan
from compiler.one_operator import graph_of_task
from configs.device import Device
from configs.errors import UserError
from simulator.access_trace import access_lines, accesses_of, require_levels
from simulator.aim.replay import execute
from simulator.aim.requests import requests_of
from simulator.aim.rules import rules_of
from simulator.aim.trace import parse_trace
from simulator.command_writer import CommandWriter, commands_of_step
from simulator.engine import Engine
from simulator.program_code import flatten
from simulator.step import PimPhase, Step
from simulator.step_text import print_step
from simulator.timeline import StepSimulator

Fact = int | float | str | dict[str, int]
ROWS_NOTE = "rows count from the first row of the operator's own copy, which the memory plan names"


class Kind(StrEnum):
    """What `--emit` can name."""

    AIM = "aim"
    COMMANDS = "commands"
    RAMULATOR = "ramulator"
    PROGRAM = "program"
    GRAPH = "graph"
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Written:
    """What was found while writing: figures for machines, and remarks for people."""

    facts: dict[str, Fact]
    remarks: tuple[str, ...] = ()


Form = Callable[[TextIO], Written]


def graph_form(imported: Imported, operator: str) -> Form:
    """Return the graph after all passes, or one operator of it; raises UserError for an unknown one."""
    names = known_operators(imported.workload)
    if operator and operator not in names:
        raise unknown_operator(operator, names)
    graph = graph_of_task(imported.graph, operator) if operator else imported.graph

    def write(target: TextIO) -> Written:
        target.write(print_graph(graph))
        return Written({"operators": len(graph.ops)})

    return write


def prepared(kind: Kind, imported: Imported, compiled: Compiled, operator: str, limit: int) -> Form:
    """Return a form of a design ready to be written; raises UserError for what the form cannot say."""
    match kind:
        case Kind.GRAPH:
            return graph_form(imported, operator)
        case Kind.PLAN:
            return _plan_form(imported, compiled, operator)
        case Kind.PROGRAM:
            return _program_form(compiled, operator)
        case Kind.COMMANDS:
            return _commands_form(compiled, operator, limit)
        case Kind.RAMULATOR:
            return _ramulator_form(compiled, operator)
        case Kind.AIM:
            return _aim_form(compiled, operator)


def _step(compiled: Compiled, operator: str) -> Step:
    return compiled.step_of(operator) if operator else compiled.step()


def _plan_form(imported: Imported, compiled: Compiled, operator: str) -> Form:
    if operator:
        raise UserError(
            where="--emit plan --op",
            expected="the whole model, whose tensors share the rows",
            found=operator,
            way_out="leave --op out",
        )
    plan = plan_of(compiled.workload, compiled.schedules, compiled.system, model=imported.config)

    def write(target: TextIO) -> Written:
        target.write(print_plan(plan))
        return Written({"regions": len(plan.regions)})

    return write


def _program_form(compiled: Compiled, operator: str) -> Form:
    step = _step(compiled, operator)
    comments = {
        number: _times_text(compiled.times_in_step(task.task), task.task, step)
        for number, task in enumerate(step.tasks)
    }

    def write(target: TextIO) -> Written:
        target.write(f"# {compiled.title}\n# {ROWS_NOTE}\n")
        target.writelines(print_step(step, comments))
        return Written({"tasks": len(step.tasks), "operators": len(step.sequence)})

    return write


def _times_text(times: int, task: str, step: Step) -> str:
    """Return how often a task runs; of expert operators of one name each load is a task."""
    loads = sum(item.task == task for item in step.tasks)
    return f"{_times(times)} in a decode step" + (f", in {loads} forms" if loads > 1 else "")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _commands_form(compiled: Compiled, operator: str, limit: int) -> Form:
    step, device = _step(compiled, operator), compiled.system.device
    count = commands_of_step(step)
    if count > limit:
        raise UserError(
            where="--emit commands",
            expected=f"at most {limit:,} commands",
            found=f"{count:,}, refreshes not counted",
            way_out="choose one operator with --op, or raise --limit",
        )

    def write(target: TextIO) -> Written:
        writer = CommandWriter(step, device, target)
        report = StepSimulator(device).run(step, compiled.slowdown, writer)
        own = writer.rows - count
        facts: dict[str, Fact] = {
            "commands": writer.rows,
            "controller_commands": own,
            "latency_cycles": report.latency_cycles,
            "cycle_ps": device.cycle_ps,
        }
        return Written(facts, (f"{writer.rows:,} commands, {own:,} of them the controller's for refresh",))

    return write


def _ramulator_form(compiled: Compiled, operator: str) -> Form:
    step, organisation = _step(compiled, operator), compiled.system.device.organisation
    require_levels(organisation, compiled.system.device.name)
    left_out: Counter[str] = Counter()
    accesses = [
        access
        for task in step.tasks
        for phase in task.phases
        if isinstance(phase, PimPhase)
        for access in accesses_of(phase.program, organisation, left_out)
    ]
    if not accesses:
        raise UserError(
            where=f"--emit ramulator{' --op ' + operator if operator else ''}",
            expected="ordinary reads or writes",
            found="none" + (f", but {_counts_text(left_out)}" if left_out else ""),
            way_out="take --emit commands, or an operator that reads or writes by RD and WR, such as kv_append",
        )

    def write(target: TextIO) -> Written:
        target.writelines(access_lines(accesses, organisation))
        remark = f"{len(accesses):,} reads and writes of one channel; the format cannot say {_counts_text(left_out)}"
        return Written({"accesses": len(accesses), "left_out": dict(left_out)}, (remark,))

    return write


def _counts_text(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.most_common()) or "nothing else"


def _aim_form(compiled: Compiled, operator: str) -> Form:
    step, device = _step(compiled, operator), compiled.system.device
    channels = device.organisation.channels
    phases = tuple(traced_phases(step.tasks, channels))
    if not phases:
        raise UserError(
            where=f"--emit aim --op {operator}",
            expected="an operator with a program on the units",
            found="work of the host alone",
            way_out="choose another operator",
        )

    def write(target: TextIO) -> Written:
        text = "".join(_aim_sections(compiled, phases, channels))
        target.write(text)
        cycles = aim_cycles(text, device)
        engine = engine_cycles(phases, device)
        facts: dict[str, Fact] = {"aim_cycles": cycles, "engine_cycles": engine, "phases": len(phases)}
        return Written(facts, (_difference_text(cycles, engine),))

    return write


def _aim_sections(compiled: Compiled, phases: tuple[TracedPhase, ...], channels: int) -> Iterator[str]:
    yield f"# {compiled.title}\n# Each task once; {ROWS_NOTE}\n"
    for phase in phases:
        times = _times(compiled.times_in_step(phase.task))
        yield f"# {phase.task}, {times} in a decode step: {phase.phase}\n"
        yield trace_text(phase.instructions)
    yield trace_text((end_of_trace(channels),))


def aim_cycles(text: str, device: Device) -> int:
    """Return the cycles that the rules of the public AiM simulator give a trace, read back from its text."""
    trace = parse_trace(text, device.organisation)
    return execute(requests_of(trace, device.organisation.channels), rules_of(device), where="the trace")[0]


def engine_cycles(phases: tuple[TracedPhase, ...], device: Device) -> int:
    """Return the cycles of our engine for the same programs, one after the other, each of its inputs at hand."""
    engine = Engine(device)
    state = engine.fresh_state()
    for phase in phases:
        engine.run(flatten(phase.program), state, np.zeros(phase.arrivals, dtype=np.int64))
    return state.completion


def _difference_text(aim: int, engine: int) -> str:
    return (
        f"{aim:,} cycles by the public AiM simulator's rules, {engine:,} by our engine "
        f"({(aim - engine) / engine:+.1%}): there rows are closed and modes changed when the next request asks for it, "
        "not before it and not in vain, and each read-out takes a cycle more"
    )
