"""The KV cache of a small attention case on its channels: prefilled, grown by programs, compared at the end."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compiler.attention import AttentionGeometry, AttentionShape, attention_geometry
from compiler.attention_lowering import AttentionLowering
from compiler.numerics.layout import Floats, block_of, channel_sizes, place_matrix, token_block
from compiler.numerics.report import UNTIMED_HOST, Failure, MismatchError
from compiler.numerics.small_sizes import FIRST_ROW, AttentionCase
from compiler.numerics.small_values import cancelling_pairs, random_elements, random_integers
from simulator.functional import Channel, fresh_channel

INTEGER_UNIT, CANCELLING_UNIT = 1, 2

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Cache:
    """All K and V that the steps will see, float32[units, tokens, width]; channels hold those appended so far.

    In one unit, K cancels over pairs of dimensions and V over pairs of tokens, where their factors are equal.
    """

    keys: Floats
    values: Floats
    dimension_pairs: Pairs
    token_pairs: Pairs
    channels: tuple[Channel, ...]


def lowering_of(case: AttentionCase, shape: AttentionShape) -> AttentionLowering:
    """Return the lowering of a step of the case."""
    return AttentionLowering(shape, case.schedule, case.pool, 1, UNTIMED_HOST, FIRST_ROW)


def whole_kernels(case: AttentionCase, shape: AttentionShape) -> AttentionGeometry:
    """Return the geometry of all tokens in one block, whose kernels say where every token lies."""
    return attention_geometry(shape, replace(case.schedule, token_blocks=1), case.pool)


def units_of(case: AttentionCase, channel: int) -> tuple[int, ...]:
    """Return the units of a channel in the order of their regions; numbers beyond the last unit are padding."""
    count = int(lowering_of(case, case.shape).sizes.units_per_channel)
    group = block_of(channel, case.schedule.token_split).outer
    return tuple(range(group * count, (group + 1) * count))


def prefilled(case: AttentionCase, generator: np.random.Generator) -> Cache:
    """Return a cache with the tokens before the first step in place, all places for later ones cleared."""
    shape = case.shape
    widths = (shape.head_dim, shape.value_width)
    keys, values = (random_elements(generator, shape.cache, shape.units, shape.room, width) for width in widths)
    for tensor in (keys, values):
        tensor[INTEGER_UNIT] = random_integers(generator, *tensor.shape[1:])
    dimensions, tokens = cancelling_pairs(generator, shape.head_dim, shape.head_dim), _token_pairs(case, generator)
    keys[CANCELLING_UNIT][:, dimensions[1]] = -keys[CANCELLING_UNIT][:, dimensions[0]]
    values[CANCELLING_UNIT, tokens[1]] = -values[CANCELLING_UNIT, tokens[0]]
    return Cache(keys, values, dimensions, tokens, _filled_channels(case, shape, keys, values))


def _token_pairs(case: AttentionCase, generator: np.random.Generator) -> Pairs:
    """Return pairs of tokens, each within one segment of one part."""
    split = case.schedule.token_split
    chunk = case.schedule.context_segment_columns * case.pool.lanes
    parts = [cancelling_pairs(generator, len(range(part, case.shape.room, split)), chunk) for part in range(split)]
    left, right = (np.concatenate([pair[side] * split + part for part, pair in enumerate(parts)]) for side in range(2))
    return left, right


def _filled_channels(case: AttentionCase, shape: AttentionShape, keys: Floats, values: Floats) -> tuple[Channel, ...]:
    lowering = lowering_of(case, shape)
    sizes, split = lowering.sizes, case.schedule.token_split
    whole = whole_kernels(case, shape)
    channels = []
    for number in range(case.pool.channels):
        channel = fresh_channel(channel_sizes(case.pool, case.pool.rows, sizes.score.packing))
        channel.cells[FIRST_ROW:] = 0
        part = block_of(number, split).inner
        for local, unit in enumerate(units_of(case, number)):
            if unit >= shape.units:
                continue
            own_keys, own_values = (token_block(item[unit, : shape.tokens], part, split) for item in (keys, values))
            place_matrix(channel, FIRST_ROW + local * sizes.key_rows, own_keys, whole.last_score)
            place_matrix(channel, lowering.first_value_row + local * sizes.value_rows, own_values.T, whole.last_context)
        channels.append(channel)
    return tuple(channels)


def check_cache(case: AttentionCase, cache: Cache) -> None:
    """Raise MismatchError unless every cell holds what a cache filled at once would: nothing lost, nothing else."""
    final = replace(case.shape, tokens=case.shape.tokens + case.steps * case.shape.queries)
    expected = _filled_channels(case, final, cache.keys, cache.values)
    for number, (found, whole) in enumerate(zip(cache.channels, expected, strict=True)):
        if np.array_equal(found.cells, whole.cells, equal_nan=True):
            continue
        same = (found.cells == whole.cells) | (np.isnan(found.cells) & np.isnan(whole.cells))
        place = tuple(int(index) for index in np.argwhere(~same)[0])
        row, column, lane, bank = place
        raise MismatchError(
            Failure(
                operator=f"attention, {case.name}, cache after the last step",
                element=f"channel {number}, bank {bank}, row {row}, column {column}, lane {lane}",
                expected=repr(float(whole.cells[place])),
                found=repr(float(found.cells[place])),
            )
        )
