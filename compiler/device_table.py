"""Candidate devices as arrays, so that closed forms run over many designs at once: one row per device."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from compiler.schedule import PoolShape, pool_shape
from configs.device import Device
from configs.refresh import RefreshPolicy
from simulator.energy import command_energy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
# Entries of `DeviceTable.timing` beside the device's own names.
REFRESH_INTERVAL, REFRESH_STOP = "refresh interval", "refresh stop"


@dataclass(frozen=True, slots=True)
class DeviceTable:
    """`pool` and `timing` hold int64[n]; `command_pj` is float64[n, kinds]; standby in mW per channel, float64[n]."""

    pool: PoolShape
    timing: dict[str, Ints]
    command_pj: Floats
    standby_active_mw: Floats
    standby_precharged_mw: Floats

    def take(self, index: Ints) -> "DeviceTable":
        """Return the rows of these devices, one per design."""
        return DeviceTable(
            pool=PoolShape(*(getattr(self.pool, item.name)[index] for item in fields(PoolShape))),
            timing={name: values[index] for name, values in self.timing.items()},
            command_pj=self.command_pj[index],
            standby_active_mw=self.standby_active_mw[index],
            standby_precharged_mw=self.standby_precharged_mw[index],
        )


def device_table(devices: Sequence[Device], devices_per_system: int) -> DeviceTable:
    """Tabulate devices of one family (equal timing names); each row is a system of `devices_per_system` of them."""
    pools = [pool_shape(device, devices_per_system) for device in devices]
    energies = [device.energy for device in devices]
    return DeviceTable(
        pool=PoolShape(*(_ints(getattr(pool, item.name) for pool in pools) for item in fields(PoolShape))),
        timing={name: _ints(device.timing[name] for device in devices) for name in devices[0].timing}
        | {
            REFRESH_INTERVAL: _ints(_refresh_stop(device)[0] for device in devices),
            REFRESH_STOP: _ints(_refresh_stop(device)[1] for device in devices),
        },
        command_pj=np.array([command_energy(device).total for device in devices]),
        standby_active_mw=np.array([energy.standby_active_mw if energy else np.nan for energy in energies]),
        standby_precharged_mw=np.array([energy.standby_precharged_mw if energy else np.nan for energy in energies]),
    )


def _refresh_stop(device: Device) -> tuple[int, int]:
    """Return the interval at which refresh surely stops a whole channel, and for how many cycles: 0 if it may not.

    Single banks are refreshed while others work.
    """
    refresh, timing = device.refresh, device.timing
    if refresh.policy is not RefreshPolicy.ALL_BANK:
        return 1, 0
    burst = refresh.postponed + 1
    return device.refresh_interval_cycles * burst, timing["nRFC"] * device.ticks_per_clock * burst


def _ints(values: object) -> Ints:
    return np.array(list(values), dtype=np.int64)  # type: ignore[call-overload]
