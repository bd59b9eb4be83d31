"""Energy from command counts, bytes moved and time: a closed form, computed and never learned."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.device import Device, Energy
from simulator.isa import ACTIVATES, KINDS, PRECHARGES, Kind

# Which commands move data over the channel's data bus, and how many bytes of it (one of two sizes).
COLUMN_BURSTS = frozenset({Kind.RD, Kind.RDA, Kind.WR, Kind.WRA, Kind.WRGB})
REGISTER_BURSTS = frozenset({Kind.RDMAC16, Kind.RDAF16, Kind.WRMAC16, Kind.WRA16})
MS_PER_CYCLE_PS = 1e-9


@dataclass(frozen=True, slots=True)
class CommandEnergy:
    """pJ of one command of each kind, by where it is spent: float64[kinds] each, indexed like `isa.KINDS`."""

    row: NDArray[np.float64]
    column: NDArray[np.float64]
    data_bus: NDArray[np.float64]
    controller: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """The sum over places."""
        return self.row + self.column + self.data_bus + self.controller


def command_energy(device: Device) -> CommandEnergy:
    """Return what each command costs on a device; raises ValueError where the device has no energy section."""
    energy = required_energy(device)
    row, column, bus, controller = (np.zeros(len(KINDS)) for _ in range(4))
    banks = device.organisation.banks
    for code, kind in enumerate(KINDS):
        row[code] = _row_pj(kind, energy, device)
        column[code] = _column_pj(kind, energy, banks, _register_share(device))
        bus[code] = 8 * _bus_bytes(kind, device) * energy.data_bus_pj_per_bit
        if kind in (Kind.SIGNAL, Kind.WAIT):
            continue
        is_column = kind not in ACTIVATES | PRECHARGES | {Kind.TMOD, Kind.REFab}
        controller[code] = energy.controller_command_pj + (energy.controller_column_pj if is_column else 0.0)
    return CommandEnergy(row, column, bus, controller)


def required_energy(device: Device) -> Energy:
    """Return the energy section; raises ValueError where it is missing."""
    if device.energy is None:
        raise ValueError(f"{device.name} has no energy section: its energy is not modelled")
    return device.energy


def refresh_command_pj(device: Device) -> float:
    """Return the row energy of one all-bank refresh: its share of all rows, each refreshed once per retention time."""
    energy = required_energy(device)
    commands = energy.retention_ms / (device.timing["nREFI"] * device.clock_ps * MS_PER_CYCLE_PS)
    rows = device.organisation.rows / commands
    return rows * device.organisation.banks * energy.activate_precharge_pj


def _row_pj(kind: Kind, energy: Energy, device: Device) -> float:
    """Return activate and precharge together, booked at the activate."""
    rows_opened = {Kind.ACT: 1, Kind.ACT4: device.organisation.banks_per_group, Kind.ACT16: device.organisation.banks}
    if kind is Kind.REFab and device.refresh:
        return refresh_command_pj(device)
    return rows_opened.get(kind, 0) * energy.activate_precharge_pj


def _register_share(device: Device) -> float:
    """Return the bytes of one accumulator of every bank as a share of one column access."""
    return device.organisation.banks * device.unit.value_bytes / device.organisation.column_bytes


def _column_pj(kind: Kind, energy: Energy, banks: int, registers: float) -> float:
    mac = energy.all_bank_mac_pj
    table = {
        Kind.RD: energy.column_read_pj,
        Kind.RDA: energy.column_read_pj,
        Kind.RDCP: energy.column_read_pj + energy.global_buffer_access_pj,
        Kind.WR: energy.column_write_pj,
        Kind.WRA: energy.column_write_pj,
        Kind.WRCP: energy.column_write_pj + energy.global_buffer_access_pj,
        Kind.WRA16: energy.column_write_pj * banks,
        Kind.MAC16: mac + energy.global_buffer_access_pj,
        Kind.MAC: mac / banks + energy.global_buffer_access_pj,
        Kind.EWMUL16: mac / 4,
        Kind.AF16: energy.column_read_pj * banks,
        Kind.WRGB: energy.global_buffer_access_pj,
        Kind.RDMAC16: energy.column_read_pj * registers,
        Kind.RDAF16: energy.column_read_pj * registers,
        Kind.WRMAC16: energy.column_write_pj * registers,
    }
    return table.get(kind, 0.0)


def _bus_bytes(kind: Kind, device: Device) -> int:
    if kind in COLUMN_BURSTS:
        return device.organisation.column_bytes
    if kind in REGISTER_BURSTS:
        return device.organisation.banks * device.unit.value_bytes
    return 0
