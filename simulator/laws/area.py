"""Area law: silicon of all DRAM dies of one device in mm², at low, nominal and high constants; floats or arrays.

The base's plain dies hold its own banks and channels; what knobs add to them (or save) is added by part; what they save
counts least at high constants. Units on a buffer die count too. The
controller and the host are not DRAM silicon and are left out.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from configs.device import Area, Device
from configs.knobs import HardwareKnobs, base_knobs
from configs.laws import Band, LawCase, LawConstants, law_constants
from configs.structure import Ecc, UnitFormats
from simulator.laws.build import build_of

GIB = 2**30
KIB = 1024
OPPOSITE: dict[LawCase, LawCase] = {"low": "high", "nominal": "nominal", "high": "low", "adverse": "low"}


@dataclass(frozen=True, slots=True)
class AreaParts:
    """mm² of one device by part; `arrays` are cells with their amplifiers, `supply` what all-bank activates need."""

    arrays: Any
    banks: Any
    channels: Any
    units: Any
    buffers: Any
    supply: Any

    @property
    def total(self) -> Any:
        """The sum of all parts."""
        return sum(getattr(self, field.name) for field in fields(self))


def area_mm2(base: Device, knobs: HardwareKnobs, case: LawCase = "nominal") -> Any:
    """Return mm² of all dies of one device; None where the base device has no area section."""
    return None if base.area is None else area_parts(base, base.area, knobs, case).total


def area_parts(base: Device, area: Area, knobs: HardwareKnobs, case: LawCase = "nominal") -> AreaParts:
    """Return mm² of one device by part."""
    constants, own = law_constants(), base_knobs(base)
    groups = knobs.channels * knobs.bank_groups - own.channels * own.bank_groups
    banks = knobs.channels * knobs.banks_per_channel - own.channels * own.banks_per_channel
    built = knobs.channels * knobs.banks_per_channel
    columns = built * knobs.column_bytes - own.channels * own.banks_per_channel * own.column_bytes
    readout = knobs.channels * knobs.readout_bytes - own.channels * own.readout_bytes
    return AreaParts(
        arrays=_arrays(base, area, knobs, constants, case),
        banks=_added(banks, area.bank_periphery_mm2, case)
        + _added(columns, constants.bands["column_path_mm2_per_byte"].value, case)
        + _added(groups, constants.bands["bank_group_mm2"].value, case),
        channels=_added(knobs.channels - own.channels, area.channel_interface_mm2, case)
        + _added(readout, constants.bands["readout_mm2_per_byte"].value, case),
        units=knobs.channels * build_of(base, knobs).units * unit_mm2(base, area, knobs, constants, case),
        buffers=_buffers(area, knobs, own, constants, case),
        supply=_supply(base, knobs, constants, case),
    )


def _added(amount: Any, band: Band, case: LawCase) -> Any:
    """Return what is added at a case; what is saved counts at the opposite one."""
    return amount * np.where(np.asarray(amount) > 0, band.at(case), band.at(OPPOSITE[case]))


def _relative(constants: LawConstants, curve: str, value: Any, own: Any, case: LawCase) -> Any:
    """Return a curve's ratio at a case; one below 1 is taken at the opposite one."""
    ratio = constants.ratio(curve, value, own, case)
    return np.where(ratio > 1, ratio, constants.ratio(curve, value, own, OPPOSITE[case]))


def _arrays(base: Device, area: Area, knobs: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    own, built = base_knobs(base), build_of(base, knobs)
    gib = knobs.channels * knobs.banks_per_channel * built.rows * knobs.row_bytes / GIB
    per_gib = area.dram_mm2_per_gib.at(case) * _relative(constants, "page_area", knobs.row_bytes, own.row_bytes, case)
    subarray = _relative(constants, "subarray_area", knobs.rows_per_subarray, own.rows_per_subarray, case)
    share, checked = (constants.band(name, case) for name in ("row_buffer_share", "ecc_storage_share"))
    buffers = 1 + (knobs.row_buffers - own.row_buffers) * share
    ecc = (1 + (knobs.ecc == Ecc.ON_DIE) * checked) / (1 + (own.ecc == Ecc.ON_DIE) * checked)
    return gib * per_gib * subarray * buffers * ecc


def unit_mm2(base: Device, area: Area, knobs: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    """Return mm² of one unit: accumulators by their number, decoders by formats, the rest by multipliers; by clock."""
    own = base_knobs(base)
    accumulators, decoder = (constants.band(name, case) for name in ("accumulator_share", "decoder_share"))
    lanes = knobs.lanes / own.lanes
    multipliers = lanes * knobs.vectors_per_multiply / own.vectors_per_multiply
    decoders = _format_classes(knobs) - _format_classes(own)
    share = (1 - accumulators) * multipliers + accumulators * knobs.accumulators / own.accumulators
    clock = (knobs.unit_clock_mhz / own.unit_clock_mhz) ** constants.band("unit_clock_exponent", case)
    return area.unit_mm2.at(case) * (share + decoder * decoders * lanes) * clock


def _format_classes(knobs: HardwareKnobs) -> Any:
    """Return how many classes of formats units decode beside the first."""
    return (knobs.unit_formats != UnitFormats.SIXTEEN_BIT) * 1 + (knobs.unit_formats == UnitFormats.ALL) * 1


def _buffers(area: Area, knobs: HardwareKnobs, own: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    port = constants.band("buffer_port_share", case)
    ports = (1 + port * (knobs.buffer_ports - 1)) / (1 + port * (own.buffer_ports - 1))
    size = area.global_buffer_mm2_per_kib.at(case)
    return knobs.channels * knobs.global_buffer_bytes / KIB * size * ports


def _supply(base: Device, knobs: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    """Return mm² of pumps for the activation current, and of reservoirs for what all banks draw at once."""
    own = base_knobs(base)
    percent = knobs.channels * knobs.activation_current_percent - own.channels * own.activation_current_percent
    pumps = percent / own.activation_current_percent
    charge = knobs.channels * _charge_kib(base, knobs) - own.channels * _charge_kib(base, own)
    return _added(pumps, constants.bands["supply_mm2"].value, case) + _added(
        charge, constants.bands["reservoir_mm2_per_kib"].value, case
    )


def _charge_kib(base: Device, knobs: HardwareKnobs) -> Any:
    """Return KiB of rows of a channel that open at once: staggered ones recover within an activate's own time."""
    banks, window = build_of(base, knobs).banks, base.timing["nRCDRD"]
    return banks * knobs.row_bytes / KIB * window / (window + (banks - 1) * knobs.activation_stagger_cycles)
