"""Constraints for architects: `constraints.json` for programs (docs/constraints.md), `constraints.md` for readers."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from autotune.architect.beside import NOTHING_BESIDE, Beside
from autotune.architect.binding import BindingLimit, binding_limits
from autotune.architect.sentences import against_lines, binding_lines, knee_lines, smallest_lines
from autotune.architect.smallest import SmallestDevice, smallest_devices
from autotune.feasibility import Feasibility
from autotune.findings import LEAST_GAIN_PER_DOUBLING, LEAST_SPREAD, Step, front_steps, knees, knob_steps
from autotune.finished import FinishedRun
from autotune.front_gap import Gap, gap
from autotune.merit import titles
from autotune.requirement_findings import NearestPoint, RequirementCount, miss_text, nearest_misses, requirement_counts
from autotune.units import four_digits

SCHEMA = "constraints/2"
LISTED_REASONS = 8
LEAST_STEP = 0.05


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and one statement a line."""

    heading: str
    lines: tuple[str, ...]


def write_constraints(run: FinishedRun, found: Beside = NOTHING_BESIDE) -> tuple[Path, Path]:
    """Write both forms and return their paths."""
    as_json, as_prose = run.folder / "constraints.json", run.folder / "constraints.md"
    as_json.write_text(json.dumps(constraints_json(run, found), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    text = "\n".join(
        f"## {item.heading}\n\n" + "".join(f"- {line}\n" for line in item.lines) for item in prose(run, found)
    )
    as_prose.write_text(f"# Constraints\n\n{text}", encoding="utf-8")
    return as_json, as_prose


def constraints_json(run: FinishedRun, beside: Beside = NOTHING_BESIDE) -> dict[str, object]:
    """Return every finding as plain values; points are numbers of evaluations."""
    found = gap(run)
    return {
        "schema": SCHEMA,
        "settings": run.shown_settings,
        "objectives": [
            {"name": item.objective, "unit": item.unit, "sense": str(item.sense), "meaning": item.meaning}
            for item in run.goals.objectives
        ],
        "requirements": [asdict(item) for item in requirement_counts(run)],
        "feasible_points": int(run.judged.feasible.sum()),
        "nearest_to_feasible": [asdict(item) for item in nearest_misses(run)],
        "binding_limits": [_limit_json(item) for item in binding_limits(run)],
        "against_base": asdict(beside.against) if beside.against else None,
        "smallest_devices": [_smallest_json(item) for item in smallest_devices(run)],
        "least_gain_per_doubling": LEAST_GAIN_PER_DOUBLING,
        "least_spread": LEAST_SPREAD,
        "knees": [asdict(item) for item in knees(run)],
        "knob_steps": [_step_json(item) for item in knob_steps(run)],
        "front_steps": [_step_json(item) for item in front_steps(run)],
        "illegality": asdict(run.result.feasibility),
        "gap_to_lower_bounds": asdict(found) if found else None,
    }


def _limit_json(item: BindingLimit) -> dict[str, object]:
    return {
        "point": item.point,
        "cause": str(item.cause),
        "share_of_latency": item.share,
        "shares_of_latency": {str(cause): share for cause, share in item.shares},
        "waiting_share_of_latency": item.waiting,
        "cadence_set_by": [str(term) for term in item.cadence_set_by],
        "capacity_used_share": item.capacity_used_share,
        "power_average_w": item.power_average_w,
        "instructions_per_token": item.instructions_per_token,
        "dispatcher_busy_share": item.dispatcher_busy_share,
        "tight_requirements": list(item.tight_requirements),
    }


def _smallest_json(item: SmallestDevice) -> dict[str, object]:
    near = item.smaller
    return {
        "target_latency_ns": item.target.latency_ns,
        "target": item.target.source,
        "base_point": item.target.base_point,
        "point": item.point,
        "area_mm2": item.area_mm2,
        "fastest_smaller": near
        and {
            "point": near.point,
            "area_mm2": near.area_mm2,
            "excess_latency": near.excess,
            "binding": _limit_json(near.binding),
        },
        "bound_area_mm2": item.bound_area_mm2,
        "bounded_designs": item.bounded_designs,
    }


def _step_json(item: Step) -> dict[str, object]:
    return asdict(item) | {"knobs": {name: [before, after] for name, before, after in item.knobs}}


def prose(run: FinishedRun, beside: Beside = NOTHING_BESIDE) -> tuple[Section, ...]:
    """Return the findings as sentences, each with the simulated points that back it."""
    sections = (
        Section("Requirements", tuple(_requirement_lines(requirement_counts(run), nearest_misses(run)))),
        Section("Against the base device", tuple(against_lines(beside.against))),
        Section("Which limit binds", tuple(binding_lines(binding_limits(run)))),
        Section("The smallest device for a latency", tuple(smallest_lines(smallest_devices(run)))),
        Section("Where each hardware knob stops paying", tuple(knee_lines(knees(run)))),
        Section(
            "What one step of a knob costs and buys, between two devices' fastest points (schedules differ)",
            tuple(_step_line(item) for item in knob_steps(run)),
        ),
        Section(
            f"Steps along the front that cost at least {LEAST_STEP:.0%} of latency",
            tuple(_step_line(item) for item in front_steps(run) if item.latency_change >= LEAST_STEP),
        ),
        Section("Why sampled designs were illegal", tuple(_illegality_lines(run.result.feasibility))),
        Section("How much is left", tuple(_gap_lines(run, gap(run)))),
    )
    return tuple(section for section in sections if section.lines)


def _requirement_lines(counts: Iterable[RequirementCount], nearest: Iterable[NearestPoint]) -> Iterable[str]:
    for item in counts:
        unit = f" {item.unit}" if item.unit else ""
        missed = f", which misses it by {item.best_excess:.1%}" if item.best_excess else ""
        yield (
            f"{item.requirement}: {item.violated} of {item.evaluated} evaluated designs violate it; the best value is "
            f"{four_digits(item.best_value)}{unit} at point {item.best_point}{missed}."
        )
    for place, near in enumerate(nearest):
        head = "No evaluated design meets all; the nearest, point" if place == 0 else "Next, point"
        yield f"{head} {near.point}, misses {miss_text(near)}."


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


def _gap_lines(run: FinishedRun, found: Gap | None) -> Iterable[str]:
    if found is None:
        return
    yield (
        f"The front's hypervolume is {found.hypervolume:.4g}, {found.hypervolume / found.bound_hypervolume:.1%} of the "
        f"{found.bound_hypervolume:.4g} that the lower bounds of the sampled designs allow."
    )
    yield (
        "As far as lower bounds of the sampled and the evaluated designs tell, no legal design of this space beats "
        f"this front by more than {found.factor - 1:.1%} in all objectives at once: next to any of them some Pareto "
        f"point is at most {found.factor:.3g} times worse in {titles(run.goals.objectives)}. The front is farthest "
        f"from its bound near point {found.point}."
    )
    yield (
        f"This is relative to the roofline front, which was found by sampling and is not proved complete: "
        f"{found.uncovered} of {run.judged.feasible.sum()} feasible designs were not covered by the sample before they "
        "were added."
    )
