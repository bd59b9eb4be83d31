"""Which hardware knobs the recorded trials of a run say are important, and whether simulated moves agree.

Importances are those of PED-ANOVA (Watanabe, Bansal and Hutter, IJCAI 2023) as Optuna computes them: by how much the
values of a knob among the best tenth of the trials are distributed otherwise than among all. They follow from where the
search went and are no measurement; the rank agreement with moves that were simulated one at a time is their check.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution
from scipy.stats import spearmanr

from autotune.architect.effects import Effect
from autotune.finished import FinishedRun
from autotune.problem import HARDWARE_GROUP

# Optuna advises at least 5 trials in the best tenth.
FEWEST_TRIALS = 50
FEWEST_KNOBS = 3


@dataclass(frozen=True, slots=True)
class Importance:
    """Importances by knob for one objective, largest first and adding up to 1, and their check against simulation.

    `agreement` is Spearman's rank correlation with the size of the simulated effects over `compared` knobs; None with
    fewer than three, or where all are equal.
    """

    objective: str
    trials: int
    shares: tuple[tuple[str, float], ...]
    agreement: float | None
    compared: int


def importances(run: FinishedRun, effects: Sequence[Effect]) -> tuple[Importance, ...]:
    """Return the importances for every objective of a run; none with too few trials or nothing varied."""
    columns = [
        column for column, knob in enumerate(run.problem.knobs) if knob.group == HARDWARE_GROUP and len(knob.values) > 1
    ]
    if len(run.evaluations) < FEWEST_TRIALS or not columns:
        return ()
    objectives = run.judged.objectives
    found = []
    for number, merit in enumerate(run.goals.objectives):
        shares = _shares(run, columns, objectives[:, number].tolist())
        agreement, compared = rank_agreement(shares, sizes(effects, number))
        found.append(Importance(merit.objective, len(run.evaluations), tuple(shares.items()), agreement, compared))
    return tuple(found)


def sizes(effects: Sequence[Effect], objective: int) -> dict[str, float]:
    """Return the largest simulated effect of every knob on an objective."""
    found: dict[str, float] = {}
    for item in effects:
        found[item.knob] = max(found.get(item.knob, 0.0), item.size(objective))
    return found


def rank_agreement(shares: Mapping[str, float], moved: Mapping[str, float]) -> tuple[float | None, int]:
    """Return Spearman's rank correlation over the knobs in both, and how many there are."""
    both = [name for name in shares if name in moved]
    first, second = [shares[name] for name in both], [moved[name] for name in both]
    if len(both) < FEWEST_KNOBS or len(set(first)) < 2 or len(set(second)) < 2:
        return None, len(both)
    return float(spearmanr(first, second).statistic), len(both)


def _shares(run: FinishedRun, columns: Sequence[int], values: Sequence[float]) -> dict[str, float]:
    """Return PED-ANOVA's importances for one minimised objective, scaled to add up to 1."""
    knobs = [run.problem.knobs[column] for column in columns]
    distributions = {knob.name: CategoricalDistribution(knob.values) for knob in knobs}
    study = _quiet_study()
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={
                    knob.name: knob.values[item.codes[column]] for knob, column in zip(knobs, columns, strict=True)
                },
                distributions=dict(distributions),
                value=value,
            )
            for item, value in zip(run.evaluations, values, strict=True)
        ]
    )
    with warnings.catch_warnings():
        # The evaluator is marked experimental in some versions.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        raw = optuna.importance.get_param_importances(study, evaluator=evaluator, normalize=False)
    total = float(np.sum(list(raw.values())))
    return {name: float(value) / total if total else 0.0 for name, value in raw.items()}


def _quiet_study() -> optuna.Study:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study()
    finally:
        optuna.logging.set_verbosity(verbosity)
