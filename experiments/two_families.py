"""Two device families on one scenario at equal capacity: GDDR6-AiM and HBM-PIM, each under two mappings.

python -m experiments.two_families [--model llama] [--context 4096] [--batch 1] [--json FILE]

Both hold 16 GiB behind the same host. Every operator runs with the schedule of the overlapped hand mapping, or with the
fastest that tuning finds for it alone; where those do not fit together, some keep that of the hand mapping, and where
that is not legal, the tuned one stands in. Energy is that of the memory side with typical currents, area that of DRAM
dies with their units. What HBM-PIM adds, the read-back of partial sums and their addition at the host, has columns of
its own.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from autotune.decode_problem import DecodeProblem
from autotune.exit_codes import run_to_exit_code
from autotune.hand_mapping import overlapped_mapping
from autotune.problem import Codes, Evaluation
from autotune.problem_spec import import_workload
from autotune.scenario import make_scenario
from autotune.tuning import tuned_mapping
from autotune.units import MJ_PER_PJ, MS_PER_NS
from compiler.legality import all_reasons
from compiler.lowering import lower_task
from compiler.schedule import Schedule
from compiler.workload import BF16_THROUGHOUT, Workload
from configs.device import load_device
from configs.errors import UserError, unwritable
from configs.knobs import base_knobs, knob_values
from simulator.isa import Kind, walk
from simulator.step import HostPhase, PimPhase

FAMILIES = ("gddr6-aim", "hbm-pim")
HAND, TUNED = "overlapped by hand", "tuned"
GIB = 2**30
Fitting = tuple[dict[str, Schedule], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One operator: its time in a step, the reads of results on a channel and the host's lane sums in it."""

    task: str
    occurrences: int
    time_us: float
    result_reads: int
    lane_sums_us: float


@dataclass(frozen=True, slots=True)
class FamilyPoint:
    """One family under one mapping."""

    device: str
    mapping: str
    capacity_gib: float
    dies: int
    latency_ms: float
    energy_typical_mj: float
    area_mm2: float
    tasks: tuple[TaskLine, ...]


def family_points(workload: Workload, name: str) -> tuple[FamilyPoint, ...]:
    """Evaluate every mapping of a family; raises UserError where one device does not hold the scenario."""
    device = load_device(name)
    own = {knob: (value,) for knob, value in knob_values(base_knobs(device))}
    problem = DecodeProblem(make_scenario(workload, device, devices=1, restrictions=own))
    shapes, system = problem.space.schedulables, problem.scenario.system_of_base
    by_hand, fastest = overlapped_mapping(shapes, system), tuned_mapping(shapes, system)
    unable = [shape.name for shape in shapes if all_reasons(shape, by_hand[shape.name], system.pool)]
    by_hand |= {name: fastest[name] for name in unable}
    tuned, kept = _that_fits(problem, fastest, by_hand)
    return _point(problem, _named(HAND, unable), by_hand), _point(problem, _named(TUNED, kept), tuned)


def _named(mapping: str, others: Sequence[str]) -> str:
    """Return the name of a mapping that is another one for some operators."""
    return f"{mapping}, but {', '.join(others)}" if others else mapping


def _that_fits(problem: DecodeProblem, wanted: Mapping[str, Schedule], spare: Mapping[str, Schedule]) -> Fitting:
    """Return the wanted schedules, with the spare ones of as few operators as make room for all, and whose they are."""
    chosen = dict(wanted)
    replaced: list[str] = []
    while not problem.legal(_encoded(problem, chosen)[None, :])[0]:
        left = [name for name in chosen if name not in replaced]
        if not left:
            return chosen, tuple(replaced)
        tried = np.array([_encoded(problem, chosen | {name: spare[name]}) for name in left])
        name = left[int(problem.rows(tried).argmin())]
        chosen[name] = spare[name]
        replaced.append(name)
    return chosen, tuple(replaced)


