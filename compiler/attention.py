"""Attention of one decode step on the units: its shape, and where K, V and the blocks of tokens lie.

K rows hold tokens: a token's head_dim values lie in one slot of one bank, so that scores are a kernel whose outputs are
tokens. V rows hold dimensions along the tokens, so that the context is a kernel whose inputs are tokens. Token t lives
in channel t mod token_split of its unit; a unit is one KV head of one sequence. Where tokens are worked on in blocks,
these are cut where a row of K and a segment of V end, so that a block is whole rows of both.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.geometry import Geometry, Packing, ceil_div, packing, plain
from compiler.hbm_pim.tiles import whole_pairs
from compiler.kernels import geometry_on
from compiler.schedule import AttentionSchedule, LoopOrder, PoolShape
from configs.microkernel_units import BANKS_OF_UNIT
from configs.number_format import CACHE_STORAGE, NumberFormat, Storage


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """One attention operator: `tokens` are attended by `heads` query heads of `batch` sequences.

    The newest `queries` tokens of each sequence are decoded together (more than one where drafts are verified) and
    share its cache; which of them a query may see is the host's softmax to mask.

    The cache, of one number format, has room for `capacity` tokens, or just for those attended where that is less:
    places depend on the room, so that a cache that grows within it stays where it is. `limit` is the most tokens that
    are ever attended, 0 where only the context limits them. `value_bytes` are those of a query, a score or a result.

    A key has `head_dim` values, a value `value_dim`, or as many where that is 0. The values of a `latent` cache are the
    first of its keys: the host keeps them once, the banks in both layouts. `softcap`, `sinks` and a bias, of which
    `bias_heads` heads have one of their own, are the host's softmax to apply.
    """

    name: str
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    tokens: int
    value_bytes: int = 2
    capacity: int = 0
    cache: NumberFormat = NumberFormat.BF16
    queries: int = 1
    value_dim: int = 0
    latent: bool = False
    limit: int = 0
    softcap: bool = False
    sinks: bool = False
    bias_heads: int = 0

    def __post_init__(self) -> None:
        """Refuse more new tokens than there are tokens."""
        if self.queries > self.tokens:
            raise ValueError(f"{self.name}: expected at most {self.tokens} queries, found {self.queries}")

    @property
    def room(self) -> int:
        """Tokens that the cache has places for."""
        return max(self.tokens, self.capacity)

    @property
    def units(self) -> int:
        """KV heads of all sequences."""
        return self.batch * self.kv_heads

    @property
    def group(self) -> int:
        """Query vectors that share one KV head: heads, times queries."""
        return self.heads // self.kv_heads * self.queries

    @property
    def vectors(self) -> int:
        """Query vectors of all sequences."""
        return self.units * self.group

    @property
    def value_width(self) -> int:
        """Values of one token's V of one head."""
        return self.value_dim or self.head_dim

    @property
    def kv_bytes(self) -> int:
        """Bytes of K and V that the units read in one step, scales of tokens not counted: they are the host's."""
        return self.units * self.tokens * (self.head_dim + self.value_width) * self.storage.bits // 8

    @property
    def k_bytes(self) -> int:
        """Bytes of K."""
        return self.units * self.tokens * self.head_dim * self.storage.bits // 8

    @property
    def v_bytes(self) -> int:
        """Bytes of V."""
        return self.units * self.tokens * self.value_width * self.storage.bits // 8

    @property
    def host_kv_bytes(self) -> int:
        """Bytes of K and V in one memory: a latent cache is stored and read once."""
        return self.k_bytes if self.latent else self.kv_bytes

    @property
    def operations(self) -> int:
        """Operations of both products."""
        return 2 * self.vectors * self.tokens * (self.head_dim + self.value_width)

    @property
    def stored(self) -> NumberFormat:
        """The format of what the banks hold."""
        return self.cache

    @property
    def storage(self) -> Storage:
        """How K and V are stored."""
        return CACHE_STORAGE[self.cache]


@dataclass(frozen=True, slots=True)
class AttentionGeometry:
    """The kernels of one unit on one channel, rows of its K and V, how units lie over channels (ints or arrays).

    `blocks` blocks of `block_tokens` tokens, the last one with what is left: `score` and `context` are the kernels of
    a block, `last_score` and `last_context` those of the last one, and the only ones where there is one block.
    """

    score: Geometry
    context: Geometry
    last_score: Geometry
    last_context: Geometry
    blocks: Any
    block_tokens: Any
    key_rows: Any
    value_rows: Any
    units_per_channel: Any
    active_channels: Any

    @property
    def rows(self) -> Any:
        """Rows of every bank that K and V of the channel's units occupy."""
        return self.units_per_channel * (self.key_rows + self.value_rows)

    def kernels(self, block: int) -> tuple[Geometry, Geometry]:
        """Return the score and the context kernel of a block."""
        if block == self.blocks - 1:
            return self.last_score, self.last_context
        return self.score, self.context


