"""The design to look inside, made ready: a point of a finished run, or a plain mapping on a base device."""

from math import isclose
from pathlib import Path

from autotune.hand_mapping import HAND_MAPPINGS
from autotune.problem_spec import problem_spec
from autotune.run_settings import RUN_FILE, RunSettings, load_settings, stored_settings
from autotune.stored_points import PACING, StoredPoint, stored_point
from autotune.timelines import Inside, look_inside
from autotune.tuning import TUNED, tuned_mapping
from configs.errors import UserError
from configs.knobs import base_knobs

MAPPINGS = HAND_MAPPINGS | {TUNED: tuned_mapping}
SAME_LATENCY = 1e-12


def inside_of_run(folder: Path, point: int | None) -> Inside:
    """Look inside a point of a run, by default its fastest; raises UserError when it is not what was evaluated."""
    problem = problem_spec(settings_of_run(folder))()
    chosen = stored_point(folder, problem.knobs, point)
    inside = look_inside(problem, chosen.codes, chosen.slowdown)
    require_as_evaluated(folder, chosen, inside.latency_ns, len(problem.scenario.uniform_loads))
    return inside


def require_as_evaluated(folder: Path, chosen: StoredPoint, latency_ns: float, routings: int) -> None:
    """Raise UserError when a point of a run has another latency now than when it was evaluated."""
    # The latency of a mixture of experts can be the mean over several routings, of which one is looked at.
    if routings == 1 and not isclose(latency_ns, chosen.latency_ns, rel_tol=SAME_LATENCY):
        raise UserError(
            where=f"{folder}, point {chosen.point}",
            expected=f"the {chosen.latency_ns} ns of its evaluation",
            found=f"{latency_ns} ns",
            way_out="the device file or the program has changed since: make a new run",
        )


def inside_of_mapping(settings: RunSettings, mapping: str) -> Inside:
    """Look inside a plain mapping on the base device, transfers paced as an evaluation would; raises UserError."""
    problem = problem_spec(settings)()
    scenario = problem.scenario
    schedules = MAPPINGS[mapping](problem.space.schedulables, scenario.system_of_base)
    codes = problem.space.encode(base_knobs(scenario.base), schedules)
    where = f"the {mapping} mapping of {settings.model} on {settings.hardware}"
    if codes is None:
        raise UserError(
            where=where,
            expected="a device with values that the knobs can have",
            found="others",
            way_out="explore hardware lists them",
        )
    if not problem.legal(codes[None, :])[0]:
        raise UserError(
            where=where,
            expected="a legal design",
            found="; ".join(problem.reasons(codes)),
            way_out="add devices (--devices auto), shorten the context, or take the other mapping",
        )
    evaluation = problem.evaluate(problem.canonical(codes[None, :])[0])
    return look_inside(problem, evaluation.codes, int(dict(evaluation.details)[PACING]))


def settings_of_run(folder: Path) -> RunSettings:
    """Return the settings of a run; raises UserError for a folder that holds none."""
    stored = load_settings(folder)
    try:
        if stored is not None:
            return _of_one_scenario(folder, stored_settings(stored))
    except (KeyError, TypeError):
        # A damaged file is told like a missing one.
        pass
    raise UserError(
        where=str(folder),
        expected="the folder of a run",
        found=f"no {RUN_FILE}" if stored is None else f"a damaged {RUN_FILE}",
        way_out="give the folder that explore named, such as runs/NAME",
    )


def _of_one_scenario(folder: Path, settings: RunSettings) -> RunSettings:
    if not settings.scenarios:
        return settings
    raise UserError(
        where=str(folder),
        expected="a run of one scenario",
        found=f"one of {len(settings.scenarios)} scenarios",
        way_out=f"give one of the folders in {folder / 'scenarios'}",
    )
