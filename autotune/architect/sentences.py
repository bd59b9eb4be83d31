"""What a run tells an architect, in sentences; each names the simulated points that back it."""

from collections.abc import Iterable, Iterator, Sequence

from autotune.architect.against_base import AgainstBase
from autotune.architect.binding import TIGHT, BindingLimit, CadenceLimit
from autotune.architect.smallest import SmallestDevice
from autotune.causes import LEVERS, Cause
from autotune.findings import LEAST_GAIN_PER_DOUBLING, LEAST_SPREAD, LEAST_SUPPORT, Knee
from autotune.units import MJ_PER_PJ, MS_PER_NS, four_digits

# What an architect would change to relax each term of the multiply cadence.
CADENCE_LEVERS = {
    CadenceLimit.COLUMN: "a shorter column access",
    CadenceLimit.PORTS: "more buffer ports, or fewer vectors per multiply",
    CadenceLimit.UNIT: "a faster unit clock",
    CadenceLimit.POWER: "a higher power cap of multiplies, or less energy in each",
}

# Endings of knobs that say the unit of their values.
UNIT_ENDINGS = ("_bytes", "_percent", "_mhz", "_c")


def points_text(points: Iterable[int]) -> str:
    """Return "point 3" or "points 3, 5"."""
    numbers = [str(point) for point in points]
    return f"point {numbers[0]}" if len(numbers) == 1 else f"points {', '.join(numbers)}"


def binding_lines(limits: Sequence[BindingLimit]) -> Iterator[str]:
    """Say what binds, what sets the multiply cadence, and what else is nearly used up; points joined by what it is."""
    yield from _cause_lines(limits)
    yield from _cadence_lines(limits)
    yield from _resource_lines(limits)


