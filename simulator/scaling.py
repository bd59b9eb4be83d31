"""Scaling laws: the device that hardware knobs make of a base device, at fixed capacity.

Slopes come from CACTI-3DD sweeps (8 Gb, 32 nm) where its slopes may be trusted, absolutes from the base device's own
constants, so that a base device at its own knob values comes out unchanged. Signs: a larger row costs activation
energy, tRCD and (through the charge per activate) activation spacing; more banks shorten wires slightly and add
periphery and units; wider units need wider column accesses and longer bursts.
"""

from collections.abc import Mapping
from math import ceil, log2

import numpy as np

from configs.device import Device, Energy
from configs.errors import UserError
from configs.knobs import HardwareKnobs, base_knobs, knob_values
from configs.refresh import RefreshPolicy

# CACTI-3DD, page sweep at 16 banks: tRCD in ns and total area in mm² by row bytes.
PAGE_RCD_NS = {1024: 15.163, 2048: 16.899, 4096: 22.454, 8192: 36.843}
PAGE_AREA_MM2 = {1024: 91.851, 2048: 90.694, 4096: 90.348, 8192: 90.630}
# CACTI-3DD, bank sweep at 2 KB rows: tRCD in ns, activate plus precharge in nJ, column read in nJ by banks.
BANK_RCD_NS = {4: 17.857, 8: 17.387, 16: 16.899, 32: 16.642, 64: 16.406}
BANK_ACTIVATE_NJ = {4: 2.1088, 8: 2.0562, 16: 2.0087, 32: 1.9850, 64: 1.9661}
BANK_READ_NJ = {4: 1.5810, 8: 1.2482, 16: 0.9777, 32: 0.8120, 64: 0.6848}
# CACTI-3DD, rows of 1 KB and more: activate plus precharge = 0.135 + 0.951 x KB nJ (R² 0.9998).
PAGE_ENERGY_FIXED_NJ, PAGE_ENERGY_PER_KIB_NJ = 0.135, 0.951
# DDR4-3200: tFAW 21 ns with 1 KB rows, 30 ns with 2 KB rows; the spacing of activates follows the charge moved.
ACTIVATE_SPACING_EXPONENT = log2(30 / 21)
# JEDEC DDR4: tRFC 260 ns at 4 Gb, 350 ns at 8 Gb, 550 ns at 16 Gb behind one refresh command.
REFRESH_DENSITY_EXPONENT = log2(550 / 260) / 2
SMALLEST_ROW_BYTES, LARGEST_ROW_BYTES = 1024, 8192
RCD_NAMES = ("nRCDRD", "nRCDRDMAC", "nRCDRDAF", "nRCDRDCP", "nRCDEWMUL", "nRCDWR", "nRCDWRCP")


def scaled_device(base: Device, knobs: HardwareKnobs) -> Device:
    """Return the base device with these knob values; raises UserError, with amounts, for an impossible device."""
    if knobs == base_knobs(base):
        return base
    if base.energy is None or base.power is None:
        raise UserError(
            where=f"--hardware {base.name}",
            expected="a device with energy and power sections, which scaling laws need",
            found="a device without them",
            way_out="use gddr6-aim, or fix all hardware knobs to the device's own values",
        )
    for reason in impossibilities(base, knobs):
        raise UserError(
            where="hardware knobs", expected="a device that can be built", found=reason, way_out="change it"
        )
    energy = _energy(base, base.energy, knobs)
    organisation = base.organisation.model_copy(
        update={
            "channels": knobs.channels,
            "bank_groups": knobs.banks_per_channel // base.organisation.banks_per_group,
            "row_bytes": knobs.row_bytes,
            "column_bytes": knobs.lanes * base.unit.value_bytes,
            "rows": rows_per_bank(base, knobs),
        }
    )
    unit = base.unit.model_copy(update={"lanes": knobs.lanes, "global_buffer_bytes": knobs.global_buffer_bytes})
    return base.model_copy(
        update={
            "name": f"{base.name}@" + "-".join(str(value) for _, value in knob_values(knobs)),
            "organisation": organisation,
            "processing_unit": unit,
            "timing": _timing(base, energy, knobs),
            "energy": energy,
        }
    )


def impossibilities(base: Device, knobs: HardwareKnobs) -> tuple[str, ...]:
    """Return why a device cannot be built or is outside the laws' range, with amounts."""
    reasons = []
    column_bytes = knobs.lanes * base.unit.value_bytes
    bank_bytes = base.organisation.capacity_bytes / (knobs.channels * knobs.banks_per_channel)
    if knobs.banks_per_channel % base.organisation.banks_per_group:
        reasons.append(f"{knobs.banks_per_channel} banks are not whole groups of {base.organisation.banks_per_group}")
    if not SMALLEST_ROW_BYTES <= knobs.row_bytes <= LARGEST_ROW_BYTES:
        reasons.append(
            f"rows of {knobs.row_bytes} B lie outside the sweep of {SMALLEST_ROW_BYTES}-{LARGEST_ROW_BYTES} B"
        )
    if knobs.row_bytes % column_bytes or knobs.row_bytes < column_bytes:
        reasons.append(f"a row of {knobs.row_bytes} B does not hold whole columns of {column_bytes} B")
    if knobs.global_buffer_bytes % column_bytes or knobs.global_buffer_bytes < column_bytes:
        reasons.append(
            f"a global buffer of {knobs.global_buffer_bytes} B does not hold whole columns of {column_bytes} B"
        )
    if bank_bytes % knobs.row_bytes or bank_bytes < knobs.row_bytes:
        reasons.append(f"banks of {bank_bytes:.0f} B do not hold whole rows of {knobs.row_bytes} B")
    return (*reasons, *_refresh_reasons(base, knobs))


