"""One design point, exactly: lowered, simulated as a whole step, its energy and area put beside its latency."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune import system_energy
from autotune.problem import Codes, Evaluation, TaskMeasurement
from autotune.scenario import Scenario
from compiler.device_table import device_table
from compiler.linear import LinearShape
from compiler.lowering import System, lower_steps
from compiler.memory.capacity import capacity_plan
from compiler.schedule import Schedule
from configs.device import Basis, Device
from configs.laws import CASES, Case
from simulator.energy import on_basis
from simulator.instructions import instruction_count, program_size
from simulator.power import W_PER_PJ_PER_NS
from simulator.step import PimPhase, Step
from simulator.timeline import StepReport, StepSimulator
from simulator.usage import usage

Floats = NDArray[np.float64]
# The slowdowns of the host's transfers that are tried; far fewer are ever needed.
SLOWDOWNS = tuple(2**power for power in range(1, 21))


def evaluate_design(
    scenario: Scenario,
    codes: Codes,
    schedules: Mapping[str, Schedule],
    simulator: StepSimulator,
    bounds: Floats,
    floors: Floats,
) -> Evaluation:
    """Return the evaluation of one legal design; `bounds` are the lower bounds per scheduled operator in cycles,
    `floors` those of the whole step under each of `SLOWDOWNS`.

    A mixture of experts with a batch is simulated under every uniform routing draw (its mean is the latency) and every
    skewed one.
    """
    system = scenario.system(codes)
    draws = scenario.uniform_loads + scenario.skewed_loads
    steps = lower_steps(scenario.workload, schedules, system, draws)
    all_reports = [fastest_pacing(simulator, step, floors) for step in steps]
    simulator.forget()
    reports, skewed = all_reports[: len(scenario.uniform_loads)], all_reports[len(scenario.uniform_loads) :]
    latencies_ns = np.array([system.device.nanoseconds(report.latency_cycles) for report in reports])
    lines = mean_energy_lines(scenario, system.device, reports)
    energy_pj = system_energy.total_pj(lines)
    latency_ns = float(latencies_ns.mean())
    details = {
        **lines,
        **_typical_energies(scenario, system.device, reports),
        **_figures(scenario, schedules, system, simulator, steps[0], reports[0]),
        **_areas(scenario, codes),
        "power_average_w": energy_pj / latency_ns * W_PER_PJ_PER_NS,
        "throughput_tokens_per_s": scenario.workload.batch / latency_ns * 1e9,
    }
    if skewed:
        details["latency_slowest_routing_ns"] = float(latencies_ns.max())
        details["latency_skewed_routing_ns"] = float(
            np.mean([system.device.nanoseconds(report.latency_cycles) for report in skewed])
        )
    return Evaluation(
        codes=tuple(int(code) for code in codes),
        latency_ns=latency_ns,
        energy_pj=float(energy_pj),
        area_mm2=float(scenario.candidates.area_mm2(codes[None, :])[0]),
        tasks=_measurements(scenario, reports, bounds),
        details=tuple(details.items()),
    )


def fastest_pacing(simulator: StepSimulator, step: Step, floors: Floats) -> StepReport:
    """Return the fastest step among hosts that use the link fully, by half, by a quarter and so on.

    A transfer that arrives a little later can meet refreshes better, so that a slower link could seem faster. The host
    may always hold chunks back; taking the best of all pacings makes sure that half a link never beats a whole one: its
    pacings are among those of the whole. Pacings end where the lower bound exceeds the best found: `floors` are those
    of the latency in cycles for each of `SLOWDOWNS`.
    """
    best = simulator.run(step)
    for slowdown, floor in zip(SLOWDOWNS, floors.tolist(), strict=True):
        if max(floor, slowdown * best.up_bytes / simulator.bytes_per_cycle) >= best.latency_cycles:
            break
        best = min(best, simulator.run(step, slowdown), key=lambda report: report.latency_cycles)
    return best


def mean_energy_lines(scenario: Scenario, device: Device, reports: Sequence[StepReport]) -> dict[str, float]:
    """Return pJ of a step by place, on average over the reports, on the basis of the device's constants."""
    table = device_table((device,), scenario.devices)
    lines = [system_energy.energy_lines(scenario, device, table, report) for report in reports]
    return {name: float(np.mean([line[name] for line in lines])) for name in lines[0]}


