"""The schedule of least lower bound for every operator of many devices: what a device can do with none known for it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.decode_problem import DecodeProblem
from autotune.problem import Codes
from compiler.closed_form import attention_form, linear_form
from compiler.legality import legal, rules
from compiler.linear import LinearShape
from compiler.schedule import Place
from compiler.taken_rows import taken_rows
from compiler.workload import Schedulable

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Options:
    """The schedules of one operator on one device: of least bound, of fewest rows in banks, and on the host."""

    columns: list[int]
    occurrences: float
    codes: tuple[Codes, ...]
    bounds: tuple[float, ...]

    def lost(self, before: int, after: int) -> float:
        """Return the cycles that a step takes longer with another option."""
        return self.occurrences * (self.bounds[after] - self.bounds[before])


def least_bounds(problem: DecodeProblem, designs: Codes) -> Codes:
    """Return for each design its device with every operator's schedule of least lower bound, where it fits: int[m, k].

    Where these need more rows than a bank has, operators take schedules of fewer rows or go to the host, those first
    that lose least time for a row.
    """
    options: list[list[_Options]] = [[] for _ in designs]
    for number, shape in enumerate(problem.space.schedulables):
        columns = problem.space.columns(shape.name)
        grid = _grid(problem, columns)
        on_host = np.array([problem.knobs[columns[0]].values[code] == Place.HOST for code in grid[:, 0]])
        for row, (bounds, rows) in enumerate(_figures(problem, shape, grid, designs)):
            keys = ((bounds,), (bounds, rows, on_host), (bounds, ~on_host))
            best = dict.fromkeys(int(np.lexsort(key)[0]) for key in keys)
            chosen = [place for place in best if np.isfinite(bounds[place])]
            codes, times = tuple(grid[place] for place in chosen), tuple(float(bounds[place]) for place in chosen)
            options[row].append(_Options(columns, float(problem.occurrences[number]), codes, times))
    found = [
        _fitted(problem, design, lot) for design, lot in zip(designs, options, strict=True) if all(o.codes for o in lot)
    ]
    fitted = problem.canonical(np.array(found, dtype=np.int64).reshape(len(found), len(problem.knobs)))
    return fitted[problem.legal(fitted)]


def _fitted(problem: DecodeProblem, design: Codes, options: list[_Options]) -> Codes:
    """Return the design with schedules that fit, as far as switching one operator after the other can make it."""
    current, taken = design.copy(), [0] * len(options)
    for item in options:
        current[item.columns] = item.codes[0]
    available = float(problem.scenario.candidates.table(design[None, :]).pool.rows[0])
    while (needed := float(problem.rows(current[None, :])[0])) > available:
        switches = [(task, option) for task, item in enumerate(options) for option in range(len(item.codes))]
        tried = np.tile(current, (len(switches), 1))
        for row, (task, option) in enumerate(switches):
            tried[row, options[task].columns] = options[task].codes[option]
        saved = needed - problem.rows(tried)
        lost = np.array([options[task].lost(taken[task], option) for task, option in switches])
        price = np.where(saved > 0, lost / np.maximum(saved, 1), np.inf)
        cheapest = int(price.argmin())
        if not np.isfinite(price[cheapest]):
            break
        task, option = switches[cheapest]
        taken[task] = option
        current = tried[cheapest]
    return current


def _grid(problem: DecodeProblem, columns: list[int]) -> Codes:
    """Return the codes of all schedules of an operator: int[schedules, knobs]."""
    sizes = [len(problem.knobs[column].values) for column in columns]
    return np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1).astype(np.int64)


def _figures(
    problem: DecodeProblem, shape: Schedulable, grid: Codes, designs: Codes
) -> Iterator[tuple[Floats, Floats]]:
    """Yield the bound and the rows of every schedule on each device; infinite bounds where it is not legal."""
    columns = problem.space.columns(shape.name)
    for design in designs:
        codes = np.tile(design, (len(grid), 1))
        codes[:, columns] = grid
        schedule = problem.space.schedule_arrays(shape, codes)
        table = problem.scenario.candidates.table(design[None, :]).take(np.zeros(len(grid), dtype=np.int64))
        costs = problem.scenario.costs(table)
        fine = legal(schedule.place, rules(shape, schedule, table.pool))
        if isinstance(shape, LinearShape):
            form = linear_form(shape, schedule, table, costs)
        else:
            form = attention_form(shape, schedule, table, costs)
        rows = taken_rows(shape, schedule, table.pool)
        yield np.where(fine, form.bound, np.inf), np.where(fine, rows, np.inf)