def _refresh_reasons(base: Device, knobs: HardwareKnobs) -> tuple[str, ...]:
    """Return why commands for all banks find no room between the refreshes of single banks."""
    if base.refresh.policy is not RefreshPolicy.PER_BANK:
        return ()
    if base.energy is None:
        return ()
    timing = _timing(base, _energy(base, base.energy, knobs), knobs)
    interval = base.refresh_interval_cycles // knobs.banks_per_channel
    names = ("nRTP", "nRP", "nRFCpb", "nRCDRDMAC", "nCCDMAC")
    needed = sum(timing[name] for name in names)
    if interval > needed:
        return ()
    return (
        f"{knobs.banks_per_channel} banks refreshed one by one leave {interval} cycles between refreshes; to multiply "
        f"on all banks takes more than {' + '.join(names)} = {needed}",
    )


def rows_per_bank(base: Device, knobs: HardwareKnobs) -> int:
    """Return the rows of a bank that keep the base device's capacity."""
    return base.organisation.capacity_bytes // (knobs.channels * knobs.banks_per_channel * knobs.row_bytes)


def interpolate(table: Mapping[int, float], value: float) -> float:
    """Return a table's value, linear between the sweep's points on a logarithmic axis and flat beyond its ends."""
    return float(np.interp(log2(value), [log2(key) for key in table], list(table.values())))


def _ratio(table: Mapping[int, float], value: float, base_value: float) -> float:
    return interpolate(table, value) / interpolate(table, base_value)


def _bank_ratio(table: Mapping[int, float], base: Device, knobs: HardwareKnobs) -> float:
    """Return how a table over banks of fixed capacity changes with the banks of the whole device."""
    own = base_knobs(base)
    banks = knobs.banks_per_channel * knobs.channels / own.channels
    return _ratio(table, banks, own.banks_per_channel)


def _page_energy(row_bytes: int) -> float:
    return PAGE_ENERGY_FIXED_NJ + PAGE_ENERGY_PER_KIB_NJ * row_bytes / 1024


def _energy(base: Device, energy: Energy, knobs: HardwareKnobs) -> Energy:
    own = base_knobs(base)
    activate = _page_energy(knobs.row_bytes) / _page_energy(own.row_bytes)
    activate *= _bank_ratio(BANK_ACTIVATE_NJ, base, knobs)
    column = knobs.lanes / own.lanes * _bank_ratio(BANK_READ_NJ, base, knobs)
    units = knobs.banks_per_channel / own.banks_per_channel
    multiply = energy.mac_multiply_share
    logic = multiply * knobs.lanes / own.lanes
    mac = units * ((1 - multiply) * column + logic)
    array = energy.standby_array_share * own.channels / knobs.channels + 1 - energy.standby_array_share
    return energy.model_copy(
        update={
            "activate_precharge_pj": energy.activate_precharge_pj * activate,
            "column_read_pj": energy.column_read_pj * column,
            "column_write_pj": energy.column_write_pj * column,
            "all_bank_mac_pj": energy.all_bank_mac_pj * mac,
            "mac_multiply_share": units * logic / mac,
            "global_buffer_access_pj": energy.global_buffer_access_pj * knobs.lanes / own.lanes,
            "standby_active_mw": energy.standby_active_mw * array,
            "standby_precharged_mw": energy.standby_precharged_mw * array,
        }
    )


def _timing(base: Device, energy: Energy, knobs: HardwareKnobs) -> dict[str, int]:
    own = base_knobs(base)
    timing = dict(base.timing)
    rcd = _ratio(PAGE_RCD_NS, knobs.row_bytes, own.row_bytes)
    rcd *= _bank_ratio(BANK_RCD_NS, base, knobs)
    longer = ceil(timing["nRCDRD"] * rcd - 1e-9) - timing["nRCDRD"]
    for name in (*RCD_NAMES, "nRAS", "nRC"):
        timing[name] += longer
    spacing = (knobs.row_bytes / own.row_bytes) ** ACTIVATE_SPACING_EXPONENT
    for name in ("nRRDS", "nRRDL", "nFAW"):
        timing[name] = ceil(timing[name] * spacing - 1e-9)
    density = own.channels / knobs.channels
    timing["nRFC"] = ceil(timing["nRFC"] * density**REFRESH_DENSITY_EXPONENT - 1e-9)
    assert base.power is not None
    charge = knobs.banks_per_channel * knobs.row_bytes
    timing["nACTALL"] = max(timing["nRC"], ceil(charge / base.power.activation_budget_bytes_per_cycle))
    cap_pj_per_cycle = base.power.mac_cap_w_per_channel * base.cycle_ps
    timing["nCCDMAC"] = max(timing["nCCDL"], ceil(energy.all_bank_mac_pj / cap_pj_per_cycle))
    burst = base.organisation.burst_bytes
    register_bytes = knobs.banks_per_channel * base.unit.value_bytes
    timing["nBLREG"] = base.timing["nBL"] * ceil(register_bytes / burst)
    timing["nBL"] = timing["nBLGB"] = base.timing["nBL"] * ceil(knobs.lanes * base.unit.value_bytes / burst)
    return timing
