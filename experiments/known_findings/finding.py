"""What every known finding is: what is known and who says so, and how to measure, sum up and draw it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from matplotlib.axes import Axes

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Finding(Generic[Row]):
    """A finding; its rows are records whose fields name their units, `panels` draw them on axes of a figure."""

    name: str
    known: str
    source: str
    measure: Callable[[], tuple[Row, ...]]
    summary: Callable[[Sequence[Row]], str]
    panels: tuple[Callable[[Axes, Sequence[Row]], None], ...]


def ratio_text(values: Sequence[float]) -> str:
    """Return values relative to the first one, as 1 : 3.08 : 11.3."""
    return " : ".join(f"{value / values[0]:.3g}" for value in values)
