"""Random legal designs, spread evenly over the hardware.

With many tasks hardly any uniform draw is legal in all of them at once. Schedules that were legal elsewhere are
therefore donated, and each group is then redrawn alone, keeping what stays legal: hardware with few legal schedules
(small buffers, the small-area corner of the front) gets as many designs as any other. Hardware that no try makes legal
comes nearer to hardware that is.
"""

import numpy as np

from autotune.layout import Layout, clean, distinct
from autotune.problem import Codes, Problem

TRIES = 12
EASED_TRIES = 4  # the last so many; before them rare hardware gets every chance
SWEEPS = 2
KEPT_SHARE = 0.5
SELDOM_REDRAWS = 4


def uniform(layout: Layout, rng: np.random.Generator, count: int) -> Codes:
    """Return designs with every knob drawn uniformly, legal or not: int[count, k]."""
    return rng.integers(0, layout.sizes, size=(count, len(layout.sizes)))


def uniform_legal(problem: Problem, layout: Layout, rng: np.random.Generator, count: int, donors: Codes) -> Codes:
    """Return the distinct legal ones of `TRIES` times `count` uniform draws, at most `count`: to compare with."""
    drawn = clean(problem, uniform(layout, rng, TRIES * count))[:count]
    return drawn if len(drawn) else donors


def stratified(problem: Problem, layout: Layout, rng: np.random.Generator, count: int, donors: Codes) -> Codes:
    """Return up to `count` distinct legal canonical designs spread over the hardware; `donors` are known legal ones."""
    wanted = _spread_hardware(layout, rng, count)
    uniformly, donated = donors[:0], donors[:0]
    latest = donors
    for attempt in range(TRIES):
        if len(wanted) == 0:
            break
        codes = _with_few_seldom(layout, rng, np.arange(len(layout.sizes)), len(wanted))
        if attempt and len(donors):
            _donate(layout, rng, codes, latest, donors)
        codes[:, layout.hardware] = wanted
        codes = problem.canonical(codes)
        legal = problem.legal(codes)
        fresh = codes[legal]
        if attempt:
            donated = np.concatenate([donated, fresh])
        else:
            uniformly = fresh
        donors = np.concatenate([donors, fresh])
        latest = fresh if len(fresh) else donors
        wanted = wanted[~legal]
        if attempt >= TRIES - EASED_TRIES and len(latest):
            wanted = _eased(layout, rng, wanted, latest)
    return distinct(np.concatenate([uniformly, redraw(problem, layout, rng, donated)]))


def redraw(problem: Problem, layout: Layout, rng: np.random.Generator, codes: Codes) -> Codes:
    """Redraw each task's schedule alone in every legal design, keeping the old one where the new one is illegal."""
    if len(codes) == 0:
        return codes
    for columns in layout.schedules * SWEEPS:
        proposed = codes.copy()
        proposed[:, columns] = _with_few_seldom(layout, rng, columns, len(codes))
        proposed = problem.canonical(proposed)
        codes = np.where(problem.legal(proposed)[:, None], proposed, codes)
    return codes


def _with_few_seldom(layout: Layout, rng: np.random.Generator, columns: Codes, count: int) -> Codes:
    """Draw knobs, most of those that came out at a seldom value once more: int[count, knobs]."""
    drawn, again = (rng.integers(0, layout.sizes[columns], size=(count, len(columns))) for _ in range(2))
    seldom = layout.seldom[columns, drawn]
    for _ in range(SELDOM_REDRAWS):
        drawn = np.where(seldom, again, drawn)
        again = rng.integers(0, layout.sizes[columns], size=drawn.shape)
        seldom = layout.seldom[columns, drawn]
    return drawn


def _spread_hardware(layout: Layout, rng: np.random.Generator, count: int) -> Codes:
    """Draw hardware so that each knob shows each of its values equally often, up to one."""
    columns = [rng.permutation(np.arange(count) % size) for size in layout.sizes[layout.hardware].tolist()]
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0), dtype=np.int64)


def _eased(layout: Layout, rng: np.random.Generator, wanted: Codes, legal: Codes) -> Codes:
    """Give half of the knobs of hardware that stays illegal the values of hardware that is legal somewhere."""
    known = legal[rng.integers(0, len(legal), size=len(wanted))][:, layout.hardware]
    return np.where(rng.random(wanted.shape) < KEPT_SHARE, wanted, known)


def _donate(layout: Layout, rng: np.random.Generator, codes: Codes, latest: Codes, donors: Codes) -> None:
    """Overwrite all schedules of each design: in one half from one donor, in the other from one donor per task.

    One donor is legal together and only has to suit the hardware; it is taken from the `latest` found, whose hardware
    was the hardest to find schedules for. Donors per task are more diverse.
    """
    half = len(codes) // 2
    whole = rng.integers(0, len(latest), size=half)
    for columns in layout.schedules:
        codes[:half, columns] = latest[whole][:, columns]
        each = rng.integers(0, len(donors), size=len(codes) - half)
        codes[half:, columns] = donors[each][:, columns]
