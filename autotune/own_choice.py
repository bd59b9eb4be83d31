"""Schedules of our mapping of a block: a small set of candidates per operator, each replayed, the fastest taken.

Candidates run on one channel, since all channels work in lock-step. The time of additions that a split asks of the
accelerators counts. Ties go to the earlier candidate, so that the choice is the same on every machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from autotune.block_replay import channel_cycles
from compiler.aim.block import BlockShape, Placement
from compiler.aim.latency import LANES, sum_cycles
from compiler.aim.own_attention import OwnAttention
from compiler.aim.own_block import OwnSchedules, block_pool, cache_room, own_layers
from compiler.aim.own_linear import linear_trace
from compiler.geometry import ceil_div
from compiler.linear import LinearShape
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder, PoolShape
from configs.device import Device
from simulator.aim.rules import Rules

MOST_SPLIT = 8
MOST_REUSE = 8


@dataclass(frozen=True, slots=True)
class Chooser:
    """What a choice needs: the block, its place, the device and its rules."""

    shape: BlockShape
    place: Placement
    device: Device
    rules: Rules

    @property
    def pool(self) -> PoolShape:
        """What the schedules of one copy see of the device."""
        return block_pool(self.device, self.place)

    def schedules(self) -> OwnSchedules:
        """Return the fastest candidate of every operator."""
        layers = own_layers(self.shape)
        return OwnSchedules(
            query_key_value=self._linear(layers.query_key_value),
            attention=self._attention(),
            output=self._linear(layers.output),
            gate=self._linear(layers.gate, activated=True),
            up=self._linear(layers.up),
            down=self._linear(layers.down),
        )

    def _linear(self, layer: LinearShape, *, activated: bool = False) -> LinearSchedule:
        def cycles(schedule: LinearSchedule) -> float:
            found = linear_trace(layer, schedule, self.pool, (0,), 0, activated=activated)
            return channel_cycles(found.instructions, self.rules) + self._sums(layer.outputs, schedule.reduction_split)

        return min(self._linear_candidates(activated), key=cycles)

    def _linear_candidates(self, activated: bool) -> Iterator[LinearSchedule]:
        """Yield both loop orders with long and half segments, then splits; outputs to activate are never split."""
        registers, longest = int(self.pool.accumulators), int(self.pool.buffer_columns)
        first = LinearSchedule(segment_columns=longest, registers=registers // 2 if activated else registers)
        for order, columns in product(LoopOrder, (longest, longest // 2)):
            yield replace(first, order=order, segment_columns=columns)
        if not activated:
            yield from (replace(first, reduction_split=split) for split in (2, 4) if self.place.channels % split == 0)

    def _attention(self) -> AttentionSchedule:
        """Choose scores and contexts apart for every split of the tokens, then the split."""
        found: list[tuple[float, AttentionSchedule]] = []
        for split in self._token_splits():
            first = AttentionSchedule(token_split=split, registers=int(self.pool.accumulators))
            score_cycles, score = _fastest(self._score_candidates(first), self._score_cycles)
            cycles, both = _fastest(self._context_candidates(score), self._context_cycles)
            # With the contexts go 16 copies of every head's sum of exponentials.
            sums = self._sums(self.shape.query_width + LANES * self.shape.heads, split)
            found.append((score_cycles + cycles + sums, both))
        return min(found, key=lambda item: item[0])[1]

    def _score_candidates(self, first: AttentionSchedule) -> Iterator[AttentionSchedule]:
        columns = self.place.columns_of(self.shape.head_dim)
        for reuse in self._reuses():
            if reuse * columns <= self.pool.buffer_columns:
                yield replace(first, score_reuse=reuse)

    def _context_candidates(self, score: AttentionSchedule) -> Iterator[AttentionSchedule]:
        """Yield, for every reuse, the longest segment that buffer and context fill, and half of it."""
        filled = self.place.columns_of(int(ceil_div(self.shape.context, score.token_split)))
        for reuse in self._reuses():
            longest = min(int(self.pool.buffer_columns) // reuse, 1 << (filled - 1).bit_length())
            for columns in (longest, max(longest // 2, 1)):
                yield replace(score, context_reuse=reuse, context_segment_columns=columns)

    def _score_cycles(self, schedule: AttentionSchedule) -> int:
        return channel_cycles(self._own(schedule).scores(), self.rules)

    def _context_cycles(self, schedule: AttentionSchedule) -> int:
        """Return the cycles of contexts and of the append, which writes V where this schedule places it."""
        own = self._own(schedule)
        append = own.append()
        of_one = [item for item in append if append[0].channels[0] in item.channels]
        return channel_cycles(own.contexts(), self.rules) + channel_cycles(of_one, self.rules)

    def _own(self, schedule: AttentionSchedule) -> OwnAttention:
        return OwnAttention(self.shape, self.place, self.pool, schedule, cache_room(self.shape))

    def _sums(self, values: int, parts: int) -> float:
        return sum_cycles(values, parts, self.place.device_channels) * self.place.copies

    def _token_splits(self) -> tuple[int, ...]:
        """Return 1 where heads fill the channels evenly, else every split that the channels allow."""
        if self.shape.kv_heads % self.place.channels == 0:
            return (1,)
        return tuple(split for split in range(1, MOST_SPLIT + 1) if self.place.channels % split == 0)

    def _reuses(self) -> tuple[int, ...]:
        return tuple(count for count in range(1, MOST_REUSE + 1) if self.shape.group % count == 0)


def _fastest(
    candidates: Iterator[AttentionSchedule], cycles: Callable[[AttentionSchedule], int]
) -> tuple[int, AttentionSchedule]:
    return min(((cycles(schedule), schedule) for schedule in candidates), key=lambda item: item[0])
