"""Candidate devices as arrays, so that closed forms run over many designs at once: one row per device."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.schedule import PoolShape, pool_shape
from configs.device import Device
from configs.refresh import RefreshPolicy
from simulator.energy import Priced, command_energy, prices, refreshes_per_retention, required_energy
from simulator.isa import CODE_OF, Kind
from simulator.laws.figures import DeviceFigures

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
# Entries of `DeviceTable.timing` beside the device's own names.
REFRESH_INTERVAL, REFRESH_STOP = "refresh interval", "refresh stop"


@dataclass(frozen=True, slots=True)
class DeviceTable:
    """`pool` and `timing` hold int64[n]; `command_pj` is float64[n, kinds]; standby in mW per channel, float64[n].

    `refreshes_every` cycles a channel issues one refresh command, which takes `refresh_pj` of row energy; 0 stands for
    none. Link and dispatcher are those of one device.
    """

    pool: PoolShape
    timing: dict[str, Ints]
    command_pj: Floats
    standby_active_mw: Floats
    standby_precharged_mw: Floats
    refreshes_every: Ints
    refresh_pj: Floats
    link_gb_per_s: Floats
    link_latency_ns: Floats
    link_pj_per_bit: Floats
    instructions_per_cycle: Floats
    sequencer_loop_depth: Ints

    def take(self, index: Ints) -> "DeviceTable":
        """Return the rows of these devices, one per design."""
        return DeviceTable(
            pool=PoolShape(*(getattr(self.pool, item.name)[index] for item in fields(PoolShape))),
            timing={name: values[index] for name, values in self.timing.items()},
            **{name: getattr(self, name)[index] for name in COLUMNS},
        )


COLUMNS = tuple(item.name for item in fields(DeviceTable) if item.name not in ("pool", "timing"))


def device_table(devices: Sequence[Device], devices_per_system: int) -> DeviceTable:
    """Tabulate devices of one family (equal timing names); each row is a system of `devices_per_system` of them."""
    pools = [pool_shape(device, devices_per_system) for device in devices]
    rows = [_row_of(device) for device in devices]
    return DeviceTable(
        pool=PoolShape(*(_ints(getattr(pool, item.name) for pool in pools) for item in fields(PoolShape))),
        timing={name: _ints(device.timing[name] for device in devices) for name in devices[0].timing}
        | {
            REFRESH_INTERVAL: _ints(_refresh_stop(device)[0] for device in devices),
            REFRESH_STOP: _ints(_refresh_stop(device)[1] for device in devices),
        },
        **{name: np.array([row[name] for row in rows]) for name in rows[0]},
    )


def _row_of(device: Device) -> dict[str, Any]:
    energy, link, dispatcher = device.energy, device.link, device.dispatcher
    policy = device.refresh.policy
    banks = device.organisation.banks if policy is RefreshPolicy.PER_BANK else 1
    kind = Kind.REFpb if policy is RefreshPolicy.PER_BANK else Kind.REFab
    prices_pj = command_energy(device).total
    return {
        "command_pj": prices_pj,
        "standby_active_mw": energy.standby_active_mw if energy else np.nan,
        "standby_precharged_mw": energy.standby_precharged_mw if energy else np.nan,
        "refreshes_every": device.refresh_interval_cycles // banks if device.refresh else 0,
        "refresh_pj": prices_pj[CODE_OF[kind]] if device.refresh else 0.0,
        "link_gb_per_s": link.bandwidth_gb_per_s if link else np.nan,
        "link_latency_ns": link.latency_ns if link else np.nan,
        "link_pj_per_bit": energy.link_pj_per_bit if energy else np.nan,
        "instructions_per_cycle": dispatcher.instructions_per_cycle if dispatcher else np.inf,
        "sequencer_loop_depth": dispatcher.sequencer_loop_depth if dispatcher else 0,
    }


def scaled_table(base: Device, figures: DeviceFigures, count: int, devices_per_system: int) -> DeviceTable:
    """Tabulate `count` devices that knobs make of a base device."""
    policy = np.asarray(figures.refresh_policy)
    all_bank, per_bank = policy == str(RefreshPolicy.ALL_BANK), policy == str(RefreshPolicy.PER_BANK)
    interval, banks = figures.refresh_interval_cycles, figures.organisation.banks
    pj = _scaled_prices(base, figures, np.where(all_bank, banks, 0), np.where(per_bank, 1, 0))
    burst = base.refresh.postponed + 1
    stop = figures.timing["nRFC"] * base.ticks_per_clock * burst
    every = np.where(all_bank, interval, np.where(per_bank, interval // banks, 0))
    refresh_pj = np.where(per_bank, pj[..., CODE_OF[Kind.REFpb]], pj[..., CODE_OF[Kind.REFab]])

    def column(value: Any, kind: type) -> Any:
        return np.broadcast_to(np.asarray(value, dtype=kind), (count,))

    pool = pool_shape(figures, devices_per_system)
    timing = dict(figures.timing) | {
        REFRESH_INTERVAL: np.where(all_bank, interval * burst, 1),
        REFRESH_STOP: np.where(all_bank, stop, 0),
    }
    return DeviceTable(
        pool=PoolShape(*(column(getattr(pool, item.name), np.int64) for item in fields(PoolShape))),
        timing={name: column(values, np.int64) for name, values in timing.items()},
        command_pj=np.broadcast_to(pj, (count, pj.shape[-1])),
        standby_active_mw=column(figures.energy["standby_active_mw"], np.float64),
        standby_precharged_mw=column(figures.energy["standby_precharged_mw"], np.float64),
        refreshes_every=column(every, np.int64),
        refresh_pj=column(refresh_pj, np.float64),
        link_gb_per_s=column(figures.link["bandwidth_gb_per_s"], np.float64),
        link_latency_ns=column(figures.link["latency_ns"], np.float64),
        link_pj_per_bit=column(figures.energy["link_pj_per_bit"], np.float64),
        instructions_per_cycle=column(figures.dispatcher["instructions_per_cycle"], np.float64),
        sequencer_loop_depth=column(figures.dispatcher["sequencer_loop_depth"], np.int64),
    )


def _scaled_prices(base: Device, figures: DeviceFigures, by_all: Any, by_one: Any) -> Floats:
    """Return pJ per command: float64[n, kinds]; so many banks are restored by one refresh of all, and of one."""
    constants = required_energy(base).model_dump() | dict(figures.energy)
    return prices(
        Priced(
            energy=constants,
            banks=figures.organisation.banks,
            banks_per_group=figures.organisation.banks_per_group,
            rows=figures.organisation.rows,
            column_bytes=figures.organisation.column_bytes,
            input_bytes=figures.unit.lanes * figures.unit.value_bytes,
            value_bytes=figures.unit.value_bytes,
            refreshes_per_retention=refreshes_per_retention(base),
            refreshed_banks={Kind.REFab: by_all, Kind.REFpb: by_one},
        )
    ).total


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
