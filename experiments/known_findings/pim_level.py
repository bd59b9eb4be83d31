"""Units beside banks beat units at bank groups, which beat units on the buffer die: in time and energy, not in area."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, NullLocator

from autotune.figure_bars import COLOURS
from configs.device import load_device
from configs.structure import PimLevel
from experiments.known_findings.finding import Finding, ratio_text
from experiments.known_findings.measure import BOTH, fastest_point, without_link, workload_of_model

HARDWARE = ("attacc", "gddr6-aim")
MODEL, CONTEXT = "llama-2-7b", 2048  # one query head per KV head and 2048 tokens, as in the reference
LEVELS = tuple(PimLevel)
# ms of attention's matrix work per token of GPT-175B on eight GPUs with AttAcc, 2048 tokens, batch 1, power limit on
# (scale-snu/attacc_simulator, its README's three examples; g_matmul of the output).
REFERENCE_ATTENTION_MS = {PimLevel.BANK: 0.3668, PimLevel.BANK_GROUP: 1.1285, PimLevel.BUFFER_DIE: 4.1363}


@dataclass(frozen=True, slots=True)
class LevelRow:
    """One device with its units at one level; `attention` is the share of a step, also with a link of no time."""

    hardware: str
    pim_level: PimLevel
    devices: int
    column_cadence_cycles: int
    units_per_channel_at_once: int
    latency_ms_per_token: float
    energy_typical_mj_per_token: float
    area_mm2: float
    attention_ms_per_token: float
    attention_without_link_ms_per_token: float
    mapping: str


def measure(
    hardware: Sequence[str] = HARDWARE, mappings: Sequence[str] = BOTH, context: int = CONTEXT
) -> tuple[LevelRow, ...]:
    """Evaluate every level of every device."""
    return tuple(_measured(name, level, mappings, context) for name in hardware for level in LEVELS)


def _measured(hardware: str, level: PimLevel, mappings: Sequence[str], context: int) -> LevelRow:
    workload, base = workload_of_model(MODEL, 1, context), load_device(hardware)
    changed = {"pim_level": str(level)}
    point = fastest_point(workload, base, changed, mappings=mappings)
    bare = fastest_point(workload, without_link(base), changed, mappings=mappings)
    return LevelRow(
        hardware=hardware,
        pim_level=level,
        devices=point.devices,
        column_cadence_cycles=point.device.timing["nCCDMAC"],
        units_per_channel_at_once=point.device.organisation.banks,
        latency_ms_per_token=point.latency_ms,
        energy_typical_mj_per_token=point.energy_typical_mj,
        area_mm2=point.evaluation.area_mm2,
        attention_ms_per_token=point.milliseconds("attention"),
        attention_without_link_ms_per_token=bare.milliseconds("attention"),
        mapping=point.mapping,
    )


def summary(rows: Sequence[LevelRow]) -> str:
    """Give the ratios of each device over bank, group and die, and those of the reference."""
    parts = []
    for hardware in dict.fromkeys(row.hardware for row in rows):
        own = [row for row in rows if row.hardware == hardware]
        parts.append(
            f"{hardware}: latency {ratio_text([row.latency_ms_per_token for row in own])}, "
            f"energy {ratio_text([row.energy_typical_mj_per_token for row in own])}, "
            f"area {ratio_text([row.area_mm2 for row in own])}, "
            f"attention {ratio_text([row.attention_ms_per_token for row in own])} "
            f"({ratio_text([row.attention_without_link_ms_per_token for row in own])} without the link's time)"
        )
    reference = ratio_text(list(REFERENCE_ATTENTION_MS.values()))
    return f"bank : group : die - {'; '.join(parts)}; AttAcc's simulator, attention: {reference}"


def draw(axes: Axes, rows: Sequence[LevelRow]) -> None:
    """Draw what group and die take of what banks take."""
    quantities = {
        "latency": "latency_ms_per_token",
        "energy": "energy_typical_mj_per_token",
        "area": "area_mm2",
        "attention,\nno link": "attention_without_link_ms_per_token",
    }
    markers = dict(zip(HARDWARE, ("o", "s"), strict=True))
    for hardware in dict.fromkeys(row.hardware for row in rows):
        bank, *others = [row for row in rows if row.hardware == hardware]
        for colour, row in zip((COLOURS[1], COLOURS[5]), others, strict=True):
            heights = [getattr(row, field) / getattr(bank, field) for field in quantities.values()]
            shift = 0.13 if hardware == HARDWARE[1] else -0.13
            label = f"{hardware}, {row.pim_level}"
            axes.plot(
                [x + shift for x in range(4)], heights, markers[hardware], color=colour, markersize=4, label=label
            )
    reference = list(REFERENCE_ATTENTION_MS.values())
    known = [value / reference[0] for value in reference[1:]]
    axes.plot([3, 3], known, "_", color="black", markersize=14, label="AttAcc's simulator", zorder=1)
    axes.axhline(1, color="0.5", linewidth=0.6)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator([1, 2, 5, 10]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_major_locator(FixedLocator(list(range(4))))
    axes.xaxis.set_major_formatter(FixedFormatter(list(quantities)))
    axes.set_xlim(-0.5, 3.5)
    axes.set_ylim(0.7, 60)
    axes.set_title("5  where units sit")
    axes.set_ylabel("times that of units at banks")
    axes.legend(loc="upper left", labelspacing=0.2, borderpad=0.1, handletextpad=0.2)


FINDING = Finding(
    name="pim_level",
    known="units beside banks beat units at bank groups, which beat units on the buffer die",
    source="AttAcc (ASPLOS'24), its simulator run on GPT-175B",
    measure=measure,
    summary=summary,
    panels=(draw,),
)