def _typical_energies(scenario: Scenario, device: Device, reports: Sequence[StepReport]) -> dict[str, float]:
    """Return the same total with typical currents, and at both ends of their band."""
    totals = {
        case: system_energy.total_pj(mean_energy_lines(scenario, on_basis(device, Basis.TYPICAL, case), reports))
        for case in CASES
    }
    return {
        "energy_typical_pj": totals["nominal"],
        "energy_typical_low_pj": totals["low"],
        "energy_typical_high_pj": totals["high"],
    }


def _areas(scenario: Scenario, codes: Codes) -> dict[str, float]:
    """Return the area at low and high constants; nothing where it is not modelled."""
    cases: tuple[Case, ...] = ("low", "high")
    areas = {f"area_{case}_mm2": float(scenario.candidates.area_mm2(codes[None, :], case)[0]) for case in cases}
    return {name: area for name, area in areas.items() if np.isfinite(area)}


def _measurements(scenario: Scenario, reports: Sequence[StepReport], bounds: Floats) -> tuple[TaskMeasurement, ...]:
    """Average each operator's share of the steps over its occurrences, rounded up to whole cycles."""
    found = []
    for shape, bound in zip(scenario.space.schedulables, bounds, strict=True):
        occurrences = scenario.occurrences(shape.name)
        cycles = float(np.mean([report.owner_cycles.get(shape.name, 0) for report in reports])) / occurrences
        kind = "linear" if isinstance(shape, LinearShape) else "attention"
        found.append(TaskMeasurement(shape.name, kind, round(occurrences), int(np.ceil(cycles)), int(bound)))
    return tuple(found)


def _figures(
    scenario: Scenario,
    schedules: Mapping[str, Schedule],
    system: System,
    simulator: StepSimulator,
    step: Step,
    report: StepReport,
) -> dict[str, float]:
    plan = capacity_plan(scenario.workload, schedules, system)
    phases = [phase for index in step.sequence for phase in step.tasks[index].phases if isinstance(phase, PimPhase)]
    dispatcher = system.device.dispatcher
    depth = dispatcher.sequencer_loop_depth if dispatcher is not None else 0
    programs = {id(phase.program): phase.program for phase in phases}
    sent = {key: instruction_count(program, depth) for key, program in programs.items()}
    instructions = sum(sent[id(phase.program)] for phase in phases)
    used = usage(system.device, simulator.engine.table, report.counts / system.pool.channels)
    figures = {
        "rows_used_per_bank": float(plan.rows_needed),
        "rows_available_per_bank": float(plan.rows_available),
        "refreshes_per_channel": float(report.refreshes),
        "command_bus_busy_share": used.command_bus_cycles / report.latency_cycles,
        "data_bus_busy_share": used.data_bus_cycles / report.latency_cycles,
        "refresh_wait_share": report.refresh_cycles / report.latency_cycles,
        "commands_simulated": float(report.commands_simulated),
        "mac_duty": used.unit_cycles / report.latency_cycles,
        "host_busy_share": report.host_busy_cycles / report.latency_cycles,
        "link_busy_share": report.link_busy_cycles / report.latency_cycles,
        "dispatcher_busy_share": report.dispatcher_busy_cycles / report.latency_cycles,
        "channel_busy_share": min(1.0, report.channel_busy_cycles / (system.pool.channels * report.latency_cycles)),
        "link_pacing_factor": float(report.slowdown),
        "link_bytes_per_device": float(report.down_bytes + report.up_bytes),
        "instructions_per_token": float(instructions),
        "program_instructions_stored": float(sum(program_size(program) for program in programs.values())),
    }
    if used.row_accesses:
        figures["row_hit_share"] = used.row_hits / used.row_accesses
    if dispatcher is not None:
        figures["instruction_bytes_per_token"] = float(instructions * dispatcher.instruction_bytes)
    return figures
