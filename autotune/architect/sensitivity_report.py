"""A sensitivity analysis as `sensitivity.json` for programs (docs/sensitivity.md) and `sensitivity.md` for readers."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autotune.architect.effects import LEAST_INTERACTION, PAIRED_KNOBS, Change, Effect, Interaction
from autotune.architect.importance import FEWEST_TRIALS, Importance
from autotune.architect.neighbours import DOWN, UP, Move
from autotune.architect.sensitivity import Sensitivity, knob_values
from autotune.architect.sentences import knob_words
from autotune.architect.tornado import CAPTION, tornado
from autotune.figures import figure_style, save_figure
from autotune.units import MJ_PER_PJ, MS_PER_NS

SCHEMA = "sensitivity/1"
LEAST_CHANGE = 0.001
FIGURES = ("latency", "energy", "area")


def write_sensitivity(found: Sensitivity) -> tuple[Path, ...]:
    """Write both forms and the figure into the run folder and return their paths."""
    folder = found.run.folder
    as_json, as_prose = folder / "sensitivity.json", folder / "sensitivity.md"
    as_json.write_text(json.dumps(sensitivity_json(found), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    as_prose.write_text("\n".join(_document(found)) + "\n", encoding="utf-8")
    if not found.effects:
        return as_json, as_prose
    (folder / "figures").mkdir(exist_ok=True)
    with figure_style():
        drawing = save_figure(tornado(found), "sensitivity", CAPTION, folder / "figures")
    return as_json, as_prose, drawing.pdf, drawing.png


def sensitivity_json(found: Sensitivity) -> dict[str, object]:
    """Return the analysis as plain values; `design` numbers stand for entries of `designs`, `point` for the run's."""
    knobs = found.around.problem.knobs
    return {
        "schema": SCHEMA,
        "settings": found.run.shown_settings,
        "objectives": [item.objective for item in found.run.goals.objectives],
        "centres": [{"name": item.name, "point": item.point} for item in found.around.centres],
        "fixed_in_run": list(found.fixed),
        "effects": [_effect_json(item) for item in found.effects],
        "not_simulated": [
            {
                "point": found.around.centres[item.centre].point,
                "moves": [_move_json(move) for move in item.moves],
                "reason": item.reason,
            }
            for item in found.plan
            if not item.designs
        ],
        "least_interaction": LEAST_INTERACTION,
        "interactions": [_interaction_json(item) for item in found.interactions],
        "importances": [_importance_json(item) for item in found.importances],
        "designs": [
            {
                "design": item.design,
                "latency_ns": item.evaluation.latency_ns,
                "energy_pj": item.evaluation.energy_pj,
                "area_mm2": item.evaluation.area_mm2,
                "meets_requirements": item.feasible,
                "knobs": knob_values(knobs, item.evaluation.codes),
            }
            for item in found.simulated
        ],
    }


def _effect_json(item: Effect) -> dict[str, object]:
    intervals = {f"{name}_change": list(item.interval(name)) for name in FIGURES}
    return (
        {"knob": item.knob, "unit": item.unit, "step": item.step}
        | intervals
        | {"at": [_change_json(change) for change in item.at]}
    )


def _change_json(item: Change) -> dict[str, object]:
    plain: dict[str, Any] = asdict(item)
    changes = {f"{name}_change": plain.pop(name) for name in FIGURES}
    return (
        {name: plain[name] for name in ("centre", "point", "before", "after", "reference", "design")}
        | changes
        | {
            "objective_log_ratios": list(item.objectives),
            "meets_requirements": item.feasible,
        }
    )


def _move_json(item: Move) -> dict[str, object]:
    return {"knob": item.knob, "before": item.before, "after": item.after}


def _interaction_json(item: Interaction) -> dict[str, object]:
    return {
        "moves": [_move_json(move) for move in item.moves],
        "designs": list(item.designs),
        "latency_interaction": item.latency,
        "notable": item.notable,
        "reason": item.reason,
    }


def _importance_json(item: Importance) -> dict[str, object]:
    return {
        "objective": item.objective,
        "method": "PED-ANOVA",
        "trials": item.trials,
        "importance": dict(item.shares),
        "rank_agreement_with_simulation": item.agreement,
        "compared_knobs": item.compared,
    }


def _document(found: Sensitivity) -> Iterator[str]:
    yield "# Sensitivity"
    sections = (
        ("What was simulated", _method_lines(found)),
        ("Steps of one knob, the largest effect on latency first", effect_lines(found)),
        ("Steps without effect, or that cannot be built", _absent_lines(found)),
        (f"Pairs of the {PAIRED_KNOBS} knobs with the largest effect on latency", interaction_lines(found)),
        ("What the trials of the search say, and whether the simulated steps agree", importance_lines(found)),
    )
    for heading, lines in sections:
        listed = [f"- {line}" for line in lines]
        if listed:
            yield from ("", f"## {heading}", "", *listed)


