"""Energy and power of a whole system over one step: one closed form for screening (arrays) and the record (scalars).

Dynamic energy follows from command counts; refresh, standby and links from latency, busy time and bytes. A channel
stands by with open rows while its programs run and precharged otherwise.
"""

from typing import Any

import numpy as np

from autotune.scenario import Scenario
from compiler.device_table import DeviceTable
from configs.device import Energy
from simulator.isa import CODE_OF, Kind

PJ_PER_MW_PS = 1e-3


def refresh_pj(scenario: Scenario, table: DeviceTable, latency_cycles: Any) -> Any:
    """Return the energy of every refresh that falls due in the step, on every channel."""
    if not scenario.base.refresh:
        return np.zeros(np.shape(latency_cycles))
    refreshes = latency_cycles // table.timing["nREFI"]
    return refreshes * table.pool.channels * table.command_pj[..., CODE_OF[Kind.REFab]]


def standby_pj(scenario: Scenario, table: DeviceTable, latency_cycles: Any, active_channel_cycles: Any) -> Any:
    """Return the standby energy of all channels, idle ones included."""
    all_cycles = latency_cycles * table.pool.channels
    active = np.minimum(active_channel_cycles, all_cycles)
    milliwatt_cycles = table.standby_active_mw * active + table.standby_precharged_mw * (all_cycles - active)
    return milliwatt_cycles * scenario.base.clock_ps * PJ_PER_MW_PS


def link_pj(scenario: Scenario, moved_bytes_per_device: Any) -> Any:
    """Return the energy of the bytes that cross the links of all devices."""
    return moved_bytes_per_device * 8 * energy_of(scenario).link_pj_per_bit * scenario.devices


def transfer_bytes(scenario: Scenario, transfer_cycles: Any) -> Any:
    """Return the bytes that occupy one direction of a link for so many cycles."""
    return transfer_cycles * scenario.costs.link.bandwidth_gb_per_s * scenario.base.clock_ps / 1000


def energy_of(scenario: Scenario) -> Energy:
    """Return the energy section of the base device, which a scenario is known to have."""
    energy = scenario.base.energy
    assert energy is not None
    return energy
