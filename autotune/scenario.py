"""A scenario made ready: the workload of a model, the base device, the space, and tables of every candidate device.

Everything a `DecodeProblem` reads and nothing that depends on a design. Made anew in every worker from plain values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from autotune.candidates import CandidateDevices
from autotune.hand_mapping import hand_mapping, overlapped_mapping
from autotune.problem import Codes
from autotune.space import Space, space_of
from compiler.closed_form import LinkFigures, SystemCosts
from compiler.device_table import DeviceTable
from compiler.lowering import System
from compiler.memory.capacity import capacity_plan, devices_needed, require_capacity
from compiler.routing import ExpertLoad, draw_loads
from compiler.workload import ExpertsShape, RoutedShape, Workload
from configs.device import Device, built_in_devices, load_device
from configs.errors import UserError
from configs.knobs import base_knobs
from configs.refresh import RefreshPolicy
from simulator.addressing import addressing
from simulator.engine import Engine
from simulator.isa import Kind
from simulator.laws.build import build_of
from simulator.laws.device import impossibilities
from simulator.timing_table import timing_table

ROUTING_DRAWS = 4
MOST_PADDING = 2
# What scaling laws and closed forms read by name.
NEEDED_TIMING = (
    *("nBL", "nCL", "nCWL", "nRCDRD", "nRCDRDMAC", "nRP", "nRAS", "nRC", "nRTP", "nWR", "nCCDS", "nCCDL", "nRRDS"),
    *("nRRDL", "nFAW", "nACTALL", "nCCDMAC", "nBLGB", "nBLREG", "nREFI", "nRFC"),
)
LOCKSTEP_TIMING = ("nMODCH",)
# What lowered programs are made of.
NEEDED_KINDS = (Kind.ACT, Kind.PRE, Kind.PREA, Kind.RD, Kind.WR)
LOCKSTEP_KINDS = (Kind.ACT16, Kind.WRA16, Kind.WRGB, Kind.WRMAC16, Kind.RDMAC16, Kind.TMOD)
MICROKERNEL_KINDS = (Kind.ACT8, Kind.PRE8, Kind.RD8, Kind.WR8, Kind.ST8)
# How units in lock-step multiply, by the row buffers of a bank.
MULTIPLY_KINDS = {1: (Kind.MAC16,), 2: (Kind.LATCH16, Kind.MACL16)}


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is fixed during a search."""

    workload: Workload
    base: Device
    devices: int
    space: Space
    candidates: CandidateDevices
    uniform_loads: tuple[tuple[ExpertLoad, ...], ...]
    skewed_loads: tuple[tuple[ExpertLoad, ...], ...]

    def costs(self, table: DeviceTable) -> SystemCosts:
        """Return host and link of each device of a table."""
        link = LinkFigures(table.link_gb_per_s, table.link_latency_ns)
        assert self.base.host is not None
        return SystemCosts(self.base.host, link, self.base.cycle_ps, self.devices)

    @property
    def system_of_base(self) -> System:
        """The base device, as many as the scenario takes."""
        return System(self.base, self.devices)

    def occurrences(self, name: str, average: Callable[[Sequence[int]], float] = mean) -> float:
        """Return how often a scheduled operator runs per step; an expert's as often as one is active, on average."""
        for shape, multiplicity in zip(self.workload.shapes, self.workload.multiplicities, strict=True):
            if shape.name == name:
                return float(multiplicity)
        for index, shape in enumerate(self.workload.shapes):
            if isinstance(shape, ExpertsShape | RoutedShape) and name in expert_names(shape):
                draws = self.uniform_loads if average is mean else self.uniform_loads + self.skewed_loads
                routings = self.workload.routings_of(index)
                return float(average([sum(len(loads[routing]) for routing in routings) for loads in draws]))
        raise KeyError(name)

    def system(self, codes: Codes) -> System:
        """Return the system of one design (int[k]); raises UserError for an impossible device."""
        return System(self.candidates.device(codes), self.devices)


def make_scenario(
    workload: Workload,
    base: Device,
    *,
    devices: int | None,
    restrictions: Mapping[str, tuple[int | str, ...]] | None = None,
    routing_seed: int = 0,
) -> Scenario:
    """Make a scenario; `devices` None takes as many as the scenario needs. Raises UserError with the way out."""
    require_sections(base)
    require_programs(base)
    _require_usable(base)
    require_formats(workload, base)
    capacity = base.organisation.capacity_bytes
    count = devices if devices is not None else fewest_devices(workload, base)
    require_capacity(workload, capacity, count)
    space = space_of(workload.schedulables, restrictions or {}, base)
    draws = [
        routing_loads(workload, routing_seed + draw, skewed)
        for skewed in (False, True)
        for draw in range(ROUTING_DRAWS)
    ]
    one_is_enough = workload.tokens == 1 or not draws[0]
    return Scenario(
        workload=workload,
        base=base,
        devices=count,
        space=space,
        candidates=CandidateDevices(base, space, count),
        uniform_loads=tuple(draws[:1] if one_is_enough else draws[:ROUTING_DRAWS]),
        skewed_loads=() if one_is_enough else tuple(draws[ROUTING_DRAWS:]),
    )


def require_sections(base: Device) -> None:
    """Raise UserError for a device without what a search needs, such as plain DRAM."""
    sections = {
        "unit": base.processing_unit,
        "host": base.host,
        "link": base.link,
        "energy": base.energy,
        "area": base.area,
        "power": base.power,
        "dispatcher": base.dispatcher,
    }
    missing = [name for name, section in sections.items() if section is None]
    if missing:
        raise UserError(
            where=f"--hardware {base.name}",
            expected=f"a device with the sections {', '.join(sections)}",
            found=f"none for {', '.join(missing)}",
            way_out=f"use {complete_device(base)}, or add what is missing to the file",
        )


