"""Runs a small linear operator on values, channel by channel, and compares it with the declared order and with fp64."""

import numpy as np

from compiler.geometry import Geometry, ceil_div
from compiler.linear import kernel_outputs, linear_phases
from compiler.numerics.emulation import ReductionOrder, emulate_linear, exact_linear
from compiler.numerics.layout import (
    Block,
    Floats,
    block_of,
    channel_sizes,
    input_events,
    matrix_block,
    output_entry,
    output_events,
    place_matrix,
    read_outputs,
    vector_columns,
)
from compiler.numerics.report import UNTIMED_HOST, Result, Rewrite, command_text, expect_at_rest
from compiler.numerics.small_sizes import FIRST_ROW, GROUPS, LinearCase
from compiler.numerics.small_values import (
    cancelling_pairs,
    random_elements,
    random_integers,
    random_scales,
    random_values,
    sparse_integers,
)
from simulator.bf16 import round_to_bf16
from simulator.functional import Channel, FlatProgram, execute, flatten_functional, fresh_channel, host_memory
from simulator.functional_state import HostMemory
from simulator.number_codes import Quantised
from simulator.step import PimPhase

INTEGER_OUTPUTS, CANCELLING_OUTPUTS = slice(0, None, 4), slice(2, None, 4)


def check_linear_case(case: LinearCase, rewrite: Rewrite) -> int:
    """Execute every pass on every channel and compare; return how many kernels ran.

    Raises MismatchError at the first wrong value, FunctionalError where a program cannot be executed.
    """
    weights, vectors = _values(case)
    phases = linear_phases(case.shape, case.schedule, case.pool, 1, UNTIMED_HOST, FIRST_ROW)
    flats = [flatten_functional(rewrite("linear", phase.program)) for phase in phases if isinstance(phase, PimPhase)]
    found, memories = _run(case, flats, weights, vectors)
    for number, (shape, matrix) in enumerate(zip(case.passes, weights, strict=True)):
        order = _order(case, shape)
        exact, size = exact_linear(matrix.dequantised(case.shape.storage.group), vectors)
        integers = np.zeros(exact.shape, dtype=bool)
        integers[-1, INTEGER_OUTPUTS] = True

        def writer(
            vector: int, output: int, flat: FlatProgram = flats[number], number: int = number, shape: Geometry = shape
        ) -> str:
            own = output % ceil_div(len(weights[number].elements), GROUPS)
            entry, _ = output_entry(vector, own, shape)
            return command_text(flat, int(memories[number].writers[entry]))

        scales = matrix.scales if case.shape.storage.group else None
        Result(
            operator=f"linear, {case.name}, pass {number}",
            found=found[number],
            emulated=emulate_linear(matrix.elements, vectors, order, scales, matrix.host_scale),
            exact=exact,
            bound=order.gamma(case.shape.inputs) * size,
            integers=integers,
            writer=writer,
        ).check()
    return len(flats) * int(case.pool.channels)


def _order(case: LinearCase, shape: Geometry) -> ReductionOrder:
    storage = case.shape.storage
    return ReductionOrder(
        case.pool.lanes,
        shape.segment_columns,
        bool(shape.spills),
        case.schedule.reduction_split,
        int(shape.packing.group),
        scales=int(storage.group > 0) + int(storage.host_scale),
        half_precision=shape.runs_microkernels,
    )


def _values(case: LinearCase) -> tuple[list[Quantised], Floats]:
    """Return the matrix of each pass and the vectors, the last one integers; some outputs are integers, some cancel.

    Integer outputs have scales of 1; of cancelling ones all scales are equal.
    """
    inputs, split = case.shape.inputs, case.schedule.reduction_split
    generator = np.random.default_rng(inputs)
    vectors = random_values(generator, case.shape.vectors, inputs)
    part, chunk = ceil_div(inputs, split), case.passes[0].segment_columns * case.pool.lanes
    pairs = [cancelling_pairs(generator, min(part, inputs - start), chunk) for start in range(0, inputs, part)]
    left, right = (
        np.concatenate([number * part + pair[side] for number, pair in enumerate(pairs)]) for side in range(2)
    )
    vectors[:, right] = vectors[:, left]
    vectors[-1] = sparse_integers(generator, inputs)
    matrices = []
    for outputs in kernel_outputs(case.shape, case.schedule.merged):
        weights = random_elements(generator, case.shape.weights, outputs, inputs)
        weights[INTEGER_OUTPUTS] = random_integers(generator, len(weights[INTEGER_OUTPUTS]), inputs)
        cancelling = weights[CANCELLING_OUTPUTS]
        cancelling[:, right] = -cancelling[:, left]
        matrices.append(_with_scales(case, weights, generator))
    return matrices, vectors


def _with_scales(case: LinearCase, weights: Floats, generator: np.random.Generator) -> Quantised:
    storage, outputs = case.shape.storage, len(weights)
    groups = ceil_div(case.shape.inputs, storage.group) if storage.group else 0
    scales = np.ones((outputs, groups), dtype=np.float32)
    host = np.ones(outputs, dtype=np.float32)
    if storage.group:
        scales = random_scales(generator, case.shape.weights, outputs, groups)
        scales[CANCELLING_OUTPUTS] = scales[CANCELLING_OUTPUTS, :1]
        scales[INTEGER_OUTPUTS] = 1
    if storage.host_scale:
        host = np.exp2(generator.uniform(-4, 4, outputs)).astype(np.float32)
        host[INTEGER_OUTPUTS] = 1
    return Quantised(weights, scales, host)


def _run(
    case: LinearCase, flats: list[FlatProgram], weights: list[Quantised], vectors: Floats
) -> tuple[list[Floats], list[HostMemory]]:
    """Return bf16 y[v, n] of each pass, parts added in channel order, and host memories of the last channel."""
    split = case.schedule.reduction_split
    sums = [np.zeros((len(vectors), len(matrix.elements)), dtype=np.float32) for matrix in weights]
    memories: list[HostMemory] = []
    for number in range(case.pool.channels):
        packed = case.passes[0].packing
        channel = fresh_channel(channel_sizes(case.pool, case.pool.rows, packed))
        memories = []
        block = block_of(number, split)
        _load(case, channel, weights, block)
        own_vectors = matrix_block(vectors, block_of(block.inner, split), 1, split)
        for index, (shape, flat) in enumerate(zip(case.passes, flats, strict=True)):
            inputs = vector_columns(own_vectors, shape, case.pool.lanes)
            memory = host_memory(
                channel.sizes,
                inputs,
                output_entries=shape.output_entries,
                input_events=input_events(shape),
                output_events=output_events(shape),
            )
            execute(flat, channel, memory)
            expect_at_rest(channel, memory, f"linear, {case.name}, pass {index}")
            memories.append(memory)
            own_sums = matrix_block(sums[index].T, block_of(block.outer * split, split), GROUPS, 1).T
            own_sums += read_outputs(memory.outputs, shape, own_sums.shape[1])
    scaled = (item * matrix.host_scale for item, matrix in zip(sums, weights, strict=True))
    return [round_to_bf16(item) for item in scaled], memories


def _load(case: LinearCase, channel: Channel, weights: list[Quantised], place: Block) -> None:
    row, split = FIRST_ROW, case.schedule.reduction_split
    for shape, matrix in zip(case.passes, weights, strict=True):
        own = matrix_block(matrix.elements, place, GROUPS, split)
        scales = matrix_block(matrix.scales, place, GROUPS, split) if case.shape.storage.group else None
        place_matrix(channel, row, own, shape, scales)
        row += shape.rows
