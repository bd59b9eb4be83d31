"""Where the groups of a problem's knobs sit in a code vector, and how designs are compared and thinned."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.problem import Codes, Problem

HARDWARE = "hardware"


@dataclass(frozen=True, slots=True)
class Layout:
    """The number of values per knob, the columns of the hardware knobs, and those of each schedule with its task.

    `seldom` says which codes of which knob pools take less often: bool[k, most values].
    """

    sizes: Codes
    hardware: Codes
    tasks: tuple[str, ...]
    schedules: tuple[Codes, ...]
    seldom: NDArray[np.bool_]

    @property
    def groups(self) -> tuple[Codes, ...]:
        """The columns of every group that has knobs, hardware first."""
        return (self.hardware, *self.schedules) if len(self.hardware) else self.schedules

    @property
    def designs(self) -> int:
        """How many code vectors there are, legal or not."""
        total = 1
        for size in self.sizes.tolist():
            total *= size
        return total


def layout_of(problem: Problem) -> Layout:
    """Return the layout of a problem's knobs."""
    groups: dict[str, list[int]] = {}
    for column, knob in enumerate(problem.knobs):
        groups.setdefault(knob.group, []).append(column)
    hardware = np.array(groups.pop(HARDWARE, []), dtype=np.int64)
    schedules = tuple(np.array(columns, dtype=np.int64) for columns in groups.values())
    sizes = np.array([len(knob.values) for knob in problem.knobs], dtype=np.int64)
    seldom = np.zeros((len(sizes), int(sizes.max(initial=1))), dtype=np.bool_)
    for column, knob in enumerate(problem.knobs):
        for value in knob.seldom:
            if value in knob.values and len(knob.values) > 1:
                seldom[column, knob.values.index(value)] = True
    return Layout(sizes, hardware, tuple(groups), schedules, seldom)


def keys(codes: Codes) -> list[bytes]:
    """Return one hashable key per design, equal for equal codes."""
    narrow = np.ascontiguousarray(codes, dtype=np.uint16)
    return [row.tobytes() for row in narrow]


def distinct(codes: Codes) -> Codes:
    """Return the first of equal designs, in the order given."""
    if len(codes) == 0:
        return codes
    narrow = np.ascontiguousarray(codes, dtype=np.uint16)
    rows = narrow.view(np.dtype((np.void, narrow.dtype.itemsize * narrow.shape[1]))).ravel()
    _, first = np.unique(rows, return_index=True)
    return codes[np.sort(first)]


def clean(problem: Problem, codes: Codes) -> Codes:
    """Return the distinct, canonical, legal designs among `codes`, in the order given."""
    if len(codes) == 0:
        return codes
    canonical = distinct(problem.canonical(codes))
    return canonical[problem.legal(canonical)]
