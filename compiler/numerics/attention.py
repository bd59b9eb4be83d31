"""Decodes steps with a growing KV cache on values, and compares scores, contexts and the cache with what is declared.

Each step appends the newest K, computes scores, appends the newest V, takes the softmax on the host in fp32, rounds
the weights to bf16 and computes contexts; with blocks of tokens, softmax is taken block by block and the host joins the
contexts. One unit holds small integers; its first query head has integer queries and integers in place of weights, so
that its results have to be exact. In another unit products cancel in pairs, so that the order of additions shows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compiler.attention_lowering import AttentionLowering
from compiler.geometry import Geometry, ceil_div
from compiler.hbm_pim.values import column_of_values
from compiler.numerics.emulation import ReductionOrder, emulate_linear, emulate_parts, exact_linear
from compiler.numerics.layout import Floats, block_of, padded, token_block, values_by_bank, vector_columns
from compiler.numerics.report import Result, Rewrite, expect_at_rest
from compiler.numerics.small_cache import INTEGER_UNIT, Cache, check_cache, lowering_of, prefilled, units_of
from compiler.numerics.small_kernel import KernelRun, run_kernel
from compiler.numerics.small_sizes import MOST_PRODUCTS, STEPS_BEFORE_BOUNDARY, AttentionCase
from compiler.numerics.small_softmax import BlockSoftmax, block_softmax, random_queries
from configs.number_format import NumberFormat
from simulator.functional import FlatProgram, execute, flatten_functional, host_memory
from simulator.isa import Program


def check_attention_case(case: AttentionCase, rewrite: Rewrite) -> int:
    """Decode all steps and compare; return how many programs ran.

    Raises MismatchError at the first wrong value, FunctionalError where a program cannot be executed.
    """
    generator = np.random.default_rng(case.shape.tokens)
    cache = prefilled(case, generator)
    compared = _compared_steps(case)
    executed = 0
    for step in range(case.steps):
        shape = replace(case.shape, tokens=case.shape.tokens + (step + 1) * case.shape.queries)
        run = DecodeStep(case, cache, lowering_of(case, shape), rewrite)
        executed += run.append_key()
        scores = run.scores(random_queries(case, cache, generator)) if step in compared else None
        executed += run.append_value()
        if scores is not None:
            run.contexts(block_softmax(case, cache, scores, run.blocks_of_tokens, generator))
            executed += 2 * run.lowering.sizes.blocks * int(case.pool.channels)
    check_cache(case, cache)
    return executed


def _compared_steps(case: AttentionCase) -> tuple[int, ...]:
    """Return every step, or where caches are large the first, those around the boundary and the last."""
    if case.products_per_step <= MOST_PRODUCTS:
        return tuple(range(case.steps))
    return (0, STEPS_BEFORE_BOUNDARY - 1, STEPS_BEFORE_BOUNDARY, STEPS_BEFORE_BOUNDARY + 1, case.steps - 1)


@dataclass(frozen=True, slots=True, eq=False)
class DecodeStep:
    """One step on all channels of a case."""

    case: AttentionCase
    cache: Cache
    lowering: AttentionLowering
    rewrite: Rewrite

    def append_key(self) -> int:
        """Run the append of the newest K where its tokens belong; return how many channels ran it."""
        lanes, sizes, keys = self.case.pool.lanes, self.lowering.sizes.last_score, self.cache.keys

        def entries(unit: int, token: int) -> Floats:
            return vector_columns(_of_unit(keys, unit, token)[None, :], sizes, lanes)

        programs = {part: self.lowering.key_append(part) for part in range(self.split)}
        return self._append("k append", programs, entries, False)

    def append_value(self) -> int:
        """Run the append of the newest V where its tokens belong; return how many channels ran it."""
        programs = {part: self.lowering.value_append(part) for part in range(self.split)}
        return self._append("v append", programs, self._value_entries, True)

    def scores(self, queries: Floats) -> Floats:
        """Run the score kernels and compare; return scores[unit, query head, token]."""
        shape, split, sizes = self.lowering.shape, self.split, self.lowering.sizes
        runs = [self._run("score", block, lambda unit, _: queries[unit]) for block in range(sizes.blocks)]
        scores = np.zeros((shape.units, shape.group, shape.tokens), dtype=np.float32)
        half = self.case.pool.runs_microkernels
        order = ReductionOrder(self.case.pool.lanes, sizes.last_score.segment_columns, half_precision=half)
        for unit in range(shape.units):
            for block, run in enumerate(runs):
                for part in range(split):
                    own = scores[unit, :, part::split][:, self._locals(block)]
                    own[:] = run.outputs(unit, part, own.shape[1])
            keys = self.cache.keys[unit, : shape.tokens]
            exact, size = exact_linear(keys, queries[unit])
            self._result("score", unit, exact, order.gamma(shape.head_dim) * size).check(
                scores[unit], emulate_linear(keys, queries[unit], order), self._score_writer(runs, unit)
            )
        return scores

    def contexts(self, softmax: BlockSoftmax) -> None:
        """Run the context kernels and compare; the host joins blocks in turn, their parts in channel order."""
        shape, sizes = self.lowering.shape, self.lowering.sizes
        runs = [self._run("context", block, self._weights_of(softmax, block)) for block in range(sizes.blocks)]
        columns = max(run.kernel.total_columns for run in runs)
        order = ReductionOrder(
            self.case.pool.lanes,
            sizes.last_context.segment_columns,
            parts=self.split * sizes.blocks,
            scales=2 if sizes.blocks > 1 else 0,
            half_precision=self.case.pool.runs_microkernels,
        )
        for unit in range(shape.units):
            found, emulated = [], []
            exact, size = np.zeros((2, shape.group, shape.value_width))
            for block, run in enumerate(runs):
                found.append(np.stack([run.outputs(unit, part, shape.value_width) for part in range(self.split)]))
                values, weights = (self._part_after_part(item, block) for item in softmax.of_unit(self.cache, unit))
                one = replace(order, parts=self.split)
                emulated.append(emulate_parts(values, weights, one))
                block_exact, block_size = exact_linear(values, weights)
                factor = softmax.factors[unit, :, block].astype(np.float64) * softmax.norms[unit]
                exact, size = exact + factor[:, None] * block_exact, size + factor[:, None] * block_size
            bound = order.gamma_of_columns(columns) * size
            self._result("context", unit, exact, bound).check(
                softmax.join(unit, found), softmax.join(unit, emulated), runs[0].writer_of_part(unit, 0)
            )

    @property
    def split(self) -> int:
        """Channels that share the tokens of a unit."""
        return self.case.schedule.token_split

    @property
    def blocks_of_tokens(self) -> NDArray[np.int64]:
        """The block that each token is worked on in."""
        local = np.arange(self.lowering.shape.tokens, dtype=np.int64) // self.split
        return local // int(self.lowering.sizes.block_tokens)

    def _locals(self, block: int) -> slice:
        """Return the tokens of a block among those of a channel."""
        count = self.lowering.sizes.block_tokens
        return slice(block * count, (block + 1) * count)

    def _weights_of(self, softmax: BlockSoftmax, block: int) -> Callable[[int, int], Floats]:
        return lambda unit, part: softmax.weights[unit][:, part :: self.split][:, self._locals(block)]

    def _part_after_part(self, tokens: Floats, block: int) -> Floats:
        """Return [other, tokens] of a block, part after part, each padded with zeros to the length of the longest."""
        longest = ceil_div(tokens.shape[1], self.split)
        length = min(longest - block * self.lowering.sizes.block_tokens, self.lowering.sizes.block_tokens)
        parts = (token_block(tokens.T, part, self.split)[self._locals(block)] for part in range(self.split))
        return np.concatenate([padded(part, length, tokens.shape[0]) for part in parts]).T

    def _flat(self, name: str, program: Program) -> FlatProgram:
        return flatten_functional(self.rewrite(name, program))

    def _run(self, name: str, block: int, vectors_of: Callable[[int, int], Floats]) -> KernelRun:
        """Run a kernel of a block on every channel."""
        score, context = self.lowering.sizes.kernels(block)
        kernel: Geometry = score if name == "score" else context
        program = self.lowering.score_program(block) if name == "score" else self.lowering.context_program(block)
        return run_kernel(self.case, self.cache, kernel, self._flat(name, program), vectors_of)

    def _value_entries(self, unit: int, newest: int) -> Floats:
        """Return V of a token by bank, behind that of the token that shares its bytes where one does."""
        per_write = self.lowering.values_per_write
        place = newest // self.split % per_write
        sharing = [newest - (place - index) * self.split for index in range(place + 1)]
        banks, context = self.case.pool.banks, self.lowering.sizes.last_context
        if self.case.pool.runs_microkernels:
            return self._value_column(unit, newest)
        entries = np.zeros((context.slots, per_write, banks), dtype=np.float32)
        for index, token in enumerate(sharing):
            entries[:, index] = values_by_bank(_of_unit(self.cache.values, unit, token), context, banks)
        return entries.reshape(-1, banks)

    def _value_column(self, unit: int, newest: int) -> Floats:
        """Return the column of V that a token is the newest of, one entry for every dimension."""
        pool, part = self.case.pool, newest % self.split
        local = newest // self.split
        tokens = [place * self.split + part for place in range(local - local % pool.lanes, local + 1)]
        values = np.stack([_of_unit(self.cache.values, unit, token) for token in tokens])
        return column_of_values(values, self.lowering.sizes.last_context.slots, pool.banks, pool.lanes)

    def _append(
        self, name: str, programs: Mapping[int, Program], entries: Callable[[int, int], Floats], by_bank: bool
    ) -> int:
        """Run an append on every channel that holds newest tokens; padding units append zeros."""
        shape = self.lowering.shape
        newest = range(shape.tokens - shape.queries, shape.tokens)
        half, ran = shape.cache is NumberFormat.FP16, 0
        for number, channel in enumerate(self.cache.channels):
            part = block_of(number, self.split).inner
            own = [token for token in newest if token % self.split == part]
            if not own:
                continue
            if by_bank and self.case.pool.runs_microkernels:
                own = list({token // self.split // self.case.pool.lanes: token for token in own}.values())
            values = np.concatenate([entries(unit, token) for unit in units_of(self.case, number) for token in own])
            both = (None, values) if by_bank and not self.case.pool.runs_microkernels else (values, None)
            events = np.zeros(len(values), dtype=np.int64)
            memory = host_memory(channel.sizes, *both, half=half, input_events=events)
            execute(self._flat(name, programs[part]), channel, memory)
            expect_at_rest(channel, memory, f"attention, {self.case.name}, append")
            ran += 1
        return ran

    def _score_writer(self, runs: list[KernelRun], unit: int) -> Callable[[int, int], str]:
        """Return what names the command that wrote a score."""

        def writer(vector: int, token: int) -> str:
            block, inside = divmod(token // self.split, int(self.lowering.sizes.block_tokens))
            return runs[block].writer_of_part(unit, token % self.split)(vector, inside)

        return writer

    def _result(self, name: str, unit: int, exact: NDArray[np.float64], bound: NDArray[np.float64]) -> "_Expected":
        operator = f"attention, {self.case.name}, {name} of unit {unit} at {self.lowering.shape.tokens} tokens"
        return _Expected(operator, unit == INTEGER_UNIT, exact, bound)


@dataclass(frozen=True, slots=True, eq=False)
class _Expected:
    """What a unit's results should be in fp64, and how far they may be from that."""

    operator: str
    first_exact: bool
    exact: NDArray[np.float64]
    bound: NDArray[np.float64]

    def check(self, found: Floats, emulated: Floats, writer: Callable[[int, int], str]) -> None:
        """Raise MismatchError at the first element that is wrong."""
        integers = np.zeros(self.exact.shape, dtype=bool)
        integers[0] = self.first_exact
        Result(self.operator, np.ascontiguousarray(found), emulated, self.exact, self.bound, integers, writer).check()


def _of_unit(tensor: Floats, unit: int, token: int) -> Floats:
    """Return a token's row of tensor[unit, token, dimension]; zeros for a padding unit."""
    return tensor[unit, token] if unit < len(tensor) else np.zeros(tensor.shape[2], dtype=np.float32)