def _method_lines(found: Sensitivity) -> Iterator[str]:
    for centre in found.around.centres:
        item = found.run.evaluations[centre.point]
        yield (
            f"Around point {centre.point} ({centre.name}): {item.latency_ns * MS_PER_NS:.4g} ms, "
            f"{item.energy_pj * MJ_PER_PJ:.4g} mJ, {item.area_mm2:.4g} mm²."
        )
    yield (
        f"{len(found.simulated)} designs were simulated; designs here are those of `designs` in sensitivity.json. "
        "A device is judged by the best of up to three schedules: the point's own, one put together from those known "
        "from the run, and that of least lower bounds; the best is the fastest around the fastest point, and of the "
        "least product of all objectives around others."
    )
    if found.fixed:
        yield f"The run itself did not vary {', '.join(found.fixed)}."


def effect_lines(found: Sensitivity) -> Iterator[str]:
    """Give every step that changes anything by 0.1 % or more its sentence, with the designs that back it."""
    for item in found.effects:
        if max(abs(value) for name in FIGURES for value in item.interval(name)) >= LEAST_CHANGE:
            changes = ", ".join(f"{name} {interval_text(item.interval(name))}" for name in FIGURES)
            yield f"{knob_words(item.knob)} {step_text(item)}: {changes} ({_backing(item)})."


def step_text(item: Effect) -> str:
    """Return the values that a step goes from and to, at all points where it was simulated."""
    unit = f" {item.unit}" if item.unit else ""
    pairs = dict.fromkeys(f"{change.before} to {change.after}{unit}" for change in item.at)
    return " or ".join(pairs)


def interval_text(interval: tuple[float, float]) -> str:
    """Return one change, or from the least to the largest."""
    low, high = (_change_text(value) for value in interval)
    return low if low == high else f"{low} to {high}"


def _change_text(change: float) -> str:
    """Return a change in percent, or as a factor where it more than doubles."""
    # Rounded before it is written, so that no change is -0.0 %.
    return f"x {1 + change:.3g}" if change > 1 else f"{round(100 * change, 1) + 0.0:+.1f} %"


def _backing(item: Effect) -> str:
    return ", ".join(f"point {change.point}: design {change.design} against {change.reference}" for change in item.at)


def _absent_lines(found: Sensitivity) -> Iterator[str]:
    silent = [
        item
        for item in found.effects
        if max(abs(value) for name in FIGURES for value in item.interval(name)) < LEAST_CHANGE
    ]
    for item in silent:
        yield f"{knob_words(item.knob)} {step_text(item)}: changes nothing by {LEAST_CHANGE:.1%} ({_backing(item)})."
    for absent in found.plan:
        if not absent.designs:
            moves = " with ".join(_move_text(move) for move in absent.moves)
            yield f"{moves} at point {found.around.centres[absent.centre].point}: {absent.reason}."


def interaction_lines(found: Sensitivity) -> Iterator[str]:
    """Say of each pair whether two steps together do what they do alone, beyond 2 %."""
    quiet = []
    for item in found.interactions:
        moves = " with ".join(_move_text(move) for move in item.moves)
        if item.latency is None:
            yield f"{moves}: {item.reason}."
        elif item.notable:
            sign = "slower" if item.latency > 0 else "faster"
            yield (
                f"{moves}: together {abs(item.latency):.1%} {sign} than the two steps alone make it (designs "
                f"{', '.join(str(number) for number in item.designs)})."
            )
        else:
            quiet.append(f"{moves} ({item.latency:+.1%}, design {item.designs[0]})")
    if quiet:
        yield f"Within {LEAST_INTERACTION:.0%} of what the two steps do alone: {'; '.join(quiet)}."


def importance_lines(found: Sensitivity) -> Iterator[str]:
    """Say which knobs PED-ANOVA ranks first, and how far that agrees with the simulated steps."""
    if not found.importances:
        yield f"Nothing: the run has {len(found.run.evaluations)} trials, of which at least {FEWEST_TRIALS} are needed."
    for item in found.importances:
        first = ", ".join(f"{knob_words(name)} {share:.0%}" for name, share in item.shares[:5])
        if item.agreement is None:
            check = f"too few knobs to compare ({item.compared})"
        else:
            check = f"rank agreement with the simulated steps {item.agreement:+.2f} (Spearman, {item.compared} knobs)"
        yield f"{item.objective}, PED-ANOVA over {item.trials} trials: {first}; {check}."


def _move_text(move: Move) -> str:
    direction = f" {move.step}" if move.step in (UP, DOWN) else ""
    return f"{knob_words(move.knob)}{direction} {move.before} to {move.after}"
