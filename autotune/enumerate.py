"""Every legal design of a small problem, for an exact front or for a budget that covers the whole space.

Knobs without effect make most code vectors of a space equal to others. Since the canonical codes of a task depend on
the hardware and on the task's own knobs alone, they are found task by task for each hardware, and only their products
are looked at.
"""

from collections.abc import Iterator

import numpy as np

from autotune.layout import Layout, distinct, layout_of
from autotune.problem import Codes, Problem
from configs.errors import UserError

MOST_DESIGNS = 1 << 24
CHUNK = 1 << 16


def enumerate_legal(problem: Problem) -> Codes:
    """Return all distinct legal canonical designs, hardware by hardware: int[n, k]; UserError when too many."""
    layout = layout_of(problem)
    hardware = _hardware(problem, layout)
    options = [_options(problem, layout, hardware, columns) for columns in layout.schedules]
    counts = [int(np.prod([len(each[row]) for each in options], dtype=object)) for row in range(len(hardware))]
    if sum(counts) > MOST_DESIGNS:
        raise UserError(
            where="enumeration",
            expected=f"at most {MOST_DESIGNS} designs",
            found=f"{sum(counts)}",
            way_out="fix some knobs, or search instead",
        )
    kept = [_legal(problem, codes) for codes in _chunks(layout, hardware, options, counts)]
    return np.concatenate([np.zeros((0, len(layout.sizes)), dtype=np.int64), *kept])


def _hardware(problem: Problem, layout: Layout) -> Codes:
    """Return every distinct hardware, with code 0 in all schedules."""
    codes = np.zeros((_size(layout, layout.hardware), len(layout.sizes)), dtype=np.int64)
    codes[:, layout.hardware] = _all_codes(layout, layout.hardware)
    codes[:, layout.hardware] = problem.canonical(codes)[:, layout.hardware]
    return distinct(codes)


def _options(problem: Problem, layout: Layout, hardware: Codes, columns: Codes) -> list[Codes]:
    """Return the distinct canonical schedules of one task on each hardware: int[options, columns] each."""
    schedules = _all_codes(layout, columns)
    found: list[Codes] = []
    step = max(1, CHUNK // len(schedules))
    for start in range(0, len(hardware), step):
        some = hardware[start : start + step]
        codes = np.repeat(some, len(schedules), axis=0)
        codes[:, columns] = np.tile(schedules, (len(some), 1))
        each = problem.canonical(codes)[:, columns].reshape(len(some), len(schedules), len(columns))
        found += [distinct(one) for one in each]
    return found


def _chunks(layout: Layout, hardware: Codes, options: list[list[Codes]], counts: list[int]) -> Iterator[Codes]:
    """Yield the products of every task's schedules on each hardware, some tens of thousands of designs at a time."""
    waiting: list[Codes] = []
    for row, count in enumerate(counts):
        for start in range(0, count, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, count), dtype=np.int64)
            codes = np.repeat(hardware[row : row + 1], len(numbers), axis=0)
            for columns, each in zip(reversed(layout.schedules), reversed(options), strict=True):
                codes[:, columns] = each[row][numbers % len(each[row])]
                numbers = numbers // len(each[row])
            waiting.append(codes)
            if sum(map(len, waiting)) >= CHUNK:
                yield np.concatenate(waiting)
                waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _legal(problem: Problem, codes: Codes) -> Codes:
    return codes[problem.legal(codes)]


def _size(layout: Layout, columns: Codes) -> int:
    return int(np.prod(layout.sizes[columns], dtype=object))


def _all_codes(layout: Layout, columns: Codes) -> Codes:
    """Count through the codes of some knobs, the last one fastest: int[n, columns]; UserError when too many."""
    count = _size(layout, columns)
    if count > MOST_DESIGNS:
        raise UserError(
            where="enumeration",
            expected=f"at most {MOST_DESIGNS} choices of hardware, and of the schedule of each task",
            found=f"{count}",
            way_out="fix some knobs, or search instead",
        )
    numbers = np.arange(count, dtype=np.int64)
    codes = np.zeros((count, len(columns)), dtype=np.int64)
    for place in range(len(columns) - 1, -1, -1):
        codes[:, place] = numbers % layout.sizes[columns[place]]
        numbers = numbers // layout.sizes[columns[place]]
    return codes
