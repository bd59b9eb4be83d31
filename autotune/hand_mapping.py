"""The mapping an engineer writes by hand, as schedules: the yardstick that is always among the first points.

It follows the published CENT mapping (ASPLOS'25): outputs dealt to banks, one K-slice of a row at a time, groups of
accumulators whose partial sums leave and return per slice, matrices one by one, one query head at a time.
"""

from collections.abc import Sequence
from dataclasses import replace

from compiler.attention import AttentionShape, key_columns
from compiler.geometry import ceil_div
from compiler.hand_kernels import KERNELS
from compiler.linear import LinearShape, linear_rows
from compiler.lowering import System
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder, PoolShape, Schedule
from compiler.workload import Schedulable

LARGEST_SEGMENT = 128
MOST_REGISTERS = 32
SPLITS = (1, 2, 4, 8)
REUSES = (1, 2, 4, 8)


def hand_mapping(shapes: Sequence[Schedulable], system: System) -> dict[str, Schedule]:
    """Return the hand-written schedules for a system."""
    pool = system.pool
    return {
        shape.name: _hand_linear(shape, pool) if isinstance(shape, LinearShape) else _hand_attention(shape, pool)
        for shape in shapes
    }


def overlapped_mapping(shapes: Sequence[Schedulable], system: System) -> dict[str, Schedule]:
    """Return the hand mapping after the obvious repairs: one pass over shared inputs, rows opened ahead and reused."""
    pool = system.pool
    return {
        shape.name: _overlapped_linear(shape, pool)
        if isinstance(shape, LinearShape)
        else _overlapped_attention(shape, pool)
        for shape in shapes
    }


def _hand_linear(shape: LinearShape, pool: PoolShape) -> LinearSchedule:
    return LinearSchedule(
        segment_columns=_segment(pool, reuse=1),
        registers=min(pool.accumulators, MOST_REGISTERS),
        order=LoopOrder.RELOAD if pool.runs_microkernels else LoopOrder.SPILL,
        merged=len(shape.parts) == 1,
        preactivate=False,
    )


def _hand_attention(shape: AttentionShape, pool: PoolShape) -> AttentionSchedule:
    return AttentionSchedule(
        token_split=_token_split(shape, pool),
        context_segment_columns=_segment(pool, reuse=1),
        registers=min(pool.accumulators, MOST_REGISTERS),
        preactivate=False,
    )


def _overlapped_linear(shape: LinearShape, pool: PoolShape) -> LinearSchedule:
    reuse = max(r for r in _reuses(pool) if shape.vectors % r == 0 and r <= pool.buffer_columns)
    plain = LinearSchedule(segment_columns=_segment(pool, reuse), reuse=reuse, registers=_registers(pool))
    splits = [replace(plain, reduction_split=split) for split in SPLITS if pool.channels % split == 0]
    return min(splits, key=lambda schedule: (_rows_kept_busy(shape, schedule, pool), schedule.reduction_split))


def _rows_kept_busy(shape: LinearShape, schedule: LinearSchedule, pool: PoolShape) -> int:
    """Return the rows that the weights take, in eighths of the least: a split is worth it where it fills banks."""
    rows = shape.heads * int(linear_rows(shape, schedule, pool))
    least = ceil_div(shape.weight_bytes, pool.channels * pool.banks * pool.row_accesses * pool.lanes * 2)
    return int(8 * rows // least)


def _overlapped_attention(shape: AttentionShape, pool: PoolShape) -> AttentionSchedule:
    key = key_columns(shape, pool)
    reuses = [r for r in _reuses(pool) if shape.group % r == 0]
    score = max(r for r in reuses if r * key <= pool.buffer_columns or r == 1)
    context = max(r for r in reuses if r * 8 <= pool.buffer_columns or r == 1)
    return AttentionSchedule(
        token_split=_token_split(shape, pool),
        score_reuse=score,
        context_segment_columns=_segment(pool, context),
        context_reuse=context,
        registers=_registers(pool),
    )


def _reuses(pool: PoolShape) -> tuple[int, ...]:
    """Return how many vectors may share a row: one, where units run microkernels."""
    return (1,) if pool.runs_microkernels else REUSES


def _registers(pool: PoolShape) -> int:
    return int(min(pool.accumulators, MOST_REGISTERS))


def _segment(pool: PoolShape, reuse: int) -> int:
    """Return the longest segment, a power of two, that a row and the global buffer hold."""
    longest = min(pool.row_accesses, pool.buffer_columns // reuse, LARGEST_SEGMENT)
    return 1 << (max(int(longest), 1).bit_length() - 1)


def _token_split(shape: AttentionShape, pool: PoolShape) -> int:
    """Return the split that occupies every channel when there are fewer units than channels."""
    split = 1
    while (
        shape.units * split * 2 <= min(pool.channels, shape.units * shape.tokens) and pool.channels % (split * 2) == 0
    ):
        split *= 2
    return split


# Mappings written by hand, by name: yardsticks of every tuning and seeds of every search.
HAND_MAPPINGS = {"hand": hand_mapping, "overlapped": overlapped_mapping}


def hand_schedules(shape: Schedulable, system: System) -> dict[str, Schedule]:
    """Return what was written by hand for one operator: schedules of the mappings, kernels of the registry."""
    found = {name: mapping((shape,), system)[shape.name] for name, mapping in HAND_MAPPINGS.items()}
    if isinstance(shape, LinearShape):
        plain = _hand_linear(shape, system.pool)
        found |= {f"kernel {name}": replace(plain, kernel=name) for name in KERNELS}
    return found
