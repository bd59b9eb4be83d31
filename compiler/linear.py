"""Linear operators on the units: y = x W^T with outputs and reduction split over channels, and the host's part."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compiler.geometry import Geometry, ceil_div, packing
from compiler.hand_kernels import KERNELS
from compiler.host_cost import host_work_ns
from compiler.kernel_events import read_slots, written_columns
from compiler.kernels import geometry_on, kernel_body, lane_sums_ns, values_of_result
from compiler.matvec import Operands
from compiler.schedule import GENERATED, LinearSchedule, Place, PoolShape, schedule_text
from configs.device import Host
from configs.number_format import STORAGE, NumberFormat, Storage, stored_bytes
from simulator.isa import Affine, Program
from simulator.step import HostPhase, Phase, PimPhase

SCALE_BYTES = 4  # of an output's scale at the host: fp32


@dataclass(frozen=True, slots=True)
class LinearShape:
    """One linear operator: widths of the matrices that share the input, input width, vectors, the weights' format.

    `value_bytes` are those of an input or an output. Of several `heads` each has matrices of these sizes and inputs of
    its own; they run one after the other. The host adds a bias to the results.
    """

    name: str
    parts: tuple[int, ...]
    inputs: int
    vectors: int
    value_bytes: int = 2
    weights: NumberFormat = NumberFormat.BF16
    heads: int = 1
    bias: bool = False

    @property
    def outputs(self) -> int:
        """Width of all outputs of a head together."""
        return sum(self.parts)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all matrices, with the scales that lie beside their values."""
        return self.heads * stored_bytes(self.outputs, self.inputs, self.storage)

    @property
    def operations(self) -> int:
        """Operations of all products."""
        return 2 * self.heads * self.outputs * self.inputs * self.vectors

    @property
    def finished_by_host(self) -> bool:
        """Whether the host scales results or adds a bias to them."""
        return self.bias or bool(self.storage.host_scale)

    @property
    def stored(self) -> NumberFormat:
        """The format of what the banks hold."""
        return self.weights

    @property
    def storage(self) -> Storage:
        """How the weights are stored."""
        return STORAGE[self.weights]


def kernel_outputs(shape: LinearShape, merged: bool) -> tuple[int, ...]:
    """Return the outputs of each pass: all matrices in one when merged, one by one otherwise."""
    return (shape.outputs,) if merged else shape.parts


