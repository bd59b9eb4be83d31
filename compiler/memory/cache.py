"""Room to grow: a workload whose caches have places for more tokens or sequences, and how many still fit.

What is asked is always whether fixed schedules fit: a search could find others that need fewer rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from compiler.attention import AttentionShape
from compiler.lowering import System
from compiler.memory.capacity import capacity_plan
from compiler.schedule import Schedule
from compiler.workload import AppendShape, Shape, Workload

# More tokens and sequences than any model has or any system holds; what fits beyond is said to be without end.
MOST = 1 << 24


def with_room(workload: Workload, context: int, window: int | None = None) -> Workload:
    """Return the workload whose caches have places for another context, or for the window if that is shorter.

    Of the tokens there are, those that no longer have a place are dropped.
    """

    def roomy(shape: AttentionShape) -> AttentionShape:
        ends = shape.tokens if shape.tokens < workload.context else window or context
        longest = shape.limit or ends
        room = min(context, longest)
        return replace(shape, tokens=min(shape.tokens, room), capacity=room)

    return _with_attention(workload, roomy)


def with_batch(workload: Workload, batch: int) -> Workload:
    """Return the workload with caches of another number of sequences; matrices keep their places."""
    return _with_attention(workload, lambda shape: replace(shape, batch=batch))


def _with_attention(workload: Workload, change: Callable[[AttentionShape], AttentionShape]) -> Workload:
    def changed(shape: Shape) -> Shape:
        match shape:
            case AttentionShape():
                return change(shape)
            case AppendShape(name=name, attention=attention):
                return AppendShape(name, change(attention))
            case _:
                return shape

    return replace(workload, shapes=tuple(changed(shape) for shape in workload.shapes))


def largest_context(
    workload: Workload, schedules: Mapping[str, Schedule], system: System, window: int | None = None
) -> int | None:
    """Return the longest context whose caches fit beside the weights: 0 if none does, None if rows never end."""
    return _largest(
        lambda tokens: capacity_plan(with_room(workload, tokens, window), schedules, system).fits, workload.context
    )


def largest_batch(workload: Workload, schedules: Mapping[str, Schedule], system: System) -> int | None:
    """Return the most sequences of the workload's context that fit: 0 if none does, None if rows never end."""
    return _largest(lambda batch: capacity_plan(with_batch(workload, batch), schedules, system).fits, workload.batch)


def _largest(fits: Callable[[int], bool], start: int) -> int | None:
    """Return the largest number that fits, 0 if none does, None if rows never end; what fits fits with less as well."""
    low, high = (start, 2 * start) if fits(start) else (0, start)
    while low and fits(high):
        if high >= MOST:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
