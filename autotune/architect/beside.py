"""What is simulated beside a run when it is finished: the base device at all constants, and the fixed points."""

from dataclasses import dataclass

from autotune.architect.against_base import AgainstBase, against_base
from autotune.architect.references import References, references_of
from autotune.finished import FinishedRun


@dataclass(frozen=True, slots=True)
class Beside:
    """The comparison with the base device, None where that was not simulated, and the fixed points of the workload."""

    against: AgainstBase | None
    references: References


NOTHING_BESIDE = Beside(None, References((), ()))


def beside(run: FinishedRun) -> Beside:
    """Simulate what a finished run is compared with."""
    if not run.evaluations:
        return NOTHING_BESIDE
    return Beside(against_base(run), references_of(run.problem.scenario.workload))
