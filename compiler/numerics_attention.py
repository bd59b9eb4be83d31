"""Decodes steps with a growing KV cache on values, and compares scores, contexts and the cache with what is declared.

Each step appends the newest K, computes scores, appends the newest V, takes the softmax on the host in fp32, rounds
the probabilities to bf16 and computes contexts. One unit holds small integers; its first query head has integer
queries and integers in place of probabilities, so that its results have to be exact. In another unit products cancel
in pairs, so that the order of additions shows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from compiler.attention import AttentionLowering
from compiler.emulation import ReductionOrder, emulate_linear, exact_linear
from compiler.geometry import Geometry, ceil_div
from compiler.layout import (
    Floats,
    block_of,
    output_entry,
    padded,
    read_outputs,
    token_block,
    values_by_bank,
    vector_columns,
)
from compiler.numerics_report import Result, Rewrite, command_text, expect_at_rest
from compiler.small_cache import CANCELLING_UNIT, INTEGER_UNIT, Cache, check_cache, lowering_of, prefilled, units_of
from compiler.small_sizes import MOST_PRODUCTS, STEPS_BEFORE_BOUNDARY, AttentionCase
from compiler.small_values import random_values, sparse_integers
from simulator.bf16 import round_to_bf16
from simulator.functional import FlatProgram, HostMemory, execute, flatten_functional, host_memory
from simulator.isa import Program

# Scores become softmax(score * scale); a small scale keeps probabilities level, so that every token counts.
LEVELLING = 0.25


def check_attention_case(case: AttentionCase, rewrite: Rewrite) -> int:
    """Decode all steps and compare; return how many programs ran.

    Raises MismatchError at the first wrong value, FunctionalError where a program cannot be executed.
    """
    generator = np.random.default_rng(case.shape.tokens)
    cache = prefilled(case, generator)
    compared = _compared_steps(case)
    executed = 0
    for step in range(case.steps):
        shape = replace(case.shape, tokens=case.shape.tokens + step + 1)
        run = DecodeStep(case, cache, lowering_of(case, shape), rewrite)
        executed += run.append_key()
        scores = run.scores(_queries(case, cache, generator)) if step in compared else None
        executed += run.append_value()
        if scores is not None:
            run.contexts(_probabilities(case, cache, scores, generator))
            executed += 2 * int(case.pool.channels)
    check_cache(case, cache)
    return executed


def _compared_steps(case: AttentionCase) -> tuple[int, ...]:
    """Return every step, or where caches are large the first, those around the boundary and the last."""
    if case.products_per_step <= MOST_PRODUCTS:
        return tuple(range(case.steps))
    return (0, STEPS_BEFORE_BOUNDARY - 1, STEPS_BEFORE_BOUNDARY, STEPS_BEFORE_BOUNDARY + 1, case.steps - 1)


def _queries(case: AttentionCase, cache: Cache, generator: np.random.Generator) -> Floats:
    """Return queries[unit, query head, k]."""
    shape = case.shape
    queries = random_values(generator, shape.units, shape.group, shape.head_dim)
    left, right = cache.dimension_pairs
    queries[CANCELLING_UNIT][:, right] = queries[CANCELLING_UNIT][:, left]
    queries[INTEGER_UNIT, 0] = sparse_integers(generator, shape.head_dim)
    return queries


def _probabilities(case: AttentionCase, cache: Cache, scores: Floats, generator: np.random.Generator) -> Floats:
    """Return the host's softmax of scores[unit, query head, token] in fp32, rounded to bf16."""
    tokens = scores.shape[2]
    scaled = scores * np.float32(LEVELLING / np.sqrt(case.shape.head_dim))
    exponentials = np.exp(scaled - scaled.max(axis=2, keepdims=True))
    rounded = round_to_bf16(exponentials / exponentials.sum(axis=2, keepdims=True))
    rounded[INTEGER_UNIT, 0] = sparse_integers(generator, tokens)
    rounded[INTEGER_UNIT, 0, -1] = 1
    left, right = (side[np.maximum(*cache.token_pairs) < tokens] for side in cache.token_pairs)
    rounded[CANCELLING_UNIT, 0] = random_values(generator, tokens)
    rounded[CANCELLING_UNIT, 0, right] = rounded[CANCELLING_UNIT, 0, left]
    return rounded


