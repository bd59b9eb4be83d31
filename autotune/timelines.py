"""Looking inside a design: the timeline of its decode step, how well every operator used what it ran on, and waits.

A mixture of experts is shown under its first routing draw.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from autotune.decode_problem import DecodeProblem
from autotune.tables import write_csv
from autotune.units import MS_PER_NS
from compiler.lowering import lower_steps
from configs.errors import unwritable
from simulator.command_runs import joined
from simulator.instructions import instruction_count
from simulator.perfetto import save_trace
from simulator.power import WINDOW_NS, peak_power_w
from simulator.step_log import StepLog, log_step
from simulator.step_trace import Detail, step_trace
from simulator.timeline import StepSimulator
from simulator.timing_table import timing_table
from simulator.usage import stalls_of
from simulator.utilisation import OperatorUse, Use, use_by_task, utilisation

TIMELINE_FILE = "timeline.json.gz"
UTILISATION_FILE = "utilisation.csv"
STALLS_FILE = "stalls.csv"
SUMMARY_FILE = "inside.json"
ISSUING, REFRESH, IDLE = "commands issue", "refresh", "idle after the last command"


@dataclass(frozen=True, slots=True)
class Inside:
    """The logged step of one design of a model, and the channels that the one logged stands for."""

    model: str
    log: StepLog
    channels: int

    @property
    def latency_ns(self) -> float:
        """How long the step took."""
        return self.log.device.nanoseconds(self.log.report.latency_cycles)


def look_inside(problem: DecodeProblem, design: tuple[int, ...], slowdown: int) -> Inside:
    """Simulate a legal design once more and log its step; `slowdown` is the evaluation's link_pacing_factor."""
    scenario, codes = problem.scenario, np.array(design, dtype=np.int64)
    system = scenario.system(codes)
    step = lower_steps(scenario.workload, problem.space.schedules(codes), system, scenario.uniform_loads[:1])[0]
    log = log_step(StepSimulator(system.device, explain=True), step, slowdown)
    return Inside(scenario.workload.model, log, int(system.pool.channels))


def save_timeline(inside: Inside, detail: Detail, path: Path) -> None:
    """Write the timeline for ui.perfetto.dev; raises UserError for a file that cannot be written."""
    title = f"{inside.model} on {inside.log.device.name}, {inside.latency_ns * MS_PER_NS:.4f} ms"
    save_trace(step_trace(inside.log, title, inside.channels, detail, instruction_count), path)


def save_utilisation(inside: Inside, path: Path) -> None:
    """Write the utilisation of every operator as CSV; raises UserError for a file that cannot be written."""
    try:
        write_csv(utilisation_frame(inside.log), path)
    except OSError as error:
        raise unwritable(str(path), error) from error


def write_inside(inside: Inside, folder: Path) -> None:
    """Write the timeline and the operators' utilisation into the folder of a point."""
    save_timeline(inside, Detail.FIRST, folder / TIMELINE_FILE)
    save_utilisation(inside, folder / UTILISATION_FILE)
    write_csv(stall_frame(inside.log), folder / STALLS_FILE)
    (folder / SUMMARY_FILE).write_text(json.dumps(summary(inside), indent=1) + "\n", encoding="utf-8")


def utilisation_frame(log: StepLog) -> pd.DataFrame:
    """Return one row per operator of the step in program order."""
    rows = [_operator_row(item, log) for item in utilisation(log)]
    return pd.DataFrame(rows, columns=list(rows[0]) if rows else [])


def task_frame(log: StepLog) -> pd.DataFrame:
    """Return one row per task: the sum of its operators."""
    total = use_by_task(utilisation(log))
    rows = [{"task": task, "occurrences": times} | _use_row(use, log) for task, (times, use) in total.items()]
    return pd.DataFrame(rows, columns=list(rows[0]) if rows else [])


def summary(inside: Inside) -> dict[str, float | str]:
    """Return the figures of the whole step; power is that of all channels, in lock-step, without link and host.

    Rows count as open throughout, and the peak is over every window of the stated length. Power is left out where the
    device has no energy section.
    """
    log = inside.log
    stalls = stall_frame(log)
    waits = stalls[~stalls["cause"].isin((ISSUING, REFRESH, IDLE))]
    found: dict[str, float | str] = {
        "latency_ns": inside.latency_ns,
        "refresh_wait_share": log.report.refresh_cycles / log.report.latency_cycles,
        "longest_wait": str(waits["cause"].iloc[0]) if len(waits) else "",
        "longest_wait_share": float(waits["step_share"].iloc[0]) if len(waits) else 0.0,
    }
    if log.device.energy is None:
        return found
    cycles, kinds = joined([execution.runs for execution in log.executions]).issues()
    return found | {
        "power_peak_w": inside.channels * peak_power_w(cycles, kinds, log.device, basis=log.device.energy.basis),
        "power_window_ns": WINDOW_NS,
    }


def stall_frame(log: StepLog) -> pd.DataFrame:
    """Return what the channel's time went into, largest first: issuing, refresh, each other cause of waiting, idle.

    The cycles are those of one channel and add up to the step.
    """
    report = log.report
    found = stalls_of(timing_table(log.device), report.stalls.tolist())
    rows = [(ISSUING, report.commands_simulated - report.own_commands), (REFRESH, report.refresh_cycles)]
    rows += [(stall.cause, stall.cycles) for stall in found]
    rows += [(IDLE, report.latency_cycles - sum(cycles for _, cycles in rows))]
    frame = pd.DataFrame(rows, columns=["cause", "cycles"])
    frame["step_share"] = frame["cycles"] / report.latency_cycles
    return frame.sort_values("cycles", ascending=False, kind="stable", ignore_index=True)


def _operator_row(item: OperatorUse, log: StepLog) -> dict[str, object]:
    place = {"operator": item.operator, "task": item.task, "occurrence": item.occurrence}
    return place | {"start_cycle": item.start_cycle, "end_cycle": item.end_cycle} | _use_row(item.use, log)


def _use_row(use: Use, log: StepLog) -> dict[str, object]:
    device = log.device
    return {
        "cycles": use.cycles,
        "moved_end_cycles": use.moved_cycles,
        "moved_end_ns": device.nanoseconds(use.moved_cycles),
        "step_share": use.moved_cycles / log.report.latency_cycles,
        "mac_duty": use.share(use.mac_cycles),
        "data_bus_busy_share": use.share(use.data_bus_cycles),
        "command_bus_busy_share": use.share(use.command_bus_cycles),
        "commands": use.commands,
        "row_activations": use.row_activations,
        "column_accesses": use.column_accesses,
        "row_hits": use.row_hits,
        "refreshes": use.refreshes,
        "link_down_bytes": use.link_down_bytes,
        "link_up_bytes": use.link_up_bytes,
        "host_ns": device.nanoseconds(use.host_cycles),
    }