def complete_device(device: Device) -> str:
    """Return the built-in device that lacks nothing and is most like one that does: of its family, or gddr6-aim."""
    complete = device.family in built_in_devices() and load_device(device.family).host is not None
    return device.family if complete else "gddr6-aim"


def require_programs(base: Device) -> None:
    """Raise UserError when a device's tables lack commands that lowered programs are made of, or part its channels."""
    table = timing_table(base)
    own = (*LOCKSTEP_KINDS, *MULTIPLY_KINDS[base.organisation.row_buffers])
    needed = (*NEEDED_KINDS, *(MICROKERNEL_KINDS if base.unit.microkernel_words else own))
    absent = [kind for kind in needed if not table.has(kind)]
    parts = base.organisation.banks // len(addressing(base).banks_of(Kind.PREA, 0))
    if absent:
        found = f"no {', '.join(absent)} among the constraints"
    elif parts > 1:
        found = f"{parts} parts of a channel that PREA closes one by one: describe each as a channel"
    elif base.refresh.policy is RefreshPolicy.ALL_BANK and base.refresh_interval_cycles <= _refreshing(base):
        found = f"a refresh every {base.refresh_interval_cycles} cycles that takes {_refreshing(base)} with its rows"
    else:
        return
    raise UserError(
        where=f"--hardware {base.name}",
        expected="tables of all commands that programs are made of, for whole channels, with room between refreshes",
        found=found,
        way_out=f"compare with configs/hardware/{complete_device(base)}.yaml",
    )


def _refreshing(base: Device) -> int:
    """Return the cycles from closing rows for a refresh of all banks until they have been opened again and served."""
    one_by_one = ("nRFC", "nRP", "nRAS", "nACTALL", "nFAW")
    together = ("nRFC", "nRP", "nRTP", "nRCDRDMAC")
    names = one_by_one if base.unit.microkernel_words else together
    return sum(base.timing[name] for name in names if name in base.timing) * base.ticks_per_clock


def _require_usable(base: Device) -> None:
    """Raise UserError when a device's tables lack what the engines and the scaling laws read."""
    try:
        Engine(base).fresh_state()
        lockstep = not base.unit.microkernel_words
        latch = ("nLTMAC",) if base.organisation.row_buffers > 1 else ()
        changes = LOCKSTEP_TIMING if lockstep else ()
        missing = [name for name in (*NEEDED_TIMING, *changes, *latch) if name not in base.timing]
        if missing:
            raise ValueError(f"the timing section lacks {', '.join(missing)}")
        for reason in impossibilities(base, base_knobs(base)):
            raise ValueError(reason)
        gang = int(build_of(base, base_knobs(base)).gang)
        if gang != base.structure.gang:
            raise ValueError(
                f"a structure with gang {base.structure.gang} whose other entries open {gang} banks together"
            )
    except (ValueError, KeyError) as error:
        raise UserError(
            where=f"--hardware {base.name}",
            expected="tables that a search can use",
            found=str(error),
            way_out=f"compare with configs/hardware/{complete_device(base)}.yaml",
        ) from error


def require_formats(workload: Workload, base: Device) -> None:
    """Raise UserError for weights or a cache of a format that the units do not take."""
    taken = base.unit.formats
    for shape in workload.schedulables:
        fixed = base.unit.microkernel_words > 0
        scales = bool(shape.storage.group) and not timing_table(base).has(Kind.SCALE16)
        if shape.stored not in taken or scales:
            raise UserError(
                where=f"--hardware {base.name}, unit",
                expected=f"{shape.stored}, the format of {shape.name}",
                found=", ".join(taken) + (", but no SCALE16 among the constraints" if scales else ""),
                way_out="give another format with --weights or --kv"
                + ("" if fixed else ", or add it to the formats of the device's unit"),
            )


def fewest_devices(workload: Workload, base: Device) -> int:
    """Return the fewest base devices that hold the scenario as a plain mapping lays it out, padding included."""
    fewest = devices_needed(workload, base.organisation.capacity_bytes)
    for count in range(fewest, MOST_PADDING * fewest + 1):
        system = System(base, count)
        for mapping in (hand_mapping, overlapped_mapping):
            if capacity_plan(workload, mapping(workload.schedulables, system), system).fits:
                return count
    return fewest


def expert_names(shape: ExpertsShape | RoutedShape) -> tuple[str, ...]:
    """Return the names of the scheduled operators that run once per active expert."""
    return (shape.linear.name,) if isinstance(shape, RoutedShape) else (shape.gate_up.name, shape.down.name)


def routing_loads(workload: Workload, seed: int, skewed: bool) -> tuple[ExpertLoad, ...]:
    """Draw the expert load of every choice of experts in program order; empty for a dense model.

    Choices of as many among as many experts are drawn together.
    """
    kinds: dict[int, tuple[int, int]] = {}
    for index, routing in zip(workload.sequence, workload.routings, strict=True):
        shape = workload.shapes[index]
        if routing is not None and isinstance(shape, ExpertsShape | RoutedShape):
            kinds[routing] = shape.experts, shape.top_k
    drawn = {
        kind: iter(draw_loads(*kind, workload.tokens, list(kinds.values()).count(kind), seed=seed, skewed=skewed))
        for kind in kinds.values()
    }
    return tuple(next(drawn[kinds[routing]]) for routing in sorted(kinds))
