"""Energy of a whole system over one step: one closed form for screening (arrays) and the record (scalars).

Dynamic energy follows from command counts; refresh, standby and links from latency, busy time and bytes. A channel
stands by with open rows while its programs run and precharged otherwise. All constants of a figure are those of its
device table, on one basis.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from autotune.scenario import Scenario
from compiler.device_table import DeviceTable
from configs.device import Device, Energy
from configs.refresh import RefreshPolicy
from simulator.energy import command_energy
from simulator.isa import CODE_OF, REFRESHES, Kind
from simulator.timeline import StepReport

PJ_PER_MW_PS = 1e-3
HOST_LINE = "energy_host_pj"


def energy_lines(scenario: Scenario, device: Device, table: DeviceTable, report: StepReport) -> dict[str, float]:
    """Return pJ of one step by place, without a line for what the device does not have; HOST_LINE is in no total.

    `table` holds the one device; its constants and the device's are on the basis that the lines shall be on.
    """
    per_command = command_energy(device)
    counts = report.counts.copy()
    # Refreshes are counted from the latency, on idle channels too.
    counts[[CODE_OF[kind] for kind in REFRESHES]] = 0
    latency = np.array([report.latency_cycles])
    standby = standby_pj(scenario, table, latency, np.array([report.channel_busy_cycles]))
    lines = {
        "energy_rows_pj": float(counts @ per_command.row),
        "energy_columns_pj": float(counts @ per_command.column),
        "energy_data_bus_pj": float(counts @ per_command.data_bus),
        "energy_controller_pj": float(counts @ per_command.controller),
        "energy_phy_pj": float(counts @ per_command.phy),
    }
    if scenario.base.refresh:
        lines["energy_refresh_pj"] = float(refresh_pj(scenario, table, latency)[0])
    lines["energy_standby_pj"] = float(standby[0])
    lines["energy_link_pj"] = float(link_pj(scenario, report.down_bytes + report.up_bytes))
    if device.host is not None:
        lines[HOST_LINE] = report.host_busy_cycles * device.cycle_ps * device.host.power_w
    return lines


def total_pj(lines: Mapping[str, float]) -> float:
    """Return the memory side's energy: the sum of all lines but the host's."""
    return sum(value for name, value in lines.items() if name != HOST_LINE)


def refresh_pj(scenario: Scenario, table: DeviceTable, latency_cycles: Any) -> Any:
    """Return the energy of every refresh that falls due in the step, on every channel, postponed or not."""
    refresh = scenario.base.refresh
    if not refresh:
        return np.zeros(np.shape(latency_cycles))
    per_bank = refresh.policy is RefreshPolicy.PER_BANK
    interval = table.timing["nREFI"] * scenario.base.ticks_per_clock // (2 if refresh.hot else 1)
    if per_bank:
        interval = interval // table.pool.banks
    kind = Kind.REFpb if per_bank else Kind.REFab
    return latency_cycles // interval * table.pool.channels * table.command_pj[..., CODE_OF[kind]]


def standby_pj(scenario: Scenario, table: DeviceTable, latency_cycles: Any, active_channel_cycles: Any) -> Any:
    """Return the standby energy of all channels, idle ones included."""
    all_cycles = latency_cycles * table.pool.channels
    active = np.minimum(active_channel_cycles, all_cycles)
    milliwatt_cycles = table.standby_active_mw * active + table.standby_precharged_mw * (all_cycles - active)
    return milliwatt_cycles * scenario.base.cycle_ps * PJ_PER_MW_PS


def link_pj(scenario: Scenario, moved_bytes_per_device: Any) -> Any:
    """Return the energy of the bytes that cross the links of all devices."""
    return moved_bytes_per_device * 8 * energy_of(scenario).link_pj_per_bit * scenario.devices


def transfer_bytes(scenario: Scenario, transfer_cycles: Any) -> Any:
    """Return the bytes that occupy one direction of a link for so many cycles."""
    return transfer_cycles * scenario.costs.link.bandwidth_gb_per_s * scenario.base.nanoseconds(1)


def energy_of(scenario: Scenario) -> Energy:
    """Return the energy section of the base device, which a scenario is known to have."""
    energy = scenario.base.energy
    assert energy is not None
    return energy
