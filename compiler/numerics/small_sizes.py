"""Structure-preserving small sizes: the same knobs on operators and pools that are as small as the structure allows.

Every loop that a schedule can have runs at least twice, with a full and a ragged tile on each split axis; cases with a
single segment or a single group of outputs are added, since they lower to other code. All-bank commands treat every
bank alike, so that a few banks stand for all; splits over channels are kept, with up to three parts, whose sums depend
on their order.
"""

from dataclasses import dataclass, replace
from math import lcm

from compiler.attention import AttentionGeometry, AttentionShape, attention_geometry
from compiler.geometry import Geometry, ceil_div, packing
from compiler.linear import LinearShape, kernel_outputs, linear_geometry
from compiler.schedule import AttentionSchedule, LinearSchedule, PoolShape
from configs.number_format import CACHE_STORAGE, STORAGE, NumberFormat

FIRST_ROW = 2  # other than 0, so that a forgotten base row is seen; even, as pairs of rows begin
MOST_PARTS = 3
MOST_BANKS, FEWEST_BANKS = 8, 4
MOST_WEIGHTS = 6_000_000  # of all channels of a linear case; fewer parts and banks where there would be more
MOST_PRODUCTS = 6_000_000  # per decode step of an attention case; fewer parts where there would be more
GROUPS = 2  # of channels: of outputs, or of units
FULL_SEGMENTS = 3
DECODE_STEPS = 17
STEPS_BEFORE_BOUNDARY = 8
MANY = 1 << 30


@dataclass(frozen=True, slots=True)
class LinearCase:
    """One linear operator on a small pool."""

    name: str
    shape: LinearShape
    schedule: LinearSchedule
    pool: PoolShape

    @property
    def passes(self) -> tuple[Geometry, ...]:
        """The geometry of each pass over the matrices, in order."""
        outputs = kernel_outputs(self.shape, self.schedule.merged)
        return tuple(linear_geometry(self.shape, item, self.schedule, self.pool) for item in outputs)


@dataclass(frozen=True, slots=True)
class AttentionCase:
    """One attention operator on a small pool: `shape.tokens` are in the cache before the first of the steps."""

    name: str
    shape: AttentionShape
    schedule: AttentionSchedule
    pool: PoolShape
    steps: int

    @property
    def products_per_step(self) -> int:
        """Products of a step's scores and contexts."""
        shape = self.shape
        return shape.vectors * shape.room * (shape.head_dim + shape.value_width)