@dataclass(frozen=True, slots=True)
class BusiestDevice:
    """What the link of the busiest device carries: as many copies of queries as it has KV heads, its own channels.

    Channels lie in contiguous blocks over devices, the channels of a unit's tokens beside each other. Ints or arrays.
    """

    query_copies: Any
    channels: Any


def busiest_device(sizes: AttentionGeometry, token_split: Any, pool: PoolShape, devices: int) -> BusiestDevice:
    """Return the load of the device that takes part most."""
    own = pool.channels // devices
    aligned = (own % token_split == 0) | (token_split % own == 0)
    groups = np.where(aligned, np.maximum(own // token_split, 1), (own - 2) // token_split + 2)
    active_groups = ceil_div(sizes.active_channels, token_split)
    return BusiestDevice(
        query_copies=np.minimum(groups, active_groups),
        channels=np.minimum(own, ceil_div(sizes.active_channels, 1)),
    )


def key_columns(shape: AttentionShape, pool: PoolShape) -> Any:
    """Return the columns of one token's K: whole columns of the device, as it is written."""
    per_column = packing(shape.storage, pool).per_column
    return ceil_div(shape.head_dim, pool.lanes * per_column) * per_column


def attention_geometry(shape: AttentionShape, schedule: AttentionSchedule, pool: PoolShape) -> AttentionGeometry:
    """Return the geometry of the operator on the units (records may hold arrays)."""
    kernels = _Kernels(shape, schedule, pool, packing(shape.storage, pool))
    tokens = ceil_div(shape.tokens, schedule.token_split)
    unit_groups = np.maximum(pool.channels // schedule.token_split, 1)
    units_per_channel = ceil_div(shape.units, unit_groups)
    tokens_of_row = kernels.score(tokens).slots_per_row * pool.banks
    tokens_of_segment = schedule.context_segment_columns * pool.lanes
    whole = np.lcm(tokens_of_row, tokens_of_segment * (BANKS_OF_UNIT if pool.runs_microkernels else 1))
    block_tokens = ceil_div(ceil_div(tokens, schedule.token_blocks), whole) * whole
    blocks = ceil_div(tokens, block_tokens)
    last_tokens = tokens - (blocks - 1) * block_tokens
    context = kernels.context(np.minimum(block_tokens, tokens))
    room = ceil_div(shape.room, schedule.token_split)
    return AttentionGeometry(
        score=kernels.score(np.minimum(block_tokens, tokens)),
        context=context,
        last_score=kernels.score(last_tokens),
        last_context=kernels.context(last_tokens),
        blocks=plain(blocks),
        block_tokens=plain(block_tokens),
        key_rows=plain(whole_pairs(ceil_div(room, tokens_of_row), pool.microkernel_words)),
        value_rows=plain(
            whole_pairs(ceil_div(room, tokens_of_segment) * context.rows_per_segment, pool.microkernel_words)
        ),
        units_per_channel=plain(units_per_channel),
        active_channels=plain(shape.units * schedule.token_split / units_per_channel),
    )


@dataclass(frozen=True, slots=True)
class _Kernels:
    """Makes the geometry of both kernels for so many tokens of a channel."""

    shape: AttentionShape
    schedule: AttentionSchedule
    pool: PoolShape
    packed: Packing

    def score(self, tokens: Any) -> Geometry:
        columns = key_columns(self.shape, self.pool)
        return geometry_on(
            self.pool,
            tokens,
            columns * self.pool.lanes,
            self.shape.group,
            segment_columns=columns,
            reuse=self.schedule.score_reuse,
            registers=self.schedule.registers,
            order=LoopOrder.RELOAD,
            packed=self.packed,
        )

    def context(self, tokens: Any) -> Geometry:
        return geometry_on(
            self.pool,
            self.shape.value_width,
            tokens,
            self.shape.group,
            segment_columns=self.schedule.context_segment_columns,
            reuse=self.schedule.context_reuse,
            registers=self.schedule.registers,
            order=LoopOrder.RELOAD,
            growing=True,
            packed=self.packed,
        )
