"""Fixed points to put beside a search: rooflines of GPUs, published measurements on them, and simulated PIM devices.

A roofline is a bound: every byte that the step must read at full bandwidth, or every operation at the peak, whichever
takes longer. A measurement has the context of its source, not the scenario's; its share is of the roofline there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil
from typing import Literal

from autotune.decode_problem import DecodeProblem
from autotune.hand_mapping import HAND_MAPPINGS
from autotune.problem import Codes, Evaluation
from autotune.scenario import MOST_PADDING, make_scenario
from compiler.attention import AttentionShape
from compiler.linear import LinearShape
from compiler.memory.capacity import one_memory_bytes
from compiler.workload import EmbeddingShape, ExpertsShape, HostShape, RoutedShape, Shape, Workload
from configs.device import Basis, Device
from configs.errors import UserError
from configs.gpu import Gpu, GpuReferences, MeasuredDecode, load_gpus
from configs.knobs import base_knobs, knob_values
from configs.number_format import STORAGE, NumberFormat
from simulator.energy import required_energy

GIB = 2**30
PJ_PER_W_NS = 1e3
PLAIN_MAPPING = "hand"
ReferenceKind = Literal["roofline", "measured", "simulated"]


@dataclass(frozen=True, slots=True)
class ReferencePoint:
    """A point of comparison; None stands for what is not modelled.

    `context` is the one that the latency holds for, `count` how many GPUs or devices together, `roofline_share` how
    much of the time the roofline at the same context would take. `note` says what energy and area are.
    """

    name: str
    kind: ReferenceKind
    latency_ns: float
    energy_pj: float | None
    area_mm2: float | None
    source: str
    note: str
    context: int
    count: int = 1
    roofline_share: float | None = None


@dataclass(frozen=True, slots=True)
class StepTraffic:
    """What a step must do at the least: bytes read once, operations two per multiply-accumulate."""

    weight_bytes: float
    cache_bytes: float
    operations: float

    def __add__(self, other: "StepTraffic") -> "StepTraffic":
        """Return both together."""
        return StepTraffic(
            self.weight_bytes + other.weight_bytes,
            self.cache_bytes + other.cache_bytes,
            self.operations + other.operations,
        )

    def times(self, count: int) -> "StepTraffic":
        """Return as much, so many times."""
        return StepTraffic(self.weight_bytes * count, self.cache_bytes * count, self.operations * count)

    @property
    def moved_bytes(self) -> float:
        """All bytes."""
        return self.weight_bytes + self.cache_bytes


NOTHING = StepTraffic(0, 0, 0)


def reference_points(workload: Workload, references: GpuReferences | None = None) -> tuple[ReferencePoint, ...]:
    """Return the roofline of every GPU, each followed by the measurements of that GPU that fit the workload.

    A measurement fits with the same model, batch and width of stored weights; of several by one software the nearest
    context is taken.
    """
    known = references or load_gpus()
    points: list[ReferencePoint] = []
    for gpu in known.gpus:
        points.append(_roofline(gpu, workload))
        points += [_measured(gpu, item, workload) for item in matching(known.measured, gpu.name, workload)]
    return tuple(points)


def matching(measured: Sequence[MeasuredDecode], gpu: str, workload: Workload) -> tuple[MeasuredDecode, ...]:
    """Return the measurements of a GPU that fit a workload, one for each software."""
    if workload.queries > 1 or any(
        STORAGE[shape.stored].bits != STORAGE[NumberFormat.BF16].bits
        for shape in workload.schedulables
        if isinstance(shape, AttentionShape)
    ):
        return ()
    stored = _weights_format(workload)
    fitting: dict[str, MeasuredDecode] = {}
    for item in measured:
        if (item.gpu, item.model, item.batch) != (gpu, workload.model, workload.batch):
            continue
        if item.weights is not stored and not _both_plain(item.weights, stored):
            continue
        best = fitting.setdefault(item.software, item)
        if abs(item.context - workload.context) < abs(best.context - workload.context):
            fitting[item.software] = item
    return tuple(fitting.values())


def step_traffic(workload: Workload, context: int | None = None) -> StepTraffic:
    """Return the least traffic of one step, at another context if one is given.

    Of a mixture of experts with a batch, the distinct experts are those that uniform routing chooses on average.
    """
    total = NOTHING
    for shape, count in zip(workload.shapes, workload.multiplicities, strict=True):
        total += _traffic(shape, workload.tokens, context).times(count)
    return total


def roofline_ns(traffic: StepTraffic, gpu: Gpu, count: int = 1) -> float:
    """Return max(bytes / bandwidth, operations / peak) of so many GPUs that share the work without any loss."""
    memory = traffic.moved_bytes / gpu.memory_bandwidth_gb_per_s.value
    compute = traffic.operations / (gpu.bf16_tflops.value * 1e3)
    return max(memory, compute) / count


def gpus_needed(workload: Workload, gpu: Gpu) -> int:
    """Return the fewest GPUs that hold weights, embedding and cache."""
    return ceil(one_memory_bytes(workload) / (gpu.memory_gib.value * GIB))


def simulated_reference(
    workload: Workload,
    device: Device,
    *,
    devices: int | None = None,
    mapping: str = "overlapped",
    basis: Basis = Basis.TYPICAL,
) -> ReferencePoint:
    """Evaluate a mapping by hand on a PIM device as a search would; `devices` None takes as many as are needed.

    A mapping that a search could not write on this device is replaced by the plain hand mapping, and the point says so.
    Energy is on one basis; None where the device's constants have no such one. Raises UserError for a device that
    cannot run the workload.
    """
    problem, codes, used = _mapped(workload, device, devices, mapping)
    evaluation = problem.evaluate(problem.canonical(codes[None, :])[0])
    return ReferencePoint(
        name=device.name,
        kind="simulated",
        latency_ns=evaluation.latency_ns,
        energy_pj=_energy_pj(evaluation, device, basis),
        area_mm2=evaluation.area_mm2,
        source=f"simulated: {device.title}, {used} mapping",
        note=f"energy: memory side, {basis} constants; area: DRAM dies with units, no host",
        context=workload.context,
        count=problem.scenario.devices,
    )


def _mapped(workload: Workload, device: Device, devices: int | None, mapping: str) -> tuple[DecodeProblem, Codes, str]:
    """Return the problem and the design of a mapping on the fewest devices that hold it, and the mapping's name.

    The device is the only candidate: every hardware knob has its own value.
    """
    own = {name: (value,) for name, value in knob_values(base_knobs(device))}
    fewest = devices or make_scenario(workload, device, devices=None, restrictions=own).devices
    counts = range(fewest, fewest + 1 if devices else MOST_PADDING * fewest + 1)
    found = "schedules that no search knows"
    for name, count in product(dict.fromkeys((mapping, PLAIN_MAPPING)), counts):
        problem = DecodeProblem(make_scenario(workload, device, devices=count, restrictions=own))
        schedules = HAND_MAPPINGS[name](problem.space.schedulables, problem.scenario.system_of_base)
        codes = problem.space.encode(base_knobs(device), schedules)
        if codes is None:
            continue
        if problem.legal(codes[None, :])[0]:
            return problem, codes, name
        found = "; ".join(problem.reasons(codes))
    raise UserError(
        where=f"the {mapping} mapping of {workload.model} on {device.name}",
        expected="a legal design",
        found=found,
        way_out="add devices, or shorten the context",
    )


def _roofline(gpu: Gpu, workload: Workload) -> ReferencePoint:
    count = gpus_needed(workload, gpu)
    latency_ns = roofline_ns(step_traffic(workload), gpu, count)
    note = "energy: latency x board power, a bound"
    if gpu.decode_power_w is not None:
        low, high = (watt * latency_ns * count * 1e-6 for watt in (gpu.decode_power_w.low, gpu.decode_power_w.high))
        note += f" ({low:.0f} to {high:.0f} mJ at the power measured while decoding)"
    if count > 1:
        note += f"; {count} GPUs share the work without loss"
    return ReferencePoint(
        name=gpu.name,
        kind="roofline",
        latency_ns=latency_ns,
        energy_pj=latency_ns * gpu.board_power_w.value * count * PJ_PER_W_NS,
        area_mm2=gpu.area_mm2 * count,
        source=gpu.memory_bandwidth_gb_per_s.source,
        note=f"{note}; area: logic and DRAM dies",
        context=workload.context,
        count=count,
        roofline_share=1.0,
    )


def _measured(gpu: Gpu, item: MeasuredDecode, workload: Workload) -> ReferencePoint:
    watt = item.power_limit_w or gpu.board_power_w.value
    kind = "the board's power limit" if item.power_limit_w else "board power"
    bound_ns = roofline_ns(step_traffic(workload, item.context), gpu)
    note = f"context {item.context}; energy: latency x {kind}, a bound; area: logic and DRAM dies"
    return ReferencePoint(
        name=f"{gpu.name} {item.software}",
        kind="measured",
        latency_ns=item.step_ns,
        energy_pj=item.step_ns * watt * PJ_PER_W_NS,
        area_mm2=gpu.area_mm2,
        source=item.source,
        note=f"{note}; {item.note}" if item.note else note,
        context=item.context,
        roofline_share=bound_ns / item.step_ns,
    )


def _traffic(shape: Shape, tokens: int, context: int | None) -> StepTraffic:
    match shape:
        case LinearShape():
            return StepTraffic(shape.weight_bytes, 0, shape.operations)
        case AttentionShape():
            seen = shape if context is None else replace(shape, tokens=min(context, shape.tokens))
            return StepTraffic(0, seen.host_kv_bytes, seen.operations)
        case EmbeddingShape():
            return StepTraffic(shape.batch * shape.width * 2, 0, 0)
        case ExpertsShape():
            missed = (1 - shape.top_k / shape.experts) ** tokens
            both = _traffic(shape.gate_up, 1, None) + _traffic(shape.down, 1, None)
            read = both.weight_bytes * shape.experts * (1 - missed)
            return StepTraffic(read, 0, both.operations * shape.top_k * tokens)
        case RoutedShape():
            missed = (1 - shape.top_k / shape.experts) ** tokens
            one = _traffic(shape.linear, 1, None)
            read = one.weight_bytes * shape.experts * (1 - missed)
            return StepTraffic(read, 0, one.operations * shape.top_k * tokens)
        case HostShape(weight_bytes=weights, state_bytes=states, matrix_operations=operations):
            return StepTraffic(weights, 2 * states, operations)
        case _:
            return NOTHING


def _weights_format(workload: Workload) -> NumberFormat:
    """Return what the layers' matrices are stored as: the narrowest, as the head stays bf16."""
    stored = (shape.weights for shape in workload.schedulables if isinstance(shape, LinearShape))
    return min(stored, key=lambda item: STORAGE[item].bits)


def _both_plain(one: NumberFormat, other: NumberFormat) -> bool:
    return STORAGE[one].bits == STORAGE[other].bits == STORAGE[NumberFormat.BF16].bits


def _energy_pj(evaluation: Evaluation, device: Device, basis: Basis) -> float | None:
    if basis is Basis.TYPICAL:
        return dict(evaluation.details)["energy_typical_pj"]
    return evaluation.energy_pj if required_energy(device).basis is basis else None