def linear_cases(
    schedule: LinearSchedule, pool: PoolShape, weights: NumberFormat = NumberFormat.BF16
) -> tuple[LinearCase, ...]:
    """Return the cases of a linear schedule: many or one segment, many or one group of outputs."""
    packed = packing(STORAGE[weights], pool)
    row_columns = pool.columns * packed.per_column
    while packed.stored(row_columns) > pool.columns * packed.per_column:
        row_columns -= packed.group
    longest = min(row_columns, pool.buffer_columns // schedule.reuse)
    segment = schedule.segment_columns
    totals = {"one segment": max(1, 2 * min(segment, longest) // 3)}
    if segment <= longest:
        totals["many segments"] = FULL_SEGMENTS * segment + max(1, segment // 3)
    return tuple(
        _linear_case(f"{text}, {count} of outputs", schedule, pool, weights, total, count == "many groups")
        for text, total in totals.items()
        for count in ("one group", "many groups")
    )


def _linear_case(
    name: str, schedule: LinearSchedule, pool: PoolShape, weights: NumberFormat, total_columns: int, many_groups: bool
) -> LinearCase:
    """Return the first case that is small enough, else the smallest: up to three parts or two, eight banks or four."""
    for parts, banks in ((MOST_PARTS, MOST_BANKS), (MOST_PARTS, FEWEST_BANKS), (2, FEWEST_BANKS)):
        own = replace(schedule, reduction_split=min(schedule.reduction_split, parts))
        case = _sized_case(name, own, replace(pool, banks=min(pool.banks, banks)), weights, total_columns, many_groups)
        if sum(case.shape.parts) * case.shape.inputs <= MOST_WEIGHTS:
            break
    return case


def _sized_case(
    name: str, schedule: LinearSchedule, pool: PoolShape, weights: NumberFormat, total_columns: int, many_groups: bool
) -> LinearCase:
    """Return two groups of channels whose last output is missing, and inputs that end inside a column.

    Parts of inputs that share scales are whole groups.
    """
    split, group = schedule.reduction_split, STORAGE[weights].group
    inputs = split * (total_columns * pool.lanes - pool.lanes // 2) - (split > 1)
    if group and split > 1:
        inputs = split * ceil_div(total_columns * pool.lanes, group) * group
    small = replace(pool, channels=GROUPS * split)
    probe_shape = LinearShape(name, (MANY,), inputs, schedule.reuse, weights=weights)
    probe = linear_geometry(probe_shape, MANY, schedule, small)
    slots = _ragged_slots(probe) if many_groups else max(1, probe.group_slots - 1)
    outputs = GROUPS * (slots * pool.banks - pool.banks // 2) - 1
    third = outputs // 3
    parts = (outputs - 2 * third, third, third) if schedule.merged and third else (outputs, GROUPS * pool.banks + 1)
    case = LinearCase(name, LinearShape(name, parts, inputs, 2 * schedule.reuse, weights=weights), schedule, small)
    rows = FIRST_ROW + sum(item.rows for item in case.passes)
    return replace(case, pool=replace(small, rows=rows))


def _ragged_slots(probe: Geometry) -> int:
    """Return slots of two full groups, and one that ends in a ragged row where rows hold several slots."""
    return int(2 * probe.group_slots + min(probe.group_slots, probe.slots_per_row + 1))


def attention_cases(
    schedule: AttentionSchedule, pool: PoolShape, cache: NumberFormat = NumberFormat.BF16, queries: int = 1
) -> tuple[AttentionCase, ...]:
    """Return two growing caches: V over the end of a segment and of a column, K over the end of a row.

    With several queries, so many tokens are appended at every step.
    """
    cases = (_value_case(schedule, pool, cache), _key_case(schedule, pool, cache))
    return tuple(_with_queries(case, queries) for case in cases) if queries > 1 else cases


def _with_queries(case: AttentionCase, queries: int) -> AttentionCase:
    """Return the case with several new tokens a step: as many steps as grow the cache by as much, but two at least."""
    steps = max(2, ceil_div(case.steps, queries))
    tokens = max(case.shape.tokens, queries)
    shape = replace(case.shape, queries=queries, tokens=tokens, capacity=tokens + steps * queries)
    rows = FIRST_ROW + int(attention_geometry(shape, case.schedule, case.pool).rows)
    return replace(case, shape=shape, steps=steps, pool=replace(case.pool, rows=rows))


def _value_case(schedule: AttentionSchedule, pool: PoolShape, cache: NumberFormat) -> AttentionCase:
    """Several segments of tokens, and several blocks of them where the schedule has blocks."""
    longest = min(pool.columns, pool.buffer_columns // schedule.score_reuse)
    head_dim = min(3 if schedule.token_blocks == 1 else 2, longest) * pool.lanes - pool.lanes // 2
    name = "V over a segment" if schedule.token_blocks == 1 else "V over a block"
    for parts in range(MOST_PARTS, 0, -1):
        small = replace(pool, banks=min(pool.banks, MOST_BANKS))
        probe = _attention_case(name, schedule, small, cache, parts, 1, head_dim)
        local = FULL_SEGMENTS * schedule.context_segment_columns * pool.lanes
        if schedule.token_blocks > 1:
            local = FULL_SEGMENTS * attention_geometry(probe.shape, probe.schedule, probe.pool).block_tokens
        case = _attention_case(name, schedule, small, cache, parts, local, head_dim)
        if case.products_per_step <= MOST_PRODUCTS:
            break
    return case


def _key_case(schedule: AttentionSchedule, pool: PoolShape, cache: NumberFormat) -> AttentionCase:
    """Many groups of dimensions where keys of that length fit, and many groups of tokens."""
    few = replace(pool, banks=min(FEWEST_BANKS, pool.banks), channels=GROUPS)
    per_column = packing(CACHE_STORAGE[cache], pool).per_column
    longest = min(pool.columns * per_column, pool.buffer_columns // schedule.score_reuse)
    single = replace(schedule, token_split=1)

    def sizes(head_dim: int, tokens: int) -> AttentionGeometry:
        shape = AttentionShape("probe", 1, _group(schedule), 1, head_dim, tokens, cache=cache)
        return attention_geometry(shape, single, few)

    wanted = _ragged_slots(sizes(MANY, 1).context) * few.banks - few.banks // 2
    head_dim = min(wanted, longest // per_column * per_column * pool.lanes)
    score = sizes(head_dim, MANY).score
    row = few.banks * score.slots_per_row
    local = ceil_div(2 * score.group_slots * few.banks + 1, row) * row
    return _attention_case("K over a row", schedule, few, cache, MOST_PARTS, local, head_dim)


def _group(schedule: AttentionSchedule) -> int:
    return 2 * lcm(schedule.score_reuse, schedule.context_reuse)


def _attention_case(
    name: str,
    schedule: AttentionSchedule,
    pool: PoolShape,
    cache: NumberFormat,
    parts: int,
    boundary: int,
    head_dim: int,
) -> AttentionCase:
    """Return a cache that grows over `boundary` tokens of each part: three units on two groups of channels."""
    split = min(schedule.token_split, parts)
    own = replace(schedule, token_split=split)
    units = 2 * GROUPS - 1
    start = max(split, boundary * split - STEPS_BEFORE_BOUNDARY)
    shape = AttentionShape(
        name=name,
        batch=1,
        heads=units * _group(schedule),
        kv_heads=units,
        head_dim=head_dim,
        tokens=start,
        capacity=start + DECODE_STEPS,
        cache=cache,
    )
    small = replace(pool, channels=GROUPS * split)
    small = replace(small, rows=FIRST_ROW + int(attention_geometry(shape, own, small).rows))
    return AttentionCase(name, shape, own, small, DECODE_STEPS)
