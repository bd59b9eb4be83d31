"""What `explore check` does: every mapping of a model, and random schedules beside, run on values and compared."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from autotune.hand_mapping import hand_schedules
from autotune.space import schedule_space
from autotune.tuning import TUNED, tuned_mapping
from compiler.attention import AttentionShape
from compiler.legality import all_reasons, legal, rules
from compiler.lowering import System
from compiler.numerics.check import numerics_of
from compiler.schedule import Place, Schedule
from compiler.workload import Schedulable

RANDOM = "random"
DRAWN_AT_ONCE = 256
MOST_DRAWS = 64


@dataclass(frozen=True, slots=True)
class Checked:
    """One schedule of one operator: how many kernels ran on values, and the whole text of the report.

    A schedule that is not legal there ran none, and has not failed.
    """

    task: str
    mapping: str
    stored: str
    kernels: int
    passed: bool
    report: str

    def record(self) -> dict[str, object]:
        """Return a plain record for JSON."""
        return asdict(self)


def check_model(shapes: Sequence[Schedulable], system: System, random_schedules: int, seed: int) -> Iterator[Checked]:
    """Check what is written by hand, the tuned mapping, then so many random legal schedules of every operator.

    A device without link and host is not tuned for: there is no time to make short.
    """
    for shape in shapes:
        for name, schedule in hand_schedules(shape, system).items():
            yield _checked(shape, name, schedule, system)
    if system.device.link is not None and system.device.host is not None:
        tuned = tuned_mapping(shapes, system)
        for shape in shapes:
            yield _checked(shape, TUNED, tuned[shape.name], system)
    rng = np.random.default_rng(seed)
    for shape in shapes:
        for schedule in random_legal(shape, system, random_schedules, rng):
            yield _checked(shape, RANDOM, schedule, system)


def random_legal(shape: Schedulable, system: System, count: int, rng: np.random.Generator) -> Iterator[Schedule]:
    """Yield so many legal schedules on the units, drawn uniformly; fewer where hardly any is legal."""
    space = schedule_space((shape,), system.device, {"*.place": (str(Place.PIM),)})
    sizes = [len(knob.values) for knob in space.knobs]
    for _ in range(MOST_DRAWS):
        codes = rng.integers(0, sizes, (DRAWN_AT_ONCE, len(sizes)))
        schedule = space.schedule_arrays(shape, codes)
        fine = codes[legal(schedule.place, rules(shape, schedule, system.pool))]
        yield from (space.schedule(shape, row) for row in fine[:count])
        count -= len(fine[:count])
        if count == 0:
            return


def _checked(shape: Schedulable, mapping: str, schedule: Schedule, system: System) -> Checked:
    """Check one schedule; one that the device cannot run is told as such, and is no failure."""
    illegal = all_reasons(shape, schedule, system.pool)
    if illegal:
        return Checked(shape.name, mapping, str(shape.stored), 0, True, f"not legal: {'; '.join(illegal)}")
    queries = shape.queries if isinstance(shape, AttentionShape) else 1
    report = numerics_of(schedule, system.device, shape.stored, queries)
    return Checked(shape.name, mapping, str(shape.stored), report.cases, report.passed, str(report))
