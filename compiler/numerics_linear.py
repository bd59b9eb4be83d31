"""Runs a small linear operator on values, channel by channel, and compares it with the declared order and with fp64."""

import numpy as np

from compiler.emulation import ReductionOrder, emulate_linear, exact_linear
from compiler.geometry import Geometry, ceil_div
from compiler.layout import (
    Floats,
    block_of,
    channel_sizes,
    matrix_block,
    output_entry,
    place_matrix,
    read_outputs,
    vector_columns,
)
from compiler.linear import kernel_outputs, linear_phases
from compiler.numerics_report import UNTIMED_HOST, Result, Rewrite, command_text, expect_at_rest
from compiler.small_sizes import GROUPS, LinearCase
from compiler.small_values import cancelling_pairs, random_integers, random_values, sparse_integers
from simulator.bf16 import round_to_bf16
from simulator.functional import FlatProgram, execute, flatten_functional, fresh_channel, host_memory
from simulator.functional_state import FunctionalChannel, HostMemory
from simulator.step import PimPhase

FIRST_ROW = 1  # other than 0, so that a forgotten base row is seen
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
        order = ReductionOrder(
            case.pool.lanes, shape.segment_columns, bool(shape.spills), case.schedule.reduction_split
        )
        exact, size = exact_linear(matrix, vectors)
        integers = np.zeros(exact.shape, dtype=bool)
        integers[-1, INTEGER_OUTPUTS] = True

        def writer(
            vector: int, output: int, flat: FlatProgram = flats[number], number: int = number, shape: Geometry = shape
        ) -> str:
            own = output % ceil_div(len(weights[number]), GROUPS)
            entry, _ = output_entry(vector, own, shape)
            return command_text(flat, int(memories[number].writers[entry]))

        Result(
            operator=f"linear, {case.name}, pass {number}",
            found=found[number],
            emulated=emulate_linear(matrix, vectors, order),
            exact=exact,
            bound=order.gamma(case.shape.inputs) * size,
            integers=integers,
            writer=writer,
        ).check()
    return len(flats) * int(case.pool.channels)


def _values(case: LinearCase) -> tuple[list[Floats], Floats]:
    """Return the matrix of each pass and the vectors, the last one integers; some outputs are integers, some cancel."""
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
        weights = random_values(generator, outputs, inputs)
        weights[INTEGER_OUTPUTS] = random_integers(generator, len(weights[INTEGER_OUTPUTS]), inputs)
        cancelling = weights[CANCELLING_OUTPUTS]
        cancelling[:, right] = -cancelling[:, left]
        matrices.append(weights)
    return matrices, vectors


def _run(
    case: LinearCase, flats: list[FlatProgram], weights: list[Floats], vectors: Floats
) -> tuple[list[Floats], list[HostMemory]]:
    """Return bf16 y[v, n] of each pass, parts added in channel order, and host memories of the last channel."""
    split = case.schedule.reduction_split
    sums = [np.zeros((len(vectors), len(matrix)), dtype=np.float32) for matrix in weights]
    memories: list[HostMemory] = []
    for number in range(case.pool.channels):
        channel = fresh_channel(channel_sizes(case.pool, case.pool.rows))
        memories = []
        block = block_of(number, split)
        _load(case, channel, [matrix_block(matrix, block, GROUPS, split) for matrix in weights])
        own_vectors = matrix_block(vectors, block_of(block.inner, split), 1, split)
        for index, (shape, flat) in enumerate(zip(case.passes, flats, strict=True)):
            inputs = vector_columns(own_vectors, shape, case.pool.lanes)
            memory = host_memory(channel.sizes, inputs, None, shape.vectors * shape.slots)
            execute(flat, channel, memory)
            expect_at_rest(channel, f"linear, {case.name}, pass {index}")
            memories.append(memory)
            own_sums = matrix_block(sums[index].T, block_of(block.outer * split, split), GROUPS, 1).T
            own_sums += read_outputs(memory.outputs, shape, own_sums.shape[1])
    return [round_to_bf16(item) for item in sums], memories


def _load(case: LinearCase, channel: FunctionalChannel, blocks: list[Floats]) -> None:
    row = FIRST_ROW
    for shape, own in zip(case.passes, blocks, strict=True):
        place_matrix(channel, row, own, shape)
        row += shape.rows
