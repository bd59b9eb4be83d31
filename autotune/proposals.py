"""New designs from good ones: mutation, crossover by group, and the best schedule of each task put together.

Hardware and the schedules of the tasks are independent groups of knobs, so that groups are exchanged whole, and for
given hardware the fastest schedule of each task can be found by itself.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from autotune.layout import Layout, clean
from autotune.problem import Codes, Problem

PredictCycles = Callable[[Codes], NDArray[np.float64]]
HARDWARE_SHARE = 0.35
STEP_SHARE = 0.6


def children(problem: Problem, layout: Layout, rng: np.random.Generator, parents: Codes, count: int) -> Codes:
    """Return legal distinct children of `parents`: half mutants, the others crossovers, some of them mutated too."""
    if len(parents) == 0:
        return parents
    chosen = parents[rng.integers(0, len(parents), size=count)]
    partners = parents[rng.integers(0, len(parents), size=count)]
    half = count // 2
    crossed = cross(layout, rng, chosen[half:], partners[half:])
    proposed = np.concatenate([mutate(layout, rng, chosen[:half]), crossed])
    extra = half + rng.permutation(count - half)[: (count - half) // 2]
    proposed[extra] = mutate(layout, rng, proposed[extra])
    return clean(problem, proposed)


def mutate(layout: Layout, rng: np.random.Generator, parents: Codes) -> Codes:
    """Change one to three knobs of one group of each parent, most by one step, the others to any value."""
    result = parents.copy()
    picked = _pick_groups(layout, rng, len(parents))
    for group, columns in enumerate(layout.groups):
        rows = np.flatnonzero(picked == group)
        for repeat in range(3):
            # Every row changes one knob, a half of them a second, a quarter a third.
            active = rows[rng.random(len(rows)) < 0.5**repeat]
            column = columns[rng.integers(0, len(columns), size=len(active))]
            result[active, column] = _changed(layout, rng, result[active, column], column)
    return result


def cross(layout: Layout, rng: np.random.Generator, first: Codes, second: Codes) -> Codes:
    """Take each group of knobs whole from one of two parents."""
    result = first.copy()
    for columns in layout.groups:
        rows = np.flatnonzero(rng.random(len(first)) < 0.5)
        result[rows[:, None], columns] = second[rows[:, None], columns]
    return result


def composites(problem: Problem, layout: Layout, hardware: Codes, donors: Codes, predict: PredictCycles) -> Codes:
    """Return one legal design per given hardware whose tasks each run the donors' schedule predicted to be fastest.

    `hardware` holds the hardware codes alone (int[h, hardware knobs]), `donors` whole designs (int[d, k]).
    """
    if len(hardware) == 0 or len(donors) == 0:
        return donors[:0]
    crossed = np.tile(donors, (len(hardware), 1))
    crossed[:, layout.hardware] = np.repeat(hardware, len(donors), axis=0)
    crossed = problem.canonical(crossed)
    legal = problem.legal(crossed)
    if not legal.any():
        return donors[:0]
    cycles = np.full((len(crossed), len(problem.tasks)), np.inf)
    cycles[legal] = predict(crossed[legal])
    fastest = cycles.reshape(len(hardware), len(donors), -1).argmin(axis=1)
    result = donors[fastest[:, 0]].copy()
    result[:, layout.hardware] = hardware
    for name, columns in zip(layout.tasks, layout.schedules, strict=True):
        if name in problem.tasks:
            result[:, columns] = donors[fastest[:, problem.tasks.index(name)]][:, columns]
    return clean(problem, result)


def _pick_groups(layout: Layout, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Pick the group to mutate: the hardware often, as it is one group among many but moves every objective."""
    groups = len(layout.groups)
    share = HARDWARE_SHARE if len(layout.hardware) and groups > 1 else 1 / groups
    others = (1 - share) / max(groups - 1, 1)
    return rng.choice(groups, size=count, p=[share, *[others] * (groups - 1)])


def _changed(layout: Layout, rng: np.random.Generator, old: Codes, column: Codes) -> Codes:
    """Return other codes for the knobs: most a neighbour of the old one, the rest any of the others."""
    sizes = layout.sizes[column]
    anywhere = (old + rng.integers(1, np.maximum(sizes, 2))) % sizes
    stepped = np.clip(old + rng.choice((-1, 1), size=len(old)), 0, sizes - 1)
    return np.where(rng.random(len(old)) < STEP_SHARE, stepped, anywhere)
