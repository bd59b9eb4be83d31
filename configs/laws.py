"""The constants of the scaling laws: curves whose slopes are used, bands of what a knob adds, and host links by name.

They lie in `laws.yaml`, each with its unit, source and confidence. A law multiplies a base device's own constant by the
ratio of a curve at two knob values, raised to an exponent: 1 is the curve as swept, low and high are how far other
technologies and tools depart from it. A base device at its own values is the same in every case. Low and high name the
exponents, not the outcome; the adverse case takes for every law whichever of the three is worst for a device.
"""

from collections.abc import Mapping
from functools import cache
from math import log2
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from configs.record import Amount, PositiveFloat, Record

LAWS_FILE = Path(__file__).parent / "laws.yaml"
Case = Literal["low", "nominal", "high"]
CASES: tuple[Case, ...] = ("low", "nominal", "high")
LawCase = Literal["low", "nominal", "high", "adverse"]
LAW_CASES: tuple[LawCase, ...] = (*CASES, "adverse")
Confidence = Literal["high", "medium", "low"]


class Band(Record):
    """An uncertain amount, which may be zero: low, nominal and high."""

    low: Amount
    nominal: Amount
    high: Amount

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        if not self.low <= self.nominal <= self.high:
            raise ValueError(f"low {self.low}, nominal {self.nominal}, high {self.high} are not in rising order")
        return self

    def at(self, case: LawCase) -> float:
        """Return one of the three; the worst is the highest: all of them are costs."""
        return {"low": self.low, "nominal": self.nominal, "high": self.high, "adverse": self.high}[case]


class Sourced(Record):
    """What every constant carries."""

    unit: str
    meaning: str
    source: str
    confidence: Confidence


class LawBand(Sourced):
    """A constant of a law."""

    value: Band


class Curve(Sourced):
    """A swept figure by knob value, linear between the points on a logarithmic axis."""

    points: Annotated[dict[int, PositiveFloat], Field(min_length=2)]
    exponent: Band

    def at(self, value: Any) -> Any:
        """Return the figure at a knob value, or at an array of them; flat beyond the ends of the sweep."""
        return np.interp(np.log2(value), [log2(point) for point in self.points], list(self.points.values()))

    def ratio(self, value: Any, own: Any, case: LawCase) -> Any:
        """Return by what a base device's constant is multiplied from its own knob value to another."""
        return powered(self.at(value) / self.at(own), self.exponent, case)


class NamedLink(Sourced):
    """A link that a device may have in place of its own; `per_channel` says whether each channel brings its rate."""

    bandwidth_gb_per_s: PositiveFloat
    per_channel: bool = False
    latency_ns: Amount
    pj_per_bit: PositiveFloat


def powered(ratio: Any, exponent: Band, case: LawCase) -> Any:
    """Return a ratio of costs raised to an exponent; the adverse one is the largest that the band allows."""
    if case != "adverse":
        return ratio ** exponent.at(case)
    return np.maximum.reduce([np.asarray(ratio, dtype=np.float64) ** exponent.at(each) for each in CASES])


class LawConstants(Record):
    """All constants by name."""

    curves: dict[str, Curve]
    bands: dict[str, LawBand]
    links: dict[str, NamedLink]

    def ratio(self, curve: str, value: Any, own: Any, case: LawCase = "nominal") -> Any:
        """Return a curve's ratio; raises KeyError for a curve that is not there."""
        return self.curves[curve].ratio(value, own, case)

    def band(self, name: str, case: LawCase = "nominal") -> float:
        """Return a constant; raises KeyError for one that is not there."""
        return self.bands[name].value.at(case)


@cache
def law_constants() -> LawConstants:
    """Read the constants that come with the project."""
    from configs.yaml_text import load_yaml

    content: Mapping[str, Any] = load_yaml(LAWS_FILE.read_text(encoding="utf-8"))
    return LawConstants.model_validate(content)
