"""One point of a run folder, read back from the table of its evaluations, where they have their numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from autotune.problem import METRICS, Knob
from autotune.tables import TRIALS_FILE, knob_column
from configs.errors import UserError

PACING = "link_pacing_factor"


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point's number, the codes of its design, and what its evaluation found."""

    point: int
    codes: tuple[int, ...]
    latency_ns: float
    slowdown: int


def stored_point(folder: Path, knobs: Sequence[Knob], point: int | None = None) -> StoredPoint:
    """Return a point of a run, by default the fastest; raises UserError for a folder or point that cannot be used."""
    table = _table(folder, knobs)
    if point is None:
        # Without a feasible point the one that misses the requirements least stands in for the front.
        nearest = table.sort_values(["violation", *METRICS], kind="stable")[:1] if "violation" in table else table[:0]
        best = table[table["is_pareto"]] if table["is_pareto"].any() else nearest
        chosen = best.sort_values(list(METRICS), kind="stable")
    else:
        chosen = table[table["point"] == point]
    if chosen.empty:
        raise UserError(
            where=f"{folder}, point {'' if point is None else point}".rstrip(),
            expected=f"a point from 0 to {len(table) - 1}",
            found="none of that number" if len(table) else "no evaluations",
            way_out="pareto.csv in the folder lists the best",
        )
    row: dict[Any, Any] = chosen.iloc[0].to_dict()
    return StoredPoint(
        int(row["point"]), tuple(_code(knob, row, folder) for knob in knobs), row["latency_ns"], int(row[PACING])
    )


def stored_codes(folder: Path, knobs: Sequence[Knob]) -> tuple[tuple[int, ...], ...]:
    """Return the designs of all points of a run in order; raises UserError for a folder that cannot be used."""
    rows = _table(folder, knobs).sort_values("point", kind="stable").to_dict("records")
    return tuple(tuple(_code(knob, row, folder) for knob in knobs) for row in rows)


def _table(folder: Path, knobs: Sequence[Knob]) -> pd.DataFrame:
    path = folder / TRIALS_FILE
    if not path.is_file():
        raise UserError(
            where=str(folder),
            expected="the folder of a finished run",
            found=f"no {TRIALS_FILE}",
            way_out="finish the run with --resume, or give another folder",
        )
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise UserError(
            where=str(path),
            expected="the table of a run",
            found="a damaged file",
            way_out="make it again with --resume",
        ) from error
    needed = ["point", "is_pareto", *METRICS, PACING, *(knob_column(knob) for knob in knobs)]
    missing = [name for name in needed if name not in table.columns]
    if missing:
        raise UserError(
            where=str(path),
            expected=f"a column {missing[0]}",
            found="none",
            way_out="the run is of another version of the program: make a new one",
        )
    return table


def _code(knob: Knob, row: Mapping[Any, Any], folder: Path) -> int:
    value = row[knob_column(knob)]
    codes = {str(known): code for code, known in enumerate(knob.values)}
    if str(value) not in codes:
        raise UserError(
            where=f"{folder / TRIALS_FILE}, {knob_column(knob)}",
            expected=f"one of {', '.join(codes)}",
            found=str(value),
            way_out="the run is of another version of the program: make a new one",
        )
    return codes[str(value)]
