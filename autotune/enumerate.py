"""Every legal design of a small problem, for an exact front or for a budget that covers the whole space."""

from collections.abc import Iterator

import numpy as np

from autotune.layout import Layout, clean, distinct, layout_of
from autotune.problem import Codes, Problem
from configs.errors import UserError

MOST_DESIGNS = 1 << 24
CHUNK = 1 << 16


def enumerate_legal(problem: Problem) -> Codes:
    """Return all distinct legal canonical designs, in the order of their codes: int[n, k]; UserError when too many."""
    layout = layout_of(problem)
    if layout.designs > MOST_DESIGNS:
        raise UserError(
            where="enumeration",
            expected=f"at most {MOST_DESIGNS} designs",
            found=f"{layout.designs}",
            way_out="fix some knobs, or search instead",
        )
    return distinct(np.concatenate([clean(problem, codes) for codes in _chunks(layout)]))


def _chunks(layout: Layout) -> Iterator[Codes]:
    """Count through the designs as numbers in mixed radix, the last knob fastest."""
    for start in range(0, layout.designs, CHUNK):
        numbers = np.arange(start, min(start + CHUNK, layout.designs), dtype=np.int64)
        columns = np.zeros((len(numbers), len(layout.sizes)), dtype=np.int64)
        for column in range(len(layout.sizes) - 1, -1, -1):
            columns[:, column] = numbers % layout.sizes[column]
            numbers = numbers // layout.sizes[column]
        yield columns
