"""What `explore compile` compiles: a model's workload with a schedule per operator on a system, and the step it makes.

Schedules come from a mapping on a base device, or with device and pacing from a point of a finished run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autotune.chosen_design import MAPPINGS, require_as_evaluated
from autotune.imported import Imported
from autotune.problem_spec import spec_of_workload
from autotune.run_settings import RunSettings
from autotune.scenario import complete_device, fewest_devices, require_formats, require_programs, routing_loads
from autotune.stored_points import stored_point
from compiler.legality import all_reasons
from compiler.lowering import System, lower_steps
from compiler.memory.capacity import capacity_plan, require_capacity
from compiler.routing import ExpertLoad
from compiler.schedule import Schedule
from compiler.workload import BF16_THROUGHOUT, Workload
from configs.device import Device, load_device
from configs.errors import UserError
from simulator.aim.rules import rules_of
from simulator.step import Step
from simulator.timeline import StepSimulator

AIM_DEVICE = "gddr6-aim-compat"
HOST_OF_TRACES = "gddr6-aim"  # whose host and link stand in where the device of a trace has none


@dataclass(frozen=True, slots=True)
class Compiled:
    """One design; `source` says where its schedules come from, `slowdown` how the host paces its transfers."""

    workload: Workload
    schedules: Mapping[str, Schedule]
    system: System
    loads: tuple[ExpertLoad, ...]
    source: str
    slowdown: int = 1

    @property
    def title(self) -> str:
        """Model, scenario, devices and schedules in a line."""
        work, system = self.workload, self.system
        scenario = f"{work.model}, batch {work.batch}, context {work.context}"
        return f"{scenario}, {system.devices} x {system.device.name}, {self.source}"

    def step(self) -> Step:
        """Return the whole decode step."""
        return lower_steps(self.workload, self.schedules, self.system, (self.loads,))[0]

    def step_of(self, operator: str) -> Step:
        """Return a step of one operator alone, an expert operator with its first load; raises UserError."""
        names = known_operators(self.workload)
        if operator not in names:
            raise unknown_operator(operator, names)
        require_legal(self, operator)
        index = names.index(operator)
        routings = (0,) if self.workload.routings_of(index) else (None,)
        alone = replace(self.workload, sequence=(index,), dependencies=((),), routings=routings)
        loads = tuple(self.loads[routing] for routing in self.workload.routings_of(index)[:1])
        return lower_steps(alone, self.schedules, self.system, (loads,))[0]

    def times_in_step(self, operator: str) -> int:
        """Return how often an operator runs in a step."""
        return self.workload.multiplicities[known_operators(self.workload).index(operator)]


def known_operators(workload: Workload) -> list[str]:
    """Return the names of a workload's operators in the order of their first use."""
    return [shape.name for shape in workload.shapes]


def unknown_operator(found: str, known: list[str]) -> UserError:
    """Return the error for an operator that a model has not."""
    return UserError(
        where=f"--op {found}",
        expected=f"one of {', '.join(known)}",
        found=repr(found),
        way_out="leave it out for all of them",
    )


def require_known(settings: RunSettings, *, aim: bool) -> None:
    """Raise UserError for a device, number of devices or combination that no form can be made of.

    AiM instructions multiply 16-bit values only.
    """
    load_device(settings.hardware)
    if aim and settings.formats() != BF16_THROUGHOUT:
        raise UserError(
            where="--emit aim",
            expected="weights and cache of bf16, the values that AiM instructions multiply",
            found=f"{settings.weights} and {settings.kv}",
            way_out="leave out --weights and --kv, or take --emit program",
        )
    settings.device_count()
    settings.require_consistent()


def compiled_mapping(settings: RunSettings, imported: Imported, mapping: str, *, whole: bool) -> Compiled:
    """Return a mapping on a base device; raises UserError for one that is not legal, or if `whole` does not fit."""
    base = _usable_device(settings.hardware)
    return _mapped(settings, imported.workload, base, mapping, whole)


