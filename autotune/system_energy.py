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
from simulator.energy import command_energy
from simulator.isa import CODE_OF, REFRESHES
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
    if device.refresh:
        lines["energy_refresh_pj"] = float(refresh_pj(table, latency)[0])
    lines["energy_standby_pj"] = float(standby[0])
    lines["energy_link_pj"] = float(link_pj(scenario, table, report.down_bytes + report.up_bytes)[0])
    if device.host is not None:
        lines[HOST_LINE] = report.host_busy_cycles * device.cycle_ps * device.host.power_w
    return lines


def total_pj(lines: Mapping[str, float]) -> float:
    """Return the memory side's energy: the sum of all lines but the host's."""
    return sum(value for name, value in lines.items() if name != HOST_LINE)


def refresh_pj(table: DeviceTable, latency_cycles: Any) -> Any:
    """Return the energy of every refresh that falls due in the step, on every channel, postponed or not."""
    commands = latency_cycles // np.maximum(table.refreshes_every, 1) * (table.refreshes_every > 0)
    return commands * table.pool.channels * table.refresh_pj


def standby_pj(scenario: Scenario, table: DeviceTable, latency_cycles: Any, active_channel_cycles: Any) -> Any:
    """Return the standby energy of all channels, idle ones included."""
    all_cycles = latency_cycles * table.pool.channels
    active = np.minimum(active_channel_cycles, all_cycles)
    milliwatt_cycles = table.standby_active_mw * active + table.standby_precharged_mw * (all_cycles - active)
    return milliwatt_cycles * scenario.base.cycle_ps * PJ_PER_MW_PS


def link_pj(scenario: Scenario, table: DeviceTable, moved_bytes_per_device: Any) -> Any:
    """Return the energy of the bytes that cross the links of all devices."""
    return moved_bytes_per_device * 8 * table.link_pj_per_bit * scenario.devices


def transfer_bytes(scenario: Scenario, table: DeviceTable, transfer_cycles: Any) -> Any:
    """Return the bytes that occupy one direction of a link for so many cycles."""
    return transfer_cycles * table.link_gb_per_s * scenario.base.nanoseconds(1)


def energy_of(scenario: Scenario) -> Energy:
    """Return the energy section of the base device, which a scenario is known to have."""
    energy = scenario.base.energy
    assert energy is not None
    return energy
