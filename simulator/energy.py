"""Energy from command counts, bytes moved and time: a closed form, computed and never learned.

Every figure is on one *basis*: datasheet (maximum currents) or typical (what average parts draw, with a band).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.device import Basis, Device, Energy
from configs.laws import Case
from simulator.addressing import addressing
from simulator.isa import ACTIVATES, EVENT_KINDS, KINDS, PRECHARGES, REFRESHES, Kind

# Which commands move data over the channel's data bus, and how many bytes of it (an input of the global buffer aside).
COLUMN_BURSTS = frozenset({Kind.RD, Kind.RDA, Kind.WR, Kind.WRA, Kind.WR8})
REGISTER_BURSTS = frozenset({Kind.RDMAC16, Kind.RDAF16, Kind.WRMAC16, Kind.WRA16})
# Commands that address no column, buffer or accumulator: the controller's transmitter and receiver stay idle.
WITHOUT_COLUMN = ACTIVATES | PRECHARGES | REFRESHES | {Kind.ACT1, Kind.CAS_RD, Kind.CAS_WR, Kind.LATCH16, Kind.TMOD}
# How many rows refresh management restores has no source.
UNPRICED = frozenset({Kind.RFMab, Kind.RFMpb})
MS_PER_PS = 1e-9


@dataclass(frozen=True, slots=True)
class CommandEnergy:
    """pJ of one command of each kind, by where it is spent: float64[..., kinds] each, indexed like `isa.KINDS`.

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


@dataclass(frozen=True, slots=True)
class Priced:
    """What prices follow from: an energy section by name, and sizes; of one device, or arrays with an entry each."""

    energy: Mapping[str, Any]
    banks: Any
    banks_per_group: Any
    rows: Any
    column_bytes: Any
    input_bytes: Any
    value_bytes: int
    refreshes_per_retention: float
    refreshed_banks: Mapping[Kind, Any]


def command_energy(device: Device) -> CommandEnergy:
    """Return what each command costs on a device; raises ValueError where the device's energy is not modelled."""
    energy, organisation = required_energy(device), device.organisation
    refreshes = (Kind.REFab, Kind.REFpb) if device.refresh else ()
    return prices(
        Priced(
            energy=energy.model_dump(),
            banks=organisation.banks,
            banks_per_group=organisation.banks_per_group,
            rows=organisation.rows,
            column_bytes=organisation.column_bytes,
            input_bytes=device.unit.lanes * device.unit.value_bytes,
            value_bytes=device.unit.value_bytes,
            refreshes_per_retention=refreshes_per_retention(device),
            refreshed_banks={kind: len(addressing(device).banks_of(kind, 0)) for kind in refreshes},
        )
    )


def prices(of: Priced) -> CommandEnergy:
    """Return what each command costs: float64[kinds], or float64[n, kinds] for arrays."""
    row, column, bus, controller, phy = ([0.0] * len(KINDS) for _ in range(5))
    columns, energy = _column_prices(of), of.energy
    for code, kind in enumerate(KINDS):
        if kind in EVENT_KINDS | UNPRICED:
            continue
        row[code] = _row_pj(kind, of)
        column[code] = columns.get(kind, 0.0)
        bus[code] = 8 * _bus_bytes(kind, of) * energy["data_bus_pj_per_bit"]
        controller[code] = 0.0 if kind in WITHOUT_COLUMN else energy["controller_column_pj"]
        phy[code] = energy["phy_command_pj"]
    return CommandEnergy(*(_by_kind(values) for values in (row, column, bus, controller, phy)))


def _by_kind(values: list[Any]) -> NDArray[np.float64]:
    return np.stack([np.asarray(value, dtype=np.float64) for value in np.broadcast_arrays(*values)], axis=-1)


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
            "row_move_pj": energy.row_move_pj * column,
            "all_bank_mac_pj": energy.all_bank_mac_pj * mac,
            "mac_multiply_share": multiply / mac,
            "standby_active_mw": energy.standby_active_mw * standby,
            "standby_precharged_mw": energy.standby_precharged_mw * standby,
        }
    )


def on_basis(device: Device, basis: Basis, case: Case = "nominal") -> Device:
    """Return the device with all its energy constants on one basis, like `energy_constants`."""
    return device.model_copy(update={"energy": energy_constants(device, basis, case)})


def refreshes_per_retention(device: Device) -> float:
    """Return the all-bank refreshes of the base interval in one retention time; 1 for a device without refresh."""
    interval = device.timing.get("nREFI", 0)
    return required_energy(device).retention_ms / (interval * device.clock_ps * MS_PER_PS) if interval else 1.0


def _row_pj(kind: Kind, of: Priced) -> Any:
    """Return activate and precharge together, booked at the activate; refreshes restore their share of the rows."""
    one = of.energy["activate_precharge_pj"]
    if kind in REFRESHES:
        return of.refreshed_banks.get(kind, 0) * of.rows / of.refreshes_per_retention * one
    half = of.banks / 2  # the even banks, or the odd ones
    rows_opened = {Kind.ACT: 1, Kind.ACT2: 1, Kind.ACT4: of.banks_per_group, Kind.ACT16: of.banks, Kind.ACT8: half}
    return rows_opened.get(kind, 0) * one


def _column_prices(of: Priced) -> dict[Kind, Any]:
    energy = of.energy
    mac, buffer = energy["all_bank_mac_pj"], energy["global_buffer_access_pj"]
    read, write = energy["column_read_pj"], energy["column_write_pj"]
    registers = of.banks * of.value_bytes / of.column_bytes
    column = mac * (1 - energy["mac_multiply_share"])
    return {
        Kind.RD: read,
        Kind.RDA: read,
        Kind.RDCP: read + buffer,
        Kind.WR: write,
        Kind.WRA: write,
        Kind.WRCP: write + buffer,
        Kind.WRA16: write * of.banks,
        Kind.MAC16: mac + buffer,
        Kind.SCALE16: column,
        Kind.LATCH16: energy["row_move_pj"] * of.banks,
        Kind.MACL16: mac + buffer,
        Kind.MAC: mac / of.banks + buffer,
        Kind.EWMUL16: mac / 4,
        Kind.AF16: read * of.banks,
        Kind.WRGB: buffer,
        Kind.RDMAC16: read * registers,
        Kind.RDAF16: read * registers,
        Kind.WRMAC16: write * registers,
        Kind.RD8: mac,
        Kind.WR8: buffer,
        Kind.ST8: write * of.banks / 2,
    }


def _bus_bytes(kind: Kind, of: Priced) -> Any:
    if kind is Kind.WRGB:
        return of.input_bytes
    if kind in COLUMN_BURSTS:
        return of.column_bytes
    return of.banks * of.value_bytes if kind in REGISTER_BURSTS else 0
