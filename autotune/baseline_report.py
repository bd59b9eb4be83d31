"""A block comparison as JSON fields and as a table, and its traces as files."""

from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path

from rich.console import Console
from rich.table import Table

from autotune.baseline_block import Baseline, CorrectionEffect, Side
from autotune.block_replay import whole_trace
from compiler.aim.block import OpName
from compiler.aim.cent_corrections import EXPLANATIONS
from compiler.aim.text import trace_text
from compiler.schedule import schedule_text
from configs.device import Device
from configs.errors import UserError, unwritable
from simulator.text_file import opened_for_writing

ENDINGS = (".trace", ".trace.gz")


class Which(StrEnum):
    """Whose trace is written."""

    CENT = "cent"
    OURS = "ours"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class OpRow:
    """One operator on both sides, in cycles of a device: banks, and accelerators."""

    operator: str
    cycles: int
    tuned_cycles: int
    accelerator_cycles: float
    tuned_accelerator_cycles: float


def json_fields(found: Baseline) -> dict[str, object]:
    """Return every figure of the comparison; cycles without further name are those of the banks."""
    cent, ours, cautious = found.cent, found.ours, found.cautious_total
    return {
        "block_cycles": cent.banks.total,
        "tuned_block_cycles": ours.banks.total,
        "ratio": _ratio(cent.banks.total, ours.banks.total),
        "block_cycles_with_accelerators_and_links": cent.total,
        "tuned_block_cycles_with_accelerators_and_links": ours.total,
        "ratio_with_accelerators_and_links": _ratio(cent.total, ours.total),
        "tuned_block_cycles_with_rotary_cores_too": cautious,
        "ratio_with_rotary_cores_too": _ratio(cent.total, cautious),
        "published_block_cycles": found.published_cycles,
        "corrections": [_correction(effect) for effect in found.corrections],
        "operators": [asdict(row) for row in op_rows(found)],
        "link_cycles": round(cent.outside.link, 1),
        "lanes": found.lanes,
        "context": found.shape.context,
        "channels": found.place.channels,
        "blocks_on_device": found.place.copies,
        "instructions": sum(len(op.instructions) for op in cent.ops) + 1,
        "tuned_instructions": sum(len(op.instructions) for op in ours.ops) + 1,
        "tuned_schedules": {
            field.name: schedule_text(getattr(found.schedules, field.name)) for field in fields(found.schedules)
        },
    }


def op_rows(found: Baseline) -> list[OpRow]:
    """Return the operators in program order; 0 where a side does nothing."""
    return [
        OpRow(
            operator=name.value,
            cycles=found.cent.banks.by_op.get(name, 0),
            tuned_cycles=found.ours.banks.by_op.get(name, 0),
            accelerator_cycles=round(found.cent.outside.accelerators.get(name, 0.0), 1),
            tuned_accelerator_cycles=round(found.ours.outside.accelerators.get(name, 0.0), 1),
        )
        for name in OpName
    ]


def print_comparison(found: Baseline, title: str) -> None:
    """Print operators, totals and corrections."""
    console = Console()
    table = Table("operator", "CENT", "ours", "CENT accel.", "ours accel.", "winner", title=title)
    for column in table.columns[1:5]:
        column.justify = "right"
    for row in op_rows(found):
        numbers = (row.cycles, row.tuned_cycles, row.accelerator_cycles, row.tuned_accelerator_cycles)
        both = row.cycles + row.accelerator_cycles, row.tuned_cycles + row.tuned_accelerator_cycles
        table.add_row(row.operator, *(f"{number:,.0f}" for number in numbers), _winner(*both))
    table.add_section()
    cent, ours = found.cent, found.ours
    table.add_row("banks", *_totals(cent.banks.total, ours.banks.total))
    table.add_row("with accelerators, link", *_totals(cent.total, ours.total))
    table.add_row("rotary on cores as well", *_totals(cent.total, found.cautious_total))
    console.print(table)
    console.print(
        f"Cycles of {found.place.copies} equal blocks side by side, {found.place.channels} channels each. "
        f"CENT's generator without corrections: {found.published_cycles:,}."
    )
    for effect in found.corrections:
        if effect.cycles is not None:
            console.print(f"  {effect.correction} ({effect.cycles:+,}): {EXPLANATIONS[effect.correction]}")


def write_traces(found: Baseline, device: Device, which: Which, out: Path) -> dict[str, str]:
    """Write the traces and return their paths; raises UserError for a file that cannot be written.

    One trace goes to `out`, both to two files whose names tell whose trace it is.
    """
    ending = next((text for text in reversed(ENDINGS) if out.name.endswith(text)), None)
    if ending is None:
        raise UserError(
            where=f"--out {out}",
            expected=f"a name that ends in {' or '.join(ENDINGS)}",
            found=out.name or "no name",
            way_out="the ending tells plain text from gzip; rename the file",
        )
    sides: dict[Which, Side] = {Which.CENT: found.cent, Which.OURS: found.ours}
    chosen = tuple(sides) if which is Which.BOTH else (which,)
    paths = {}
    for name in chosen:
        path = out.with_name(f"{out.name.removesuffix(ending)}.{name}{ending}") if which is Which.BOTH else out
        _write(path, trace_text(whole_trace(sides[name].ops, device)))
        paths[name.value] = str(path)
    return paths


def _write(path: Path, text: str) -> None:
    try:
        with opened_for_writing(path) as target:
            target.write(text)
    except OSError as error:
        raise unwritable(f"--out {path}", error) from error


def _correction(effect: CorrectionEffect) -> dict[str, object]:
    return {
        "name": effect.correction.value,
        "difference": EXPLANATIONS[effect.correction],
        "applies": effect.cycles is not None,
        "cycles": effect.cycles or 0,
    }


def _ratio(cent: float, ours: float) -> float:
    return round(cent / ours, 4)


def _totals(cent: int, ours: int) -> tuple[str, ...]:
    return f"{cent:,}", f"{ours:,}", "", "", _winner(cent, ours)


def _winner(cent: float, ours: float) -> str:
    if cent == ours:
        return "-" if cent == 0 else "equal"
    name, less, more = ("ours", ours, cent) if ours < cent else ("CENT", cent, ours)
    return f"{name} {more / less:.2f}x" if less else f"{name}, {more:,.0f} less"