def _encoded(problem: DecodeProblem, schedules: Mapping[str, Schedule]) -> Codes:
    codes = problem.space.encode(base_knobs(problem.scenario.base), schedules)
    if codes is None:
        raise ValueError(f"schedules of {problem.scenario.base.name} lie outside the space")
    return codes


def _point(problem: DecodeProblem, mapping: str, schedules: Mapping[str, Schedule]) -> FamilyPoint:
    device, codes = problem.scenario.base, _encoded(problem, schedules)
    assert device.area is not None
    if not problem.legal(codes[None, :])[0]:
        found = "; ".join(problem.reasons(codes))
        raise UserError(where=device.name, expected="a legal design", found=found, way_out="shorten the context")
    evaluation = problem.evaluate(problem.canonical(codes[None, :])[0])
    return FamilyPoint(
        device=device.name,
        mapping=mapping,
        capacity_gib=device.organisation.capacity_bytes / GIB,
        dies=device.area.dies,
        latency_ms=evaluation.latency_ns * MS_PER_NS,
        energy_typical_mj=dict(evaluation.details)["energy_typical_pj"] * MJ_PER_PJ,
        area_mm2=evaluation.area_mm2,
        tasks=tuple(_task_lines(problem, evaluation)),
    )


def _task_lines(problem: DecodeProblem, evaluation: Evaluation) -> list[TaskLine]:
    scenario, lines = problem.scenario, []
    shapes = dict(zip(problem.tasks, problem.space.schedulables, strict=True))
    chosen = problem.space.schedules(np.array(evaluation.codes))
    for task in evaluation.tasks:
        phases = lower_task(shapes[task.task], chosen, scenario.system_of_base)
        programs = [phase.program for phase in phases if isinstance(phase, PimPhase)]
        reads = sum(command.kind is Kind.RD for program in programs for command in walk(program))
        lanes = [phase for phase in phases if isinstance(phase, HostPhase) and "lane sums" in phase.name]
        time_us = scenario.base.nanoseconds(task.cycles) * task.multiplicity / 1000
        lanes_us = sum(phase.work_ns for phase in lanes) * task.multiplicity / 1000
        lines.append(TaskLine(task.task, task.multiplicity, time_us, reads, lanes_us))
    return lines


def table_lines(points: tuple[FamilyPoint, ...]) -> list[str]:
    """Return the comparison, then each point's operators."""
    lines = [f"{'device':12}{'mapping':32}{'GiB':>6}{'dies':>6}{'ms/token':>10}{'mJ/token':>10}{'mm2':>8}"]
    for point in points:
        lines.append(
            f"{point.device:12}{point.mapping:32}{point.capacity_gib:6.0f}{point.dies:6d}{point.latency_ms:10.3f}"
            f"{point.energy_typical_mj:10.1f}{point.area_mm2:8.0f}"
        )
    for point in points:
        lines.append(f"\n{point.device}, {point.mapping}: times of all occurrences in a step")
        lines.append(f"{'operator':16}{'n':>4}{'us':>10}{'reads of results':>18}{'lane sums us':>14}")
        lines += [
            f"{task.task:16}{task.occurrences:4d}{task.time_us:10.1f}{task.result_reads:18d}{task.lane_sums_us:14.1f}"
            for task in point.tasks
        ]
    return lines


def main() -> None:
    """Print the comparison, or write it as JSON, too."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama")
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the points to this file")
    choice = parser.parse_args()
    workload = import_workload(choice.model, choice.batch, choice.context, BF16_THROUGHOUT)
    points = tuple(point for name in FAMILIES for point in family_points(workload, name))
    print("\n".join(table_lines(points)))
    if choice.json is not None:
        try:
            choice.json.write_text(json.dumps([asdict(point) for point in points], indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise unwritable(f"--json {choice.json}", error) from error


if __name__ == "__main__":
    run_to_exit_code(main)