@dataclass(frozen=True, slots=True, eq=False)
class DecodeStep:
    """One step on all channels of a case."""

    case: AttentionCase
    cache: Cache
    lowering: AttentionLowering
    rewrite: Rewrite

    def append_key(self) -> int:
        """Run the append of the newest K where its token belongs; return how many channels ran it."""
        lanes, sizes = self.case.pool.lanes, self.lowering.sizes.score
        flat = self._flat("k append", self.lowering.key_append())
        return self._append(flat, self.cache.keys, lambda value: vector_columns(value[None, :], sizes, lanes), False)

    def append_value(self) -> int:
        """Run the append of the newest V where its token belongs; return how many channels ran it."""
        banks, sizes = self.case.pool.banks, self.lowering.sizes.context
        flat = self._flat("v append", self.lowering.value_append())
        return self._append(flat, self.cache.values, lambda value: values_by_bank(value, sizes, banks), True)

    def scores(self, queries: Floats) -> Floats:
        """Run the score kernels and compare; return scores[unit, query head, token]."""
        shape, split = self.lowering.shape, self.split
        kernel = self.lowering.sizes.score
        flat = self._flat("score", self.lowering.score_program())
        memories = self._run(flat, kernel, lambda unit, _: queries[unit])
        scores = np.zeros((shape.units, shape.group, shape.tokens), dtype=np.float32)
        for unit in range(shape.units):
            for part in range(split):
                own = scores[unit, :, part::split]
                own[:] = read_outputs(self._entries(memories, unit, part, kernel), kernel, own.shape[1])
            order = ReductionOrder(self.case.pool.lanes, kernel.segment_columns)
            keys = self.cache.keys[unit, : shape.tokens]
            writer = self._writer(flat, memories, kernel, unit, split)
            self._check("score", unit, scores[unit], keys, queries[unit], order, writer)
        return scores

    def contexts(self, probabilities: Floats) -> None:
        """Run the context kernels and compare, parts of the tokens added in channel order."""
        shape, split = self.lowering.shape, self.split
        kernel = self.lowering.sizes.context
        flat = self._flat("context", self.lowering.context_program())
        memories = self._run(flat, kernel, lambda unit, part: probabilities[unit][:, part::split])
        order = ReductionOrder(self.case.pool.lanes, kernel.segment_columns, parts=split)
        for unit in range(shape.units):
            total = np.zeros((shape.group, shape.head_dim), dtype=np.float32)
            for part in range(split):
                total += read_outputs(self._entries(memories, unit, part, kernel), kernel, shape.head_dim)
            values = _part_after_part(self.cache.values[unit, : shape.tokens], split).T
            weights = _part_after_part(probabilities[unit].T, split).T
            writer = self._writer(flat, memories, kernel, unit, 1)
            self._check("context", unit, round_to_bf16(total), values, weights, order, writer)

    @property
    def split(self) -> int:
        """Channels that share the tokens of a unit."""
        return self.case.schedule.token_split

    def _flat(self, name: str, program: Program) -> FlatProgram:
        return flatten_functional(self.rewrite(name, program))

    def _append(self, flat: FlatProgram, tensor: Floats, entries: Callable[[Floats], Floats], by_bank: bool) -> int:
        """Run an append on the channel of each group that holds the newest token; padding units append zeros."""
        newest = self.lowering.shape.tokens - 1
        holders = range(newest % self.split, self.case.pool.channels, self.split)
        nothing = np.zeros(tensor.shape[2], dtype=np.float32)
        for number in holders:
            units = units_of(self.case, number)
            values = np.concatenate([entries(tensor[u, newest] if u < len(tensor) else nothing) for u in units])
            channel = self.cache.channels[number]
            memory = host_memory(channel.sizes, None if by_bank else values, values if by_bank else None)
            execute(flat, channel, memory)
            expect_at_rest(channel, f"attention, {self.case.name}, append")
        return len(holders)

    def _run(self, flat: FlatProgram, kernel: Geometry, vectors_of: Callable[[int, int], Floats]) -> list[HostMemory]:
        """Run a kernel on every channel; return the host memories of each."""
        memories = []
        for number, channel in enumerate(self.cache.channels):
            part = block_of(number, self.split).inner
            inputs = [
                vector_columns(vectors_of(unit, part), kernel, self.case.pool.lanes)
                if unit < self.case.shape.units
                else np.zeros((kernel.vectors * kernel.total_columns, self.case.pool.lanes), dtype=np.float32)
                for unit in units_of(self.case, number)
            ]
            entries = len(inputs) * kernel.vectors * kernel.slots
            memory = host_memory(channel.sizes, np.concatenate(inputs), None, entries)
            execute(flat, channel, memory)
            expect_at_rest(channel, f"attention, {self.case.name}, kernel")
            memories.append(memory)
        return memories

    def _place(self, unit: int, part: int, kernel: Geometry) -> tuple[int, int]:
        """Return the channel of a unit's part, and the first output entry of the unit there."""
        per_channel = int(self.lowering.sizes.units_per_channel)
        first = unit % per_channel * kernel.vectors * kernel.slots
        return unit // per_channel * self.split + part, first

    def _entries(self, memories: list[HostMemory], unit: int, part: int, kernel: Geometry) -> Floats:
        channel, first = self._place(unit, part, kernel)
        return memories[channel].outputs[first : first + kernel.vectors * kernel.slots]

    def _writer(
        self, flat: FlatProgram, memories: list[HostMemory], kernel: Geometry, unit: int, output_split: int
    ) -> Callable[[int, int], str]:
        """Return what names the command that wrote an output; of outputs that are sums, the first part's."""

        def writer(vector: int, output: int) -> str:
            channel, first = self._place(unit, output % output_split, kernel)
            entry, _ = output_entry(vector, output // output_split, kernel)
            return command_text(flat, int(memories[channel].writers[first + entry]))

        return writer

    def _check(
        self,
        name: str,
        unit: int,
        found: Floats,
        weights: Floats,
        vectors: Floats,
        order: ReductionOrder,
        writer: Callable[[int, int], str],
    ) -> None:
        exact, size = exact_linear(weights, vectors)
        integers = np.zeros(exact.shape, dtype=bool)
        integers[0] = unit == INTEGER_UNIT
        Result(
            operator=f"attention, {self.case.name}, {name} of unit {unit} at {self.lowering.shape.tokens} tokens",
            found=np.ascontiguousarray(found),
            emulated=emulate_linear(weights, vectors, order),
            exact=exact,
            bound=order.gamma(weights.shape[1]) * size,
            integers=integers,
            writer=writer,
        ).check()


def _part_after_part(tokens: Floats, split: int) -> Floats:
    """Return token rows part after part, each padded with zeros to the length of the longest: channel order."""
    longest = ceil_div(len(tokens), split)
    parts = (padded(token_block(tokens, part, split), longest, tokens.shape[1]) for part in range(split))
    return np.concatenate(list(parts))
