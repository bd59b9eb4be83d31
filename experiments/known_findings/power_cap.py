"""A power cap slows all-bank multiplies: AttAcc's column cadence is 4 cycles without its constraint, 6 with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from autotune.figure_bars import COLOURS
from configs.device import load_device
from experiments.known_findings.finding import Finding
from experiments.known_findings.measure import BOTH, MODEL, fastest_point, workload_of_model
from simulator.power import W_PER_PJ_PER_NS

HARDWARE, CONTEXT = "attacc", 1024
CAPS_PERCENT = (25, 50, 75, 100, 125, 150, 175, 200)
# scale-snu/attacc_simulator, pim_ramulator_src/HBM3-PIM.cpp, presets HBM3_5.2Gbps and HBM3_5.2Gbps_NPC: nCCDAB.
KNOWN_CAPPED, KNOWN_FREE = 6, 4


@dataclass(frozen=True, slots=True)
class PowerCapRow:
    """The device under one cap."""

    mac_power_cap_percent: int
    mac_power_cap_w_per_channel: float
    column_cadence_cycles: int
    multiply_power_w_per_channel: float
    latency_ms_per_token: float
    energy_mj_per_token: float
    power_average_w: float
    mapping: str


def measure(
    caps_percent: Sequence[int] = CAPS_PERCENT,
    mappings: Sequence[str] = BOTH,
    model: str = MODEL,
    context: int = CONTEXT,
) -> tuple[PowerCapRow, ...]:
    """Evaluate the device under each cap; energy and power on the constants' own basis, typical."""
    workload, base = workload_of_model(model, 1, context), load_device(HARDWARE)
    assert base.power is not None
    rows = []
    for percent in caps_percent:
        point = fastest_point(workload, base, {"mac_power_cap_percent": percent}, mappings=mappings)
        device, cadence = point.device, point.device.timing["nCCDMAC"]
        assert device.energy is not None
        multiply_w = device.energy.all_bank_mac_pj / device.nanoseconds(cadence) * W_PER_PJ_PER_NS
        rows.append(
            PowerCapRow(
                mac_power_cap_percent=percent,
                mac_power_cap_w_per_channel=base.power.mac_cap_w_per_channel * percent / 100,
                column_cadence_cycles=cadence,
                multiply_power_w_per_channel=multiply_w,
                latency_ms_per_token=point.latency_ms,
                energy_mj_per_token=point.energy_typical_mj,
                power_average_w=point.detail("power_average_w"),
                mapping=point.mapping,
            )
        )
    return tuple(rows)


def summary(rows: Sequence[PowerCapRow]) -> str:
    """Compare the base cap with the largest."""
    capped = next(row for row in rows if row.mac_power_cap_percent == 100)
    free = max(rows, key=lambda row: row.mac_power_cap_percent)
    return (
        f"cadence {free.column_cadence_cycles} cycles without the cap, {capped.column_cadence_cycles} with it; "
        f"{free.latency_ms_per_token:.3f} to {capped.latency_ms_per_token:.3f} ms per token "
        f"(x {capped.latency_ms_per_token / free.latency_ms_per_token:.2f}), "
        f"{free.power_average_w:.1f} to {capped.power_average_w:.1f} W on average, "
        f"{free.multiply_power_w_per_channel:.2f} to {capped.multiply_power_w_per_channel:.2f} W of multiplies "
        "per channel"
    )


def draw(axes: Axes, rows: Sequence[PowerCapRow]) -> None:
    """Draw latency and average power over the cap, the cadence beside each point."""
    percent = [row.mac_power_cap_percent for row in rows]
    axes.plot(percent, [row.latency_ms_per_token for row in rows], "o-", color=COLOURS[0], markersize=3)
    for row in rows:
        known = row.mac_power_cap_percent == 100 or row is rows[-1]
        axes.annotate(
            str(row.column_cadence_cycles),
            (row.mac_power_cap_percent, row.latency_ms_per_token),
            xytext=(-2, 5),
            textcoords="offset points",
            fontsize=6,
            fontweight="bold" if known else "normal",
        )
    axes.set_title("1  power cap; cadence in cycles")
    axes.set_xlabel("cap on multiply power (% of AttAcc's)")
    axes.set_ylabel("latency (ms per token)", color=COLOURS[0])
    axes.set_ylim(0, 12)
    axes.set_xlim(10, 215)
    power = axes.twinx()
    power.plot(percent, [row.power_average_w for row in rows], "s--", color=COLOURS[5], markersize=2.5)
    power.set_ylabel("average power (W)", color=COLOURS[5])
    power.set_ylim(bottom=0)
    power.grid(visible=False)
    power.spines["right"].set_visible(True)


FINDING = Finding(
    name="power_cap",
    known=f"HBM3-PIM's all-bank column cadence is {KNOWN_FREE} cycles, {KNOWN_CAPPED} under the power constraint",
    source="AttAcc (ASPLOS'24), its simulator's HBM3_5.2Gbps presets",
    measure=measure,
    summary=summary,
    panels=(draw,),
)
