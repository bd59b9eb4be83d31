"""Larger rows spread the price of opening one: duty of a GEMV that opens a row only when it has left the one before.

One channel of GDDR6-AiM, refresh off, inputs there from the start. Duty is the time that multiplies take of the time
from one all-bank activate to the next, as in the steady run of rows between two mode changes; that of the whole GEMV
has mode changes, buffer writes and read-outs in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from autotune.figure_bars import COLOURS
from compiler.linear import LinearShape
from compiler.lowering import System, lower_task
from compiler.schedule import LinearSchedule, LoopOrder
from configs.device import Device, load_device
from configs.knobs import base_knobs
from configs.refresh import Refresh, RefreshPolicy
from experiments.known_findings.finding import Finding
from simulator.engine import Engine
from simulator.isa import CODE_OF, Kind
from simulator.laws.device import scaled_device
from simulator.program_code import flatten
from simulator.step import PimPhase

HARDWARE = "gddr6-aim"
KIB = 1024
ROWS_KIB = (1, 2, 4, 8)
# 128 rows of 2 KiB in every bank; the input fills the global buffer once.
GEMV = LinearShape("gemv", (65536,), 1024, 1)
MOST_SEGMENT_COLUMNS = 64
KNOWN_DUTY_PERCENT = 56.6  # 128 of 226 cycles: public AiM simulator, activates of channel 0 of a 4096 x 4096 GEMV
# From the last multiply of a row to the first of the next: nRTP 12, nRP 32, nRCDRDMAC 56.
CHANGE_CYCLES, CADENCE_CYCLES = 100, 2


class Variant(StrEnum):
    """How rows are opened, on which timing."""

    FIXED = "row by row, timing of 2 KiB rows"
    LAWS = "row by row"
    AHEAD = "opened ahead"
    TWO_BUFFERS = "two row buffers"


@dataclass(frozen=True, slots=True)
class RowSizeRow:
    """One row size and variant."""

    row_kib: int
    variant: Variant
    columns_per_row: int
    row_period_cycles: int
    duty_percent: float
    whole_gemv_duty_percent: float


def closed_form_percent(columns: int) -> float:
    """Return the duty of row by row with the timing of 2 KiB rows: 2c of 2(c - 1) + 100 cycles."""
    return 100 * CADENCE_CYCLES * columns / (CADENCE_CYCLES * (columns - 1) + CHANGE_CYCLES)


def measure(rows_kib: Sequence[int] = ROWS_KIB) -> tuple[RowSizeRow, ...]:
    """Simulate every variant at every size."""
    return tuple(_measured(kib, variant) for variant in Variant for kib in rows_kib)


def _device(kib: int, variant: Variant) -> Device:
    base = load_device(HARDWARE)
    organisation = base.organisation
    if variant is Variant.FIXED:
        rows = organisation.rows * organisation.row_bytes // (kib * KIB)
        changed = organisation.model_copy(update={"row_bytes": kib * KIB, "rows": rows})
        device = base.model_copy(update={"name": f"{HARDWARE}, {kib} KiB", "organisation": changed})
    else:
        buffers = 2 if variant is Variant.TWO_BUFFERS else 1
        device = scaled_device(base, replace(base_knobs(base), row_bytes=kib * KIB, row_buffers=buffers))
    return device.model_copy(update={"refresh": Refresh(policy=RefreshPolicy.NONE)})


def _measured(kib: int, variant: Variant) -> RowSizeRow:
    device = _device(kib, variant)
    columns, cadence = device.organisation.columns, device.timing["nCCDMAC"]
    schedule = LinearSchedule(
        segment_columns=min(MOST_SEGMENT_COLUMNS, columns),
        order=LoopOrder.RELOAD,
        preactivate=variant in (Variant.AHEAD, Variant.TWO_BUFFERS),
    )
    (phase,) = lower_task(GEMV, {GEMV.name: schedule}, System(device, 1))
    assert isinstance(phase, PimPhase)
    engine = Engine(device)
    arrivals = np.zeros(len(phase.down_bytes), dtype=np.int64)
    report, log = engine.run_logged(flatten(phase.program), engine.fresh_state(), arrivals)
    period = int(np.median(np.diff(log.cycle[log.kind == CODE_OF[Kind.ACT16]])))
    multiplies = int(np.isin(log.kind, [CODE_OF[Kind.MAC16], CODE_OF[Kind.MACL16]]).sum())
    return RowSizeRow(
        row_kib=kib,
        variant=variant,
        columns_per_row=columns,
        row_period_cycles=period,
        duty_percent=100 * columns * cadence / period,
        whole_gemv_duty_percent=100 * multiplies * cadence / (report.completed - report.first_issue),
    )


def summary(rows: Sequence[RowSizeRow]) -> str:
    """Give the known point and both ends of the curves."""
    known = next(row for row in rows if row.variant is Variant.FIXED and row.row_kib == 2)
    ends = []
    for variant in Variant:
        own = [row for row in rows if row.variant is variant]
        ends.append(f"{variant} {own[0].duty_percent:.1f} to {own[-1].duty_percent:.1f} %")
    return (
        f"{known.duty_percent:.1f} % at 2 KiB ({known.row_period_cycles} cycles a row, "
        f"{known.whole_gemv_duty_percent:.1f} % of the whole GEMV); from {rows[0].row_kib} to {rows[-1].row_kib} KiB: "
        f"{'; '.join(ends)}"
    )


def draw(axes: Axes, rows: Sequence[RowSizeRow]) -> None:
    """Draw duty over the size of a row, the known point among them."""
    sizes = [row.row_kib for row in rows if row.variant is Variant.FIXED]
    fine = np.geomspace(sizes[0], sizes[-1], 50)
    closed = [closed_form_percent(round(KIB / 32 * float(kib))) for kib in fine]
    axes.plot(fine, closed, "-", color="0.6", label="2c / (2(c - 1) + 100)")
    lines = (
        (Variant.TWO_BUFFERS, "duty_percent", "two row buffers", "s-", COLOURS[2]),
        (Variant.FIXED, "duty_percent", "row by row, fixed timing", "o", "0.3"),
        (Variant.LAWS, "duty_percent", "row by row, laws", "o-", COLOURS[0]),
        (Variant.AHEAD, "whole_gemv_duty_percent", "opened ahead, whole GEMV", "^:", COLOURS[1]),
    )
    for variant, field, label, style, colour in lines:
        heights = [getattr(row, field) for row in rows if row.variant is variant]
        axes.plot(sizes, heights, style, color=colour, markersize=3, label=label)
    axes.plot([2], [KNOWN_DUTY_PERCENT], "*", color="#d62728", markersize=8, label="known, 56.6 %", zorder=5)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0, 105)
    axes.set_title("3  row size and activation")
    axes.set_xlabel("row (KiB)")
    axes.set_ylabel("multiply duty (%)")
    axes.legend(loc="lower right", labelspacing=0.2, borderpad=0.1)


FINDING = Finding(
    name="row_size",
    known=f"row by row a GEMV on GDDR6-AiM multiplies {KNOWN_DUTY_PERCENT} % of the time, 128 of 226 cycles a row",
    source="public AiM simulator, period of all-bank activates in a 4096 x 4096 GEMV",
    measure=measure,
    summary=summary,
    panels=(draw,),
)
