"""Energy from command counts, bytes moved and time: a closed form, computed and never learned.

Every figure is on one *basis*: datasheet (maximum currents) or typical (what average parts draw, with a band).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from configs.device import Basis, Case, Device, Energy
from simulator.addressing import addressing
from simulator.isa import ACTIVATES, EVENT_KINDS, KINDS, PRECHARGES, REFRESHES, Kind

# Which commands move data over the channel's data bus, and how many bytes of it (one of two sizes).
COLUMN_BURSTS = frozenset({Kind.RD, Kind.RDA, Kind.WR, Kind.WRA, Kind.WRGB})
REGISTER_BURSTS = frozenset({Kind.RDMAC16, Kind.RDAF16, Kind.WRMAC16, Kind.WRA16})
# Commands that address no column, buffer or accumulator: the controller's transmitter and receiver stay idle.
WITHOUT_COLUMN = ACTIVATES | PRECHARGES | REFRESHES | {Kind.ACT1, Kind.CAS_RD, Kind.CAS_WR, Kind.TMOD}
# How many rows refresh management restores has no source.
UNPRICED = frozenset({Kind.RFMab, Kind.RFMpb})
MS_PER_PS = 1e-9


@dataclass(frozen=True, slots=True)
class CommandEnergy:
    """pJ of one command of each kind, by where it is spent: float64[kinds] each, indexed like `isa.KINDS`.

    `row` is the cell array's activate and precharge, `column` its reads and writes with units and global buffer,
    `data_bus` the channel's pins, `controller` the transmitter and receiver of the controller, `phy` its pins' logic.
    """

    row: NDArray[np.float64]
    column: NDArray[np.float64]
    data_bus: NDArray[np.float64]
    controller: NDArray[np.float64]
    phy: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """The sum over places."""
        return self.row + self.column + self.data_bus + (self.phy + self.controller)


def command_energy(device: Device) -> CommandEnergy:
    """Return what each command costs on a device; raises ValueError where the device's energy is not modelled."""
    energy = required_energy(device)
    row, column, bus, controller, phy = (np.zeros(len(KINDS)) for _ in range(5))
    banks = device.organisation.banks
    for code, kind in enumerate(KINDS):
        if kind in EVENT_KINDS | UNPRICED:
            continue
        row[code] = _row_pj(kind, energy, device)
        column[code] = _column_pj(kind, energy, banks, _register_share(device))
        bus[code] = 8 * _bus_bytes(kind, device) * energy.data_bus_pj_per_bit
        controller[code] = 0.0 if kind in WITHOUT_COLUMN else energy.controller_column_pj
        phy[code] = energy.phy_command_pj
    return CommandEnergy(row, column, bus, controller, phy)


def required_energy(device: Device) -> Energy:
    """Return the energy section; raises ValueError where it is missing or the device has commands without a price."""
    if device.energy is None:
        raise ValueError(f"{device.name} has no energy section: its energy is not modelled")
    used = {name for row in device.constraints for name in (*row.preceding, *row.following)}
    unpriced = sorted(used & UNPRICED)
    if unpriced:
        raise ValueError(f"{device.name} issues {', '.join(unpriced)}, whose energy is not modelled")
    return device.energy


def energy_constants(device: Device, basis: Basis, case: Case = "nominal") -> Energy:
    """Return all constants on one basis; `case` is the end of the typical band and means nothing to the datasheet.

    A device whose own constants are typical has no datasheet ones: asking for them raises ValueError.
    """
    energy = required_energy(device)
    if energy.basis is basis:
        return energy
    if basis is Basis.DATASHEET:
        raise ValueError(f"{device.name} has typical constants only: datasheet figures are not modelled")
    row, column = energy.typical_row_factor.at(case), energy.typical_column_factor.at(case)
    standby = energy.typical_standby_factor.at(case)
    multiply = energy.mac_multiply_share
    mac = (1 - multiply) * column + multiply
    return energy.model_copy(
        update={
            "basis": Basis.TYPICAL,
            "activate_precharge_pj": energy.activate_precharge_pj * row,
            "column_read_pj": energy.column_read_pj * column,
            "column_write_pj": energy.column_write_pj * column,
            "all_bank_mac_pj": energy.all_bank_mac_pj * mac,
            "mac_multiply_share": multiply / mac,
            "standby_active_mw": energy.standby_active_mw * standby,
            "standby_precharged_mw": energy.standby_precharged_mw * standby,
        }
    )


def on_basis(device: Device, basis: Basis, case: Case = "nominal") -> Device:
    """Return the device with all its energy constants on one basis, like `energy_constants`."""
    return device.model_copy(update={"energy": energy_constants(device, basis, case)})


def refresh_command_pj(device: Device) -> float:
    """Return the row energy of one all-bank refresh: its share of all rows, each refreshed once per retention time."""
    energy = required_energy(device)
    commands = energy.retention_ms / (device.timing["nREFI"] * device.clock_ps * MS_PER_PS)
    rows = device.organisation.rows / commands
    return rows * device.organisation.banks * energy.activate_precharge_pj


def _row_pj(kind: Kind, energy: Energy, device: Device) -> float:
    """Return activate and precharge together, booked at the activate; refreshes restore their share of the rows."""
    banks = device.organisation.banks
    if kind in REFRESHES:
        refreshed = {Kind.REFab, Kind.REFpb}
        share = len(addressing(device).banks_of(kind, 0)) / banks if kind in refreshed else 0.0
        return share * refresh_command_pj(device) if device.refresh else 0.0
    rows_opened = {Kind.ACT: 1, Kind.ACT2: 1, Kind.ACT4: device.organisation.banks_per_group, Kind.ACT16: banks}
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
        Kind.SCALE16: mac * (1 - energy.mac_multiply_share),
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
