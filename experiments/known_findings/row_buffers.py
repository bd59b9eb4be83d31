"""A second row buffer lets units multiply while the next row is opened: attention, linear operators and the step.

NeuPIMs' second row buffer serves a processor that reads and writes memory while units multiply. Here it serves the
units themselves: they multiply from it while the arrays open the next row. No host traffic runs beside them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from autotune.figure_bars import COLOURS
from configs.device import Device, load_device
from experiments.known_findings.finding import Finding
from experiments.known_findings.measure import BOTH, MODEL, Point, fastest_point, without_link, workload_of_model

HARDWARE = "gddr6-aim"
MULTI_HEAD = "llama-2-7b"  # one query head per KV head, like NeuPIMs' GPT-3
SCENARIOS = {MODEL: (1024, 2048, 4096, 8192, 16384, 32768), MULTI_HEAD: (1024, 2048, 4096)}


@dataclass(frozen=True, slots=True)
class RowBufferRow:
    """One context on the device with one or two row buffers; speed-ups are over one row buffer.

    `attention_cycles` and `linear_cycles` are shares of the step; those `without_link` are of a step whose transfers
    between host and device take no time.
    """

    model: str
    context_tokens: int
    row_buffers: int
    devices: int
    attention_cycles: int
    attention_without_link_cycles: int
    linear_cycles: int
    latency_ms_per_token: float
    area_mm2_per_device: float
    attention_speedup: float
    attention_without_link_speedup: float
    linear_speedup: float
    step_speedup: float
    mapping: str
    mapping_without_link: str


def measure(
    scenarios: dict[str, tuple[int, ...]] = SCENARIOS, mappings: Sequence[str] = BOTH
) -> tuple[RowBufferRow, ...]:
    """Evaluate all contexts of all models."""
    base = load_device(HARDWARE)
    cases = ((model, context) for model, contexts in scenarios.items() for context in contexts)
    return tuple(row for model, context in cases for row in _both(base, model, context, mappings))


def _both(base: Device, model: str, context: int, mappings: Sequence[str]) -> Iterator[RowBufferRow]:
    workload, unlinked = workload_of_model(model, 1, context), without_link(base)
    found: list[tuple[Point, Point]] = []
    for buffers in (1, 2):
        changed = {"row_buffers": buffers}
        point = fastest_point(workload, base, changed, mappings=mappings)
        bare = fastest_point(workload, unlinked, changed, mappings=mappings)
        found.append((point, bare))
        one, bare_one = found[0]
        yield RowBufferRow(
            model=model,
            context_tokens=context,
            row_buffers=buffers,
            devices=point.devices,
            attention_cycles=point.cycles("attention"),
            attention_without_link_cycles=bare.cycles("attention"),
            linear_cycles=point.cycles("linear"),
            latency_ms_per_token=point.latency_ms,
            area_mm2_per_device=point.evaluation.area_mm2 / point.devices,
            attention_speedup=one.cycles("attention") / point.cycles("attention"),
            attention_without_link_speedup=bare_one.cycles("attention") / bare.cycles("attention"),
            linear_speedup=one.cycles("linear") / point.cycles("linear"),
            step_speedup=one.latency_ms / point.latency_ms,
            mapping=point.mapping,
            mapping_without_link=bare.mapping,
        )


def summary(rows: Sequence[RowBufferRow]) -> str:
    """Give the ranges of the speed-ups and the price in area."""
    one, two = rows[0], [row for row in rows if row.row_buffers == 2]
    grouped = [row for row in two if row.model == MODEL]
    headed = [row for row in two if row.model == MULTI_HEAD]
    parts = [
        f"attention x {_range([row.attention_speedup for row in grouped])} "
        f"(x {_range([row.attention_without_link_speedup for row in grouped])} without the link's time)",
        f"linears x {_range([row.linear_speedup for row in grouped])}",
        f"step x {_range([row.step_speedup for row in grouped])}",
    ]
    if headed:
        parts.append(
            f"with one query head per KV head ({MULTI_HEAD}) attention "
            f"x {_range([row.attention_speedup for row in headed])} "
            f"(x {_range([row.attention_without_link_speedup for row in headed])} without the link's time)"
        )
    return f"{', '.join(parts)}; area + {100 * (two[0].area_mm2_per_device / one.area_mm2_per_device - 1):.1f} %"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low}-{high}"


def draw(axes: Axes, rows: Sequence[RowBufferRow]) -> None:
    """Draw the speed-ups over the context."""
    lines = (
        (MODEL, "linear_speedup", "linears", "o-", COLOURS[0]),
        (MODEL, "step_speedup", "whole step", "s-", "black"),
        (MODEL, "attention_without_link_speedup", "attention, no link", "^-", COLOURS[5]),
        (MODEL, "attention_speedup", "attention", "^--", COLOURS[1]),
        (MULTI_HEAD, "attention_without_link_speedup", "attention, no link, multi-head", "v:", COLOURS[2]),
        (MULTI_HEAD, "attention_speedup", "attention, multi-head", "v--", COLOURS[4]),
    )
    for model, field, label, style, colour in lines:
        two = [row for row in rows if row.row_buffers == 2 and row.model == model]
        heights = [getattr(row, field) for row in two]
        axes.plot([row.context_tokens for row in two], heights, style, color=colour, markersize=3, label=label)
    axes.axhline(1, color="0.5", linewidth=0.6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([row.context_tokens for row in rows if row.model == MODEL]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1024:g}k"))
    axes.set_ylim(0.9, 2.25)
    axes.set_title("2  two row buffers")
    axes.set_xlabel("context (tokens)")
    axes.set_ylabel("speed-up over one row buffer")
    axes.legend(loc="upper left", ncols=1, labelspacing=0.2, borderpad=0.1)


FINDING = Finding(
    name="row_buffers",
    known="dual row buffers let memory accesses and multiplies overlap, which helps attention on the units",
    source="NeuPIMs (ASPLOS'24), abstract",
    measure=measure,
    summary=summary,
    panels=(draw,),
)
