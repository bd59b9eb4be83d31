"""The Optuna study of a run, for dashboards and importances: a view of the record, made again when it is lost."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from autotune.goals import DEFAULT_GOALS, Goals, judge_evaluations
from autotune.merit import Sense
from autotune.problem import Evaluation, Knob, Problem

JOURNAL = "study.journal"
STUDY_NAME = "explore"
DIRECTIONS: dict[Sense, Literal["minimize", "maximize"]] = {Sense.LESS: "minimize", Sense.MORE: "maximize"}


def distributions_of(knobs: Sequence[Knob]) -> dict[str, BaseDistribution]:
    """Return each knob as a choice among its values."""
    return {knob.label: CategoricalDistribution(knob.values) for knob in knobs}


def tell_constraints(trial: optuna.Trial | optuna.trial.FrozenTrial, goals: Goals, margins: Sequence[float]) -> None:
    """Tell a trial how far it is from each requirement, where Optuna's trials take constraints (from 5.0 on)."""
    if hasattr(trial, "set_constraint"):
        for requirement, margin in zip(goals.requirements, margins, strict=True):
            trial.set_constraint(str(requirement), margin)


class StudyView:
    """The study in `study.journal` of a run folder; its trials are the evaluations in the order of the record.

    Values are the objectives as tables show them; a requirement is a constraint that is above 0 where it is violated.
    """

    def __init__(self, folder: Path, problem: Problem, goals: Goals = DEFAULT_GOALS) -> None:
        """Remember where; nothing is read or written before `sync`."""
        self._path = folder / JOURNAL
        self._problem = problem
        self._knobs = problem.knobs
        self._goals = goals
        self._study: optuna.Study | None = None
        self._written = 0

    def sync(self, evaluations: Sequence[Evaluation]) -> None:
        """Add the evaluations that the study lacks, in one go; it is rebuilt when it is torn or not this record's."""
        if self._study is None:
            try:
                self._open(evaluations)
            except (ValueError, KeyError, TypeError, AttributeError):
                # The journal is only a view: one that cannot be read is made again.
                self._path.unlink(missing_ok=True)
                self._open(evaluations)
        assert self._study is not None
        missing = evaluations[self._written :]
        self._study.add_trials(self._trials(missing))
        self._written = len(evaluations)

    def _open(self, evaluations: Sequence[Evaluation]) -> None:
        # Whoever syncs holds the lock of the folder: a lock of the journal is one that a killed process left.
        self._path.with_name(f"{JOURNAL}.lock").unlink(missing_ok=True)
        if self._path.exists() and not self._path.read_bytes().endswith(b"\n"):
            self._path.unlink()
        self._load()
        assert self._study is not None
        trials = self._study.get_trials(deepcopy=False)
        if [trial.user_attrs.get("codes") for trial in trials] != [list(e.codes) for e in evaluations[: len(trials)]]:
            self._path.unlink()
            self._load()
        self._written = len(self._study.get_trials(deepcopy=False))

    def _load(self) -> None:
        backend = JournalFileBackend(str(self._path), lock_obj=JournalFileOpenLock(str(self._path)))
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            self._study = optuna.create_study(
                storage=JournalStorage(backend),
                study_name=STUDY_NAME,
                directions=[DIRECTIONS[item.sense] for item in self._goals.objectives],
                load_if_exists=True,
            )
        finally:
            optuna.logging.set_verbosity(verbosity)
        with warnings.catch_warnings():
            # Naming the objectives is marked experimental; without it the dashboard calls them 0, 1 and 2.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._study.set_metric_names([item.column for item in self._goals.objectives])

    def _trials(self, evaluations: Sequence[Evaluation]) -> list[optuna.trial.FrozenTrial]:
        judged = judge_evaluations(self._problem, self._goals, evaluations)
        columns = [
            merit.stored(judged.objectives[:, column]).tolist() for column, merit in enumerate(self._goals.objectives)
        ]
        return [
            self._trial(evaluation, [column[row] for column in columns], judged.margins[row].tolist())
            for row, evaluation in enumerate(evaluations)
        ]

    def _trial(self, evaluation: Evaluation, values: list[float], margins: list[float]) -> optuna.trial.FrozenTrial:
        pairs = zip(self._knobs, evaluation.codes, strict=True)
        trial = optuna.trial.create_trial(
            params={knob.label: knob.values[code] for knob, code in pairs},
            distributions=distributions_of(self._knobs),
            values=values,
            user_attrs={"codes": list(evaluation.codes), **dict(evaluation.details)},
        )
        tell_constraints(trial, self._goals, margins)
        return trial