def compiled_point(settings: RunSettings, imported: Imported, folder: Path, point: int | None) -> Compiled:
    """Return a point of a run, by default its fastest; raises UserError when it is not what was evaluated."""
    problem = spec_of_workload(settings, imported.workload, load_device(settings.hardware))()
    chosen = stored_point(folder, problem.knobs, point)
    codes, scenario = np.array(chosen.codes, dtype=np.int64), problem.scenario
    compiled = Compiled(
        workload=scenario.workload,
        schedules=problem.space.schedules(codes),
        system=scenario.system(codes),
        loads=scenario.uniform_loads[0],
        source=f"point {chosen.point} of {folder.name}",
        slowdown=chosen.slowdown,
    )
    device = compiled.system.device
    report = StepSimulator(device).run(compiled.step(), chosen.slowdown)
    latency_ns = device.nanoseconds(report.latency_cycles)
    require_as_evaluated(folder, chosen, latency_ns, len(scenario.uniform_loads))
    return compiled


def for_aim_traces(settings: RunSettings, imported: Imported, mapping: str, *, whole: bool) -> Compiled:
    """Return a mapping on the device of AiM traces, no row opened ahead, which a trace cannot say."""
    device = _device_of_traces(settings.hardware)
    return _rows_opened_late(_mapped(settings, imported.workload, device, mapping, whole))


def point_for_aim_traces(compiled: Compiled) -> Compiled:
    """Return a point's schedules on the device of AiM traces; raises UserError when the point's device is another."""
    device, own = _device_of_traces(AIM_DEVICE), compiled.system.device
    if (own.organisation, own.unit.lanes, own.unit.global_buffer_bytes) != (
        device.organisation,
        device.unit.lanes,
        device.unit.global_buffer_bytes,
    ):
        raise UserError(
            where=f"--emit aim, {compiled.source}",
            expected=f"the channels, banks, rows, lanes and buffer of {AIM_DEVICE}, the device of AiM traces",
            found=own.title,
            way_out="take another point, or --emit program",
        )
    return _rows_opened_late(replace(compiled, system=System(device, compiled.system.devices)))


def _rows_opened_late(compiled: Compiled) -> Compiled:
    schedules = {name: replace(schedule, preactivate=False) for name, schedule in compiled.schedules.items()}
    return replace(compiled, schedules=schedules)


def _mapped(settings: RunSettings, workload: Workload, base: Device, mapping: str, whole: bool) -> Compiled:
    require_formats(workload, base)
    wanted = settings.device_count()
    devices = fewest_devices(workload, base) if wanted is None else wanted
    system = System(base, devices)
    if whole:
        require_capacity(workload, base.organisation.capacity_bytes, devices)
    schedules = MAPPINGS[mapping](workload.schedulables, system)
    compiled = Compiled(
        workload, schedules, system, routing_loads(workload, settings.seed, skewed=False), f"{mapping} mapping"
    )
    if whole:
        require_legal(compiled)
    return compiled


def require_legal(compiled: Compiled, operator: str = "") -> None:
    """Raise UserError for schedules that are not legal: of one operator, or of all, which have to fit too."""
    shapes = [shape for shape in compiled.workload.schedulables if _belongs(shape.name, operator)]
    pool = compiled.system.pool
    found = [reason for shape in shapes for reason in all_reasons(shape, compiled.schedules[shape.name], pool)]
    if not found and not operator:
        plan = capacity_plan(compiled.workload, compiled.schedules, compiled.system)
        if not plan.fits:
            found.append(f"{plan.rows_needed} rows of every bank needed of {plan.rows_available}")
    if found:
        raise UserError(
            where=compiled.title,
            expected="a legal design",
            found="; ".join(found),
            way_out="take --mapping tuned or one --op, or other devices (--devices auto) or context",
        )


def _belongs(scheduled: str, operator: str) -> bool:
    """Return whether a scheduled operator is part of one of the step: experts have two, an append its attention."""
    return not operator or scheduled == operator or scheduled.startswith(f"{operator}_") or operator == "kv_append"


def _usable_device(hardware: str) -> Device:
    """Return a device with units, host and link; raises UserError."""
    device = load_device(hardware)
    sections = {"unit": device.processing_unit, "host": device.host, "link": device.link}
    missing = [name for name, section in sections.items() if section is None]
    if missing:
        raise UserError(
            where=f"--hardware {device.name}",
            expected="a device with the sections unit, host and link",
            found=f"none for {', '.join(missing)}",
            way_out=f"use {complete_device(device)}; traces of --emit aim need no host and no link",
        )
    require_programs(device)
    return device


def _device_of_traces(hardware: str) -> Device:
    device = load_device(hardware)
    rules_of(device)
    # Work of the host has no instruction; what it takes makes no difference to a trace.
    other = load_device(HOST_OF_TRACES)
    return device.model_copy(update={"host": device.host or other.host, "link": device.link or other.link})