def linear_geometry(shape: LinearShape, outputs: int, schedule: LinearSchedule, pool: PoolShape) -> Geometry:
    """Return the geometry of one pass on one channel (records may hold arrays)."""
    output_channels = np.maximum(pool.channels // schedule.reduction_split, 1)
    sizes = geometry_on(
        pool,
        ceil_div(outputs, output_channels),
        ceil_div(shape.inputs, schedule.reduction_split),
        shape.vectors,
        segment_columns=schedule.segment_columns,
        reuse=schedule.reuse,
        registers=schedule.registers,
        order=schedule.order,
        packed=packing(shape.storage, pool),
    )
    return sizes if schedule.kernel == GENERATED else replace(sizes, whole_reads=True)


def input_parts(reduction_split: Any, devices: int) -> Any:
    """Return how many parts of the input a device takes: channels are dealt to devices in turn (ints or arrays)."""
    return reduction_split // np.gcd(reduction_split, devices)


def linear_rows(shape: LinearShape, schedule: LinearSchedule, pool: PoolShape) -> Any:
    """Return the rows of every bank that the matrices of one head take on the units (records may hold arrays)."""
    merged = _rows_of_passes(shape, schedule, pool, kernel_outputs(shape, True))
    if len(shape.parts) == 1:
        return merged
    apart = _rows_of_passes(shape, schedule, pool, shape.parts)
    return np.where(np.asarray(schedule.merged, dtype=bool), merged, apart)


def _rows_of_passes(shape: LinearShape, schedule: LinearSchedule, pool: PoolShape, passes: tuple[int, ...]) -> Any:
    return sum(linear_geometry(shape, outputs, schedule, pool).rows for outputs in passes)


def linear_phases(
    shape: LinearShape, schedule: LinearSchedule, pool: PoolShape, devices: int, host: Host, first_row: int = 0
) -> tuple[Phase, ...]:
    """Lower one linear operator: passes over its matrices, then the host's addition of split reductions."""
    if schedule.place is Place.HOST:
        return (HostPhase(f"{shape.name} on host", shape.name, host_linear_ns(shape, host), launch=True),)
    phases: list[Phase] = []
    row = first_row
    passes = [linear_geometry(shape, outputs, schedule, pool) for outputs in kernel_outputs(shape, schedule.merged)]
    for sizes in passes * shape.heads:
        phases.append(pass_phase(shape, schedule, sizes, pool, devices, row))
        row += sizes.rows
    if pool.runs_microkernels:
        # Part of the host's operator that takes the results, whose launch is counted there.
        lanes_ns = lane_sums_ns(shape.outputs * shape.vectors * schedule.reduction_split, pool, host)
        phases.append(HostPhase(f"{shape.name} lane sums", shape.name, float(lanes_ns), launch=False))
    if schedule.reduction_split > 1:
        sums_ns = reduction_ns(shape, schedule.reduction_split, host)
        phases.append(HostPhase(f"{shape.name} sums", shape.name, sums_ns, launch=True))
    elif shape.finished_by_host:
        # Part of the host's operator that takes the results, whose launch is counted there.
        name = "scales" if shape.storage.host_scale else "bias"
        phases.append(HostPhase(f"{shape.name} {name}", shape.name, scale_ns(shape, host), launch=False))
    return tuple(phases)


def pass_phase(
    shape: LinearShape, schedule: LinearSchedule, sizes: Geometry, pool: PoolShape, devices: int, first_row: int
) -> PimPhase:
    """Return one pass: inputs go to every device (the part its channels need), outputs come back from each."""
    operands = Operands(Affine(first_row), Affine(), Affine())
    if schedule.kernel == GENERATED:
        body = kernel_body(sizes, operands, schedule.preactivate)
    else:
        body = KERNELS[schedule.kernel].emit(sizes, operands)
    comment = f"{shape.name} {schedule_text(schedule)}"
    program = Program(body, comment, sizes.packing.per_column, sizes.together)
    value = shape.value_bytes
    lanes = pool.lanes * value * int(input_parts(schedule.reduction_split, devices))
    down = tuple(columns * lanes for columns in written_columns(sizes))
    entry = sizes.reuse * pool.banks * values_of_result(pool) * value * (pool.channels // devices)
    up = tuple(slots * entry for slots in read_slots(sizes))
    return PimPhase(shape.name, shape.name, program, down, up, active_channels=pool.channels)


def host_linear_ns(shape: LinearShape, host: Host) -> float:
    """Return the host's time for the whole operator, weights read from its own memory."""
    return float(host_work_ns(host, shape.weight_bytes, shape.operations, matrix=True))


def reduction_ns(shape: LinearShape, split: Any, host: Host) -> Any:
    """Return the host's time to add the parts of split reductions, and to scale the sums and add a bias to them."""
    values = shape.heads * shape.outputs * shape.vectors
    moved = values * shape.value_bytes * (split + 1) + shape.heads * shape.outputs * _finishing_bytes(shape)
    return host_work_ns(host, moved, values * (split - 1 + _finishing_operations(shape)))


def scale_ns(shape: LinearShape, host: Host) -> float:
    """Return what scales and biases add to the host's operator that takes the outputs: one of each per output."""
    outputs = shape.heads * shape.outputs
    operations = outputs * shape.vectors * _finishing_operations(shape)
    return float(host_work_ns(host, outputs * _finishing_bytes(shape), operations))


def _finishing_bytes(shape: LinearShape) -> int:
    return int(shape.storage.host_scale) * SCALE_BYTES + int(shape.bias) * shape.value_bytes


def _finishing_operations(shape: LinearShape) -> int:
    return int(shape.storage.host_scale) + int(shape.bias)


def with_vectors(shape: LinearShape, schedule: LinearSchedule, vectors: int) -> tuple[LinearShape, LinearSchedule]:
    """Return the operator for another number of vectors; reuse becomes the largest divisor not above the schedule's."""
    reuse = max(divisor for divisor in range(1, vectors + 1) if vectors % divisor == 0 and divisor <= schedule.reuse)
    return replace(shape, vectors=vectors), replace(schedule, reuse=reuse)