def _cause_lines(limits: Iterable[BindingLimit]) -> Iterator[str]:
    """Join the points that one cause binds into one sentence, the most frequent cause first."""
    grouped: dict[Cause, list[BindingLimit]] = {}
    for item in limits:
        grouped.setdefault(item.cause, []).append(item)
    for cause, items in sorted(grouped.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield (
            f"{_capital(cause)} is the largest part of the latency of {points_text(item.point for item in items)} "
            f"({_range([item.share for item in items])}); relaxed by {LEVERS[cause]}."
        )


def _cadence_lines(limits: Iterable[BindingLimit]) -> Iterator[str]:
    grouped: dict[tuple[CadenceLimit, ...], list[int]] = {}
    for item in limits:
        grouped.setdefault(item.cadence_set_by, []).append(item.point)
    for terms, points in sorted(grouped.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        levers = "; and by ".join(CADENCE_LEVERS[term] for term in terms)
        together = ", which are equally long" if len(terms) > 1 else ""
        yield (
            f"The multiply cadence of {points_text(points)} is set by {_listed(terms)}{together}; relaxed by {levers}."
        )


def _resource_lines(limits: Sequence[BindingLimit]) -> Iterator[str]:
    if not limits:
        return
    full = max(limits, key=lambda item: item.capacity_used_share)
    least = min(limits, key=lambda item: item.capacity_used_share)
    yield (
        f"Weights and cache take {least.capacity_used_share:.1%} (point {least.point}) to "
        f"{full.capacity_used_share:.1%} (point {full.point}) of the rows of every bank."
    )
    hot = max(limits, key=lambda item: item.power_average_w)
    cool = min(limits, key=lambda item: item.power_average_w)
    yield (
        f"Average power is {four_digits(cool.power_average_w)} W (point {cool.point}) to "
        f"{four_digits(hot.power_average_w)} W (point {hot.point})."
    )
    busy = max(limits, key=lambda item: item.dispatcher_busy_share)
    yield (
        f"The dispatcher is busy for at most {busy.dispatcher_busy_share:.1%} of the step, at point {busy.point}, for "
        f"which it sends {busy.instructions_per_token:.0f} instructions per token."
    )
    tight: dict[str, list[int]] = {}
    for item in limits:
        for requirement in item.tight_requirements:
            tight.setdefault(requirement, []).append(item.point)
    for requirement, points in tight.items():
        yield f"{requirement} is within {TIGHT:.0%} of its limit at {points_text(points)}."


def knee_lines(found: Iterable[Knee]) -> Iterator[str]:
    """Give knobs that matter a sentence each, and join those of little effect, simulated too rarely, or not varied."""
    varied = [item for item in found if item.best]
    for item in varied:
        if item.pays:
            yield _knee_line(item)
    single = [item for item in varied if len(item.best) == 1]
    unsure = [item for item in varied if len(item.best) > 1 and len(item.supported) < 2]
    little = [item for item in varied if len(item.supported) > 1 and not item.pays]
    if little:
        listed = "; ".join(f"{knob_words(item.knob)} ({_points_by_value(item)})" for item in little)
        yield f"Of little effect in this run, with best latencies less than {LEAST_SPREAD:.0%} apart: {listed}."
    if unsure:
        listed = "; ".join(f"{knob_words(item.knob)} ({_points_by_value(item)})" for item in unsure)
        yield f"No verdict, as fewer than two values were simulated {LEAST_SUPPORT} times: {listed}."
    if single:
        listed = "; ".join(f"{knob_words(item.knob)} at {_value(item, item.best[0].value)}" for item in single)
        yield f"Simulated at one value only, at the fastest in {points_text(_fastest(single))}: {listed}."


def _knee_line(item: Knee) -> str:
    last = item.supported[-1].value
    fastest = min(item.supported, key=lambda best: best.latency_ns)
    if not isinstance(last, int):
        verdict = f"fastest with {fastest.value}"
    elif item.knee is None and fastest.value == last:
        verdict = f"still gains at least {LEAST_GAIN_PER_DOUBLING:.0%} at the largest value, {last}"
    elif item.knee is None:
        verdict = f"fastest at {_value(item, fastest.value)}"
    elif item.knee == last:
        verdict = f"gains up to the largest value, {last}"
    else:
        verdict = f"beyond {_value(item, item.knee)} a doubling gains less than {LEAST_GAIN_PER_DOUBLING:.0%}"
    listed = ", ".join(
        f"{best.latency_ns * MS_PER_NS:.4g} ms, {best.energy_pj * MJ_PER_PJ:.4g} mJ, {best.area_mm2:.4g} mm² at "
        f"{_value(item, best.value)} (point {best.point}, of {best.simulated})"
        for best in item.best
    )
    return f"{knob_words(item.knob)}: {verdict}; at lowest latency {listed}."


def smallest_lines(found: Iterable[SmallestDevice]) -> Iterator[str]:
    """Say for every target which device is smallest, what the smaller ones miss, and what bounds say."""
    for item in found:
        yield " ".join((_target_text(item), _smaller_text(item), _bound_text(item)))


def _target_text(item: SmallestDevice) -> str:
    base = "" if item.target.base_point is None else f" (point {item.target.base_point})"
    head = f"For {item.target.latency_ns * MS_PER_NS:.4g} ms, {item.target.source}{base},"
    if item.point is None or item.area_mm2 is None:
        return f"{head} no simulated point that meets the other requirements is fast enough."
    return f"{head} the smallest simulated device takes {item.area_mm2:.4g} mm² (point {item.point})."


def _smaller_text(item: SmallestDevice) -> str:
    if item.smaller is None:
        return "No simulated point that meets the other requirements is smaller."
    near, binding = item.smaller, item.smaller.binding
    which = "The nearest" if item.point is None else "The fastest of the smaller ones"
    return (
        f"{which}, point {near.point} of {near.area_mm2:.4g} mm², takes {near.excess:.1%} longer; {binding.cause} is "
        f"{binding.share:.0%} of its latency."
    )


def _bound_text(item: SmallestDevice) -> str:
    among = f"the {item.bounded_designs} designs that were evaluated or lie on the front of all sampled lower bounds"
    if item.bound_area_mm2 is None:
        return f"None of {among} has a lower bound that fast."
    return f"By lower bounds none below {item.bound_area_mm2:.4g} mm² can, of {among}."


def _range(shares: Sequence[float]) -> str:
    return f"{shares[0]:.0%}" if len(shares) == 1 else f"{min(shares):.0%} to {max(shares):.0%}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def knob_words(knob: str) -> str:
    """Return the name of a knob as words, without the unit that its values are shown with."""
    ending = next((ending for ending in UNIT_ENDINGS if knob.endswith(ending)), "")
    return knob.removesuffix(ending).replace("_", " ")


def _value(item: Knee, value: int | str) -> str:
    return f"{value} {item.unit}" if item.unit else str(value)


def _points_by_value(item: Knee) -> str:
    return ", ".join(f"point {best.point} at {best.value}" for best in item.best)


def _fastest(found: Sequence[Knee]) -> list[int]:
    return sorted({item.best[0].point for item in found})


def against_lines(found: AgainstBase | None) -> Iterator[str]:
    """Yield the comparison with the base device as sentences, each with its points."""
    if found is None:
        return
    best = f"point {found.base_point}, the base device's best"
    terms = f"at {found.base_capacity_gib:.3g} GiB and no more than its {found.base_power_w:.3g} W on average"
    if not found.beating:
        proof = f"by their lower bounds none of {found.bounded} evaluated or sampled designs can"
        if found.possible:
            proof = (
                f"the lower bounds of {found.possible} of {found.bounded} such designs leave it possible, power aside"
            )
        yield f"No simulated design is faster than {best}, with less energy {terms}; {proof}."
        return
    yield (
        f"{found.beating} simulated designs are faster than {best}, and take less energy, with the host's no more, "
        f"{terms} (datasheet currents)."
    )
    for rival in found.rivals:
        cases = "; ".join(
            f"{item.case}: {item.latency_ratio:.3f} of its latency, {item.energy_ratio:.3f} of its energy, "
            f"{item.power_ratio:.3f} of its power, {item.area_ratio:.2f} of its area"
            for item in rival.cases
        )
        verdict = "does so at low, nominal, high and adverse constants alike"
        if not rival.always:
            failing = [item.case for item in rival.cases if not item.dominates]
            verdict = f"does not do so at {' and '.join(failing) or 'some'} constants"
        unpriced = ", ".join(rival.costless)
        unpriced = f" Part of what these of its knobs cost is not modelled: {unpriced}." if unpriced else ""
        yield f"With typical currents point {rival.point} {verdict} ({cases}).{unpriced}"
