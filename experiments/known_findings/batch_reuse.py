"""Batches pay only where a fetched column is multiplied with several vectors: throughput and energy over the batch."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from autotune.figure_bars import COLOURS
from compiler.workload import Workload
from configs.device import load_device
from experiments.known_findings.finding import Finding
from experiments.known_findings.measure import BOTH, MODEL, fastest_point, workload_of_model

HARDWARE, CONTEXT = "gddr6-aim", 1024
BATCHES = (1, 2, 4, 8, 16)
KIB = 1024
# Vectors per multiply and KiB of the global buffer; at 8 vectors 2 KiB leave each 8 columns at a time.
UNITS = ((1, 2), (2, 2), (4, 2), (8, 2), (8, 8))
# What the largest batch needs; the same for all, so that batches alone differ.
DEVICES = 2


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One batch on devices whose units multiply a column with so many vectors at once, each by its own buffer port."""

    batch: int
    vectors_per_multiply: int
    buffer_ports: int
    global_buffer_kib: int
    devices: int
    column_cadence_cycles: int
    latency_ms_per_step: float
    throughput_tokens_per_s: float
    energy_typical_mj_per_token: float
    area_mm2_per_device: float
    mapping: str


def measure(
    batches: Sequence[int] = BATCHES,
    units: Sequence[tuple[int, int]] = UNITS,
    mappings: Sequence[str] = BOTH,
    model: str = MODEL,
) -> tuple[BatchRow, ...]:
    """Evaluate every batch on every device."""
    return tuple(
        _measured(workload_of_model(model, batch, CONTEXT), vectors, kib, mappings)
        for vectors, kib in units
        for batch in batches
    )


def _measured(workload: Workload, vectors: int, kib: int, mappings: Sequence[str]) -> BatchRow:
    changed = {"vectors_per_multiply": vectors, "buffer_ports": vectors, "global_buffer_bytes": kib * KIB}
    point = fastest_point(workload, load_device(HARDWARE), changed, devices=DEVICES, mappings=mappings)
    return BatchRow(
        batch=workload.batch,
        vectors_per_multiply=vectors,
        buffer_ports=vectors,
        global_buffer_kib=kib,
        devices=point.devices,
        column_cadence_cycles=point.device.timing["nCCDMAC"],
        latency_ms_per_step=point.latency_ms,
        throughput_tokens_per_s=point.detail("throughput_tokens_per_s"),
        energy_typical_mj_per_token=point.energy_typical_mj / workload.batch,
        area_mm2_per_device=point.evaluation.area_mm2 / point.devices,
        mapping=point.mapping,
    )


def summary(rows: Sequence[BatchRow]) -> str:
    """Give throughput and energy of the smallest and the largest batch, for every kind of unit."""
    parts = []
    for label, own in _curves(rows):
        first, last = own[0], own[-1]
        gain = last.throughput_tokens_per_s / first.throughput_tokens_per_s
        parts.append(
            f"{label}: {first.throughput_tokens_per_s:.0f} to {last.throughput_tokens_per_s:.0f} "
            f"tokens/s (x {gain:.2f}), {first.energy_typical_mj_per_token:.0f} to "
            f"{last.energy_typical_mj_per_token:.0f} mJ per token"
        )
    return f"from batch {rows[0].batch} to {rows[-1].batch}, by vectors per multiply, {'; '.join(parts)}"


def _curves(rows: Sequence[BatchRow]) -> list[tuple[str, list[BatchRow]]]:
    """Return the rows of each kind of unit under its name."""
    curves: dict[str, list[BatchRow]] = {}
    for row in rows:
        buffer = "" if row.global_buffer_kib == UNITS[0][1] else f", {row.global_buffer_kib} KiB buffer"
        curves.setdefault(f"{row.vectors_per_multiply}{buffer}", []).append(row)
    return list(curves.items())


def draw_throughput(axes: Axes, rows: Sequence[BatchRow]) -> None:
    """Draw tokens per second."""
    _draw(axes, rows, "throughput_tokens_per_s")
    axes.set_ylim(0, 1.15 * max(row.throughput_tokens_per_s for row in rows))
    axes.set_title("4  batch and vectors per multiply")
    axes.set_ylabel("throughput (tokens/s)")
    axes.legend(loc="upper left", title="vectors per multiply", title_fontsize=6.5, labelspacing=0.2, borderpad=0.1)


def draw_energy(axes: Axes, rows: Sequence[BatchRow]) -> None:
    """Draw energy per token."""
    _draw(axes, rows, "energy_typical_mj_per_token")
    axes.set_title("4  the same: energy")
    axes.set_ylabel("energy, typical (mJ per token)")


def _draw(axes: Axes, rows: Sequence[BatchRow], field: str) -> None:
    for (label, own), colour in zip(_curves(rows), COLOURS, strict=False):
        heights = [getattr(row, field) for row in own]
        axes.plot([row.batch for row in own], heights, "o-", color=colour, markersize=3, label=label)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([row.batch for row in rows]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("batch (sequences)")


FINDING = Finding(
    name="batch_reuse",
    known="units of PIM devices are made for GEMV and lack the multipliers to reuse weights over a batch",
    source="NeuPIMs (ASPLOS'24), abstract",
    measure=measure,
    summary=summary,
    panels=(draw_throughput, draw_energy),
)
