"""Constraints for architects: `constraints.json` for programs (docs/constraints.md), `constraints.md` for readers."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from autotune.causes import LEVERS
from autotune.feasibility import Feasibility
from autotune.findings import (
    LEAST_GAIN_PER_DOUBLING,
    LEAST_SUPPORT,
    BindingLimit,
    Knee,
    Step,
    binding_limits,
    front_steps,
    knees,
    knob_steps,
)
from autotune.finished import FinishedRun
from autotune.front_gap import Gap, gap
from autotune.units import MS_PER_NS

SCHEMA = "constraints/1"
LISTED_REASONS = 8
LEAST_STEP = 0.05


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and one statement a line."""

    heading: str
    lines: tuple[str, ...]


def write_constraints(run: FinishedRun) -> tuple[Path, Path]:
    """Write both forms and return their paths."""
    as_json, as_prose = run.folder / "constraints.json", run.folder / "constraints.md"
    as_json.write_text(json.dumps(constraints_json(run), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    text = "\n".join(f"## {item.heading}\n\n" + "".join(f"- {line}\n" for line in item.lines) for item in prose(run))
    as_prose.write_text(f"# Constraints\n\n{text}", encoding="utf-8")
    return as_json, as_prose


def constraints_json(run: FinishedRun) -> dict[str, object]:
    """Return every finding as plain values; points are numbers of evaluations."""
    found = gap(run)
    return {
        "schema": SCHEMA,
        "settings": run.shown_settings,
        "binding_limits": [
            {
                "point": item.point,
                "cause": str(item.cause),
                "share_of_latency": item.share,
                "shares_of_latency": {str(cause): share for cause, share in item.shares},
                "waiting_share_of_latency": item.waiting,
            }
            for item in binding_limits(run)
        ],
        "least_gain_per_doubling": LEAST_GAIN_PER_DOUBLING,
        "knees": [asdict(item) for item in knees(run)],
        "knob_steps": [_step_json(item) for item in knob_steps(run)],
        "front_steps": [_step_json(item) for item in front_steps(run)],
        "illegality": asdict(run.result.feasibility),
        "gap_to_lower_bounds": asdict(found) if found else None,
    }


def _step_json(item: Step) -> dict[str, object]:
    return asdict(item) | {"knobs": {name: [before, after] for name, before, after in item.knobs}}


def prose(run: FinishedRun) -> tuple[Section, ...]:
    """Return the findings as sentences, each with the simulated points that back it."""
    sections = (
        Section("Which limit binds", tuple(_binding_lines(binding_limits(run)))),
        Section("Where each hardware knob stops paying", tuple(_knee_line(item) for item in knees(run) if item.best)),
        Section(
            "What one step of a knob costs and buys, between two devices' fastest points (schedules differ)",
            tuple(_step_line(item) for item in knob_steps(run)),
        ),
        Section(
            f"Steps along the front that cost at least {LEAST_STEP:.0%} of latency",
            tuple(_step_line(item) for item in front_steps(run) if item.latency_change >= LEAST_STEP),
        ),
        Section("Why sampled designs were illegal", tuple(_illegality_lines(run.result.feasibility))),
        Section("How much is left", tuple(_gap_lines(gap(run), len(run.evaluations)))),
    )
    return tuple(section for section in sections if section.lines)


def _binding_lines(limits: Iterable[BindingLimit]) -> Iterable[str]:
    """Join the points that one cause binds into one sentence, the most frequent cause first."""
    grouped: dict[str, list[BindingLimit]] = {}
    for item in limits:
        grouped.setdefault(str(item.cause), []).append(item)
    for cause, items in sorted(grouped.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        low, high = min(item.share for item in items), max(item.share for item in items)
        amount = f"{low:.0%}" if len(items) == 1 else f"{low:.0%} to {high:.0%}"
        yield (
            f"{cause[0].upper()}{cause[1:]} is the largest part of the latency of "
            f"{_points(item.point for item in items)} ({amount}); relaxed by {LEVERS[items[0].cause]}."
        )


def _knee_line(item: Knee) -> str:
    latencies = ", ".join(
        f"{best.latency_ns * MS_PER_NS:.4g} ms at {best.value}{_unit(item)} (point {best.point}, of {best.simulated})"
        for best in item.best
    )
    name = item.knob.removesuffix("_bytes").replace("_", " ")
    if len(item.best) == 1:
        return f"{name}: only one value was simulated; lowest latency {latencies}."
    supported = [best.value for best in item.best if best.simulated >= LEAST_SUPPORT]
    if len(supported) < 2:
        verdict = f"no verdict, fewer than two values were simulated {LEAST_SUPPORT} times"
    elif item.knee is None:
        verdict = f"still gains at least {LEAST_GAIN_PER_DOUBLING:.0%} at the largest value, {supported[-1]}"
    elif item.knee == supported[-1]:
        verdict = f"gains up to the largest value, {item.knee}"
    else:
        verdict = f"beyond {item.knee}{_unit(item)} a doubling gains less than {LEAST_GAIN_PER_DOUBLING:.0%}"
    return f"{name}: {verdict}; lowest latency {latencies}."


def _step_line(item: Step) -> str:
    changes = ", ".join(f"{name} {before} to {after}" for name, before, after in item.knobs)
    return (
        f"From point {item.start} to point {item.end}: latency {item.latency_change:+.1%}, energy "
        f"{item.energy_change:+.1%}, area {item.area_change:+.1%}; {changes or 'the same device, other schedules'}."
    )


def _illegality_lines(found: Feasibility) -> Iterable[str]:
    yield f"Of {found.sampled} designs drawn uniformly {found.legal} were legal."
    for item in found.reasons[:LISTED_REASONS]:
        yield f"{item.count} of {found.explained} illegal ones: {item.reason} (for example: {item.example})."


def _gap_lines(found: Gap | None, evaluated: int) -> Iterable[str]:
    if found is None:
        return
    yield (
        f"The front's hypervolume is {found.hypervolume:.4g}, {found.hypervolume / found.bound_hypervolume:.1%} of the "
        f"{found.bound_hypervolume:.4g} that the lower bounds of the sampled designs allow."
    )
    yield (
        "As far as lower bounds of the sampled and the evaluated designs tell, no legal design of this space beats "
        f"this front by more than {found.factor - 1:.1%} in all objectives at once: next to any of them some Pareto "
        f"point has at most {found.factor:.3g} times its latency, energy and area. The front is farthest from its "
        f"bound near point {found.point}."
    )
    yield (
        f"This is relative to the roofline front, which was found by sampling and is not proved complete: "
        f"{found.uncovered} of {evaluated} evaluated designs were not covered by the sample before they were added."
    )


def _points(points: Iterable[int]) -> str:
    numbers = [str(point) for point in points]
    return f"point {numbers[0]}" if len(numbers) == 1 else f"points {', '.join(numbers)}"


def _unit(item: Knee) -> str:
    return f" {item.unit}" if item.unit else ""
