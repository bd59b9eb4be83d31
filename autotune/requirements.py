"""Requirements: limits that a user sets on figures of merit, parsed by hand, and by how much a design misses them.

The margin of a requirement is the logarithm of value over limit (of limit over value for a least value): 0 on the
limit, positive where it is violated. The violation of a design is the sum of its positive margins: relative, without
units, and lower whenever any requirement comes nearer. A violation of 0.1 is about 10 % too much of one figure.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.merit import FIGURES, Facts, Merit, Sense, knob_figure
from autotune.problem import HARDWARE_GROUP, Knob
from configs.device_mistakes import nearest
from configs.errors import UserError

Floats = NDArray[np.float64]
AT_MOST, AT_LEAST = "<=", ">="
MOST_CHARACTERS = 200
_NUMBER = re.compile(r"[0-9]{1,50}(\.[0-9]{0,50})?([eE][+-]?[0-9]{1,2})?", re.ASCII)
_OPERATOR = re.compile(r"[<>=!]+")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A figure that may be at most, or at least, a limit in the figure's unit."""

    merit: Merit
    at_most: bool
    limit: float

    def __str__(self) -> str:
        """The requirement as it is written on the command line."""
        return requirement_text(self.merit.figure, self.at_most, self.limit)

    @property
    def operator(self) -> str:
        """The comparison that holds between figure and limit."""
        return AT_MOST if self.at_most else AT_LEAST

    @property
    def bounded(self) -> bool:
        """Whether what lower bounds violate, no simulation satisfies."""
        return self.merit.exact or self.merit.sense is (Sense.LESS if self.at_most else Sense.MORE)

    def margin(self, metrics: Floats, facts: Facts) -> Floats:
        """Return by how much designs miss the limit, as a logarithm; negative where there is room: float[n]."""
        ratio = np.log(self.merit.value(metrics, facts) / self.limit)
        return ratio if self.at_most else -ratio


def requirement_text(figure: str, at_most: bool, limit: float) -> str:
    """Return the one spelling of a requirement, so that equal ones are equal texts."""
    number = f"{limit:.15g}"
    return f"{figure} {AT_MOST if at_most else AT_LEAST} {number if float(number) == limit else repr(limit)}"


def canonical_requirement(text: str) -> str:
    """Return a requirement in its one spelling, whether or not the figure is known; raises UserError for no number."""
    return requirement_text(*_parts(text, f"--require {text[:MOST_CHARACTERS]!r}"))


def limit_text(option: str, text: str) -> str:
    """Return the requirement that --max NAME=VALUE or --min NAME=VALUE stands for."""
    name, separator, number = text.partition("=")
    where = f"{option} {text[:MOST_CHARACTERS]!r}"
    if not separator:
        raise UserError(where=where, expected="NAME=VALUE", found="no =", way_out=f"for example {option} area_mm2=600")
    return requirement_text(name.strip(), option == "--max", _number(number, where))


def parse_requirement(text: str, known: Mapping[str, Merit]) -> Requirement:
    """Return the requirement of a text such as `area_mm2 <= 600`; raises UserError naming what is known."""
    where = f"--require {text[:MOST_CHARACTERS]!r}"
    name, at_most, limit = _parts(text, where)
    if name not in known:
        raise UserError(
            where=where,
            expected=f"one of {', '.join(known)}",
            found=repr(name),
            way_out=nearest(name, known) or "give one of these",
        )
    return Requirement(known[name], at_most, limit)


def known_figures(knobs: Sequence[Knob]) -> dict[str, Merit]:
    """Return every figure that a requirement can name: the table's, and the numeric hardware knobs."""
    numeric = [
        knob for knob in knobs if knob.group == HARDWARE_GROUP and all(isinstance(value, int) for value in knob.values)
    ]
    return {knob.name: knob_figure(knob.name, knob.unit) for knob in numeric} | {item.figure: item for item in FIGURES}


def _parts(text: str, where: str) -> tuple[str, bool, float]:
    found = _OPERATOR.search(text)
    operator = found.group() if found else ""
    if found is None or operator not in (AT_MOST, AT_LEAST):
        raise UserError(
            where=where,
            expected=f"NAME {AT_MOST} NUMBER or NAME {AT_LEAST} NUMBER",
            found=f"the operator {operator}" if operator else "no operator",
            way_out="for example --require 'area_mm2 <= 600'",
        )
    return text[: found.start()].strip(), operator == AT_MOST, _number(text[found.end() :], where)


def _number(text: str, where: str) -> float:
    text = text.strip()
    number = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not 0.0 < number < np.inf:
        raise UserError(
            where=where,
            expected="a number above 0, such as 600 or 2.5e-1",
            found=repr(text[:MOST_CHARACTERS]),
            way_out="give the limit in the unit that the name ends in",
        )
    return number
