"""Does a fixed corpus of models, scenarios and devices still take the cycles, energy and schedules on record?

A change of any figure is a change of `corpus/*.txt`: look at the difference, then run with --update-golden.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from autotune.decode_problem import DecodeProblem
from autotune.evaluation import SLOWDOWNS, evaluate_design
from autotune.hand_mapping import hand_mapping
from autotune.problem_spec import import_workload
from autotune.scenario import make_scenario
from autotune.tuning import tuned_mapping
from compiler.lowering import System, lower_steps
from compiler.schedule import schedule_text
from compiler.workload import StoredFormats
from configs.device import load_device
from configs.knobs import base_knobs
from configs.number_format import NumberFormat
from simulator.isa import KINDS
from simulator.laws.device import scaled_device
from simulator.timeline import StepSimulator
from tests.conftest import Golden

CORPUS = Path(__file__).parent / "corpus"
BASE = load_device("gddr6-aim")


@dataclass(frozen=True, slots=True)
class Entry:
    """One scenario on one device; `knobs` are hardware knobs that differ from the base device's."""

    model: str
    batch: int = 1
    context: int = 4096
    weights: NumberFormat = NumberFormat.BF16
    kv: NumberFormat = NumberFormat.BF16
    queries: int = 1
    devices: int = 1
    by_hand: bool = False
    knobs: tuple[tuple[str, int], ...] = ()


ENTRIES = {
    "llama-3.1-8b": Entry("llama-3.1-8b"),
    "llama-3.1-8b-long": Entry("llama-3.1-8b", context=32768, weights=NumberFormat.INT8, kv=NumberFormat.FP8),
    "llama-2-7b-by-hand": Entry("llama-2-7b", context=1024, by_hand=True),
    "llama-2-7b-verified": Entry("llama-2-7b", 2, 1024, NumberFormat.NVFP4, NumberFormat.INT4, queries=4),
    "qwen3-8b-wide": Entry("qwen3-8b", knobs=(("lanes", 32), ("column_bytes", 64), ("banks_per_channel", 32))),
    "mixtral-8x7b": Entry("mixtral-8x7b", 2, weights=NumberFormat.MXFP4, devices=2),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_figures_and_schedules_are_those_on_record(name: str, golden: Golden) -> None:
    golden.check(CORPUS / f"{name}.txt", recorded(ENTRIES[name]))


def recorded(entry: Entry) -> str:
    """Return everything on record about an entry, a fact a line."""
    device = scaled_device(BASE, replace(base_knobs(BASE), **dict(entry.knobs)))
    formats = StoredFormats(entry.weights, entry.kv)
    workload = import_workload(entry.model, entry.batch, entry.context, formats, entry.queries)
    system = System(device, entry.devices)
    mapping = hand_mapping if entry.by_hand else tuned_mapping
    schedules = mapping(workload.schedulables, system)
    problem = DecodeProblem(make_scenario(workload, device, devices=entry.devices))
    codes = problem.space.encode(base_knobs(device), schedules)
    assert codes is not None
    bounds = problem.bound_cycles(codes[None, :])[0]
    unpaced = np.full(len(SLOWDOWNS), np.inf)
    found = evaluate_design(problem.scenario, codes, schedules, StepSimulator(device), bounds, unpaced)
    step = lower_steps(workload, schedules, system, problem.scenario.uniform_loads[:1])[0]
    report = StepSimulator(device).run(step)
    lines = [
        *(f"{field}: {value}" for field, value in zip(Entry.__slots__, _values(entry), strict=True)),
        f"step: {report.latency_cycles} cycles, {report.down_bytes} bytes down, {report.up_bytes} up on each link",
        f"latency: {found.latency_ns:.12g} ns",
        f"energy: {found.energy_pj:.12g} pJ",
        f"area: {found.area_mm2:.12g} mm2",
        *(f"commands {kind}: {count:.12g}" for kind, count in zip(KINDS, report.counts, strict=True) if count),
        *(f"task {item.task}: {item.multiplicity} x {item.cycles} cycles" for item in found.tasks),
        *(f"schedule {name}: {schedule_text(schedule)}" for name, schedule in schedules.items()),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _values(entry: Entry) -> list[object]:
    return [getattr(entry, field) for field in Entry.__slots__]
