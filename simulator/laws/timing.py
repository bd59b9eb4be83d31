"""Timing laws: cycles of a base device's table by knobs; ints or arrays.

Slopes are those of `configs.laws`; what a base device gives is kept at its own values. A larger row costs tRCD and,
through the charge per activate, activation spacing; more rows on a bitline cost tRAS and tRP; more banks shorten wires.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from configs.device import Device
from configs.knobs import HardwareKnobs, base_knobs
from configs.laws import LawCase, LawConstants, powered
from configs.structure import Ecc, PimLevel
from simulator.laws.build import Build, build_of

RCD_NAMES = ("nRCDRD", "nRCDRDMAC", "nRCDRDAF", "nRCDRDCP", "nRCDEWMUL", "nRCDWR", "nRCDWRCP")
# Whatever passes the checker on its way out of the cells.
READ_NAMES = ("nCL", "nRCDRDMAC", "nRCDRDAF", "nRCDRDCP", "nRCDEWMUL")
# Whatever waits for the last bank of a staggered activate; that of a single bank is taken to last as long.
STAGGERED_NAMES = (*RCD_NAMES, "nRAS", "nRC")
PS_PER_PERIOD_MHZ = 1e6
ROUNDING = 1e-9
Timing = Mapping[str, Any]


def scaled_timing(
    base: Device, knobs: HardwareKnobs, mac_pj: Any, constants: LawConstants, case: LawCase
) -> dict[str, Any]:
    """Return every entry of the timing section; `mac_pj` is what one all-bank multiply takes."""
    own, before, after = base_knobs(base), build_of(base, base_knobs(base)), build_of(base, knobs)
    timing: dict[str, Any] = dict(base.timing)
    _activates(timing, base, knobs, constants, case)
    _checker(timing, base, knobs, constants, case)
    gang = after.gang / before.gang
    spacing = powered(knobs.row_bytes / own.row_bytes, constants.bands["activate_spacing_exponent"].value, case) * gang
    for name in ("nRRDS", "nRRDL", "nFAW"):
        timing[name] = whole(timing[name] * spacing)
    spacing = _all_bank_spacing(timing, base, knobs, after) / _all_bank_spacing(base.timing, base, own, before)
    timing["nACTALL"] = np.maximum(timing["nRC"], whole(base.timing["nACTALL"] * spacing))
    _refreshes(timing, base, knobs, constants, case)
    if "nLTMAC" in timing:
        added = np.where(knobs.row_buffers > own.row_buffers, constants.band("row_move_time_share", case), 1.0)
        timing["nLTMAC"] = whole(timing["nLTMAC"] * added)
    _bursts(timing, base, knobs, after)
    assert base.energy is not None
    cadence = cadence_terms(timing, base, knobs, mac_pj).cycles
    cadence = cadence / cadence_terms(base.timing, base, own, base.energy.all_bank_mac_pj).cycles
    timing["nCCDMAC"] = whole(base.timing["nCCDMAC"] * cadence)
    return timing


def whole(cycles: Any) -> Any:
    """Round cycles up to whole ones."""
    return np.ceil(np.asarray(cycles) - ROUNDING).astype(np.int64)


def _activates(
    timing: dict[str, Any], base: Device, knobs: HardwareKnobs, constants: LawConstants, case: LawCase
) -> None:
    """Change activate-to-column by page, banks and bitline; row active time and precharge by bitline."""
    own = base_knobs(base)
    subarray = knobs.rows_per_subarray, own.rows_per_subarray
    reach = constants.ratio("page_rcd", knobs.row_bytes, own.row_bytes, case)
    reach = reach * constants.ratio("bank_rcd", relative_banks(base, knobs), own.banks_per_channel, case)
    wires = whole(base.timing["nRCDRD"] * reach) - base.timing["nRCDRD"]
    sensed = reach * constants.ratio("subarray_rcd", *subarray, case)
    longer = whole(base.timing["nRCDRD"] * sensed) - base.timing["nRCDRD"]
    # The curve of the row active time holds the bitline's share of the time to the first column already.
    restore = whole(base.timing["nRAS"] * constants.ratio("subarray_ras", *subarray, case)) - base.timing["nRAS"]
    precharge = whole(base.timing["nRP"] * constants.ratio("subarray_rp", *subarray, case)) - base.timing["nRP"]
    for name in RCD_NAMES:
        if name in timing:
            timing[name] = timing[name] + longer
    timing["nRAS"] = timing["nRAS"] + wires + restore
    timing["nRP"] = timing["nRP"] + precharge
    timing["nRC"] = timing["nRC"] + wires + restore + precharge
    stagger = _stagger_cycles(base, knobs) - _stagger_cycles(base, own)
    for name in STAGGERED_NAMES:
        if name in timing:
            timing[name] = timing[name] + stagger


def relative_banks(base: Device, knobs: HardwareKnobs) -> Any:
    """Return the banks per channel that a device of the base's channels would have: the curves are over fixed sizes."""
    return knobs.banks_per_channel * knobs.channels / base.organisation.channels


def _stagger_cycles(base: Device, knobs: HardwareKnobs) -> Any:
    """Return how much later than the first the last bank of an all-bank activate opens."""
    return (build_of(base, knobs).banks - 1) * knobs.activation_stagger_cycles


def _checker(
    timing: dict[str, Any], base: Device, knobs: HardwareKnobs, constants: LawConstants, case: LawCase
) -> None:
    """Let columns pass on-die error correction; what writes part of a word reads and checks the word before."""
    decode = int(whole(constants.band("ecc_decode_ns", case) * 1000 / base.cycle_ps))
    change = (knobs.ecc == Ecc.ON_DIE) * 1 - (base_knobs(base).ecc == Ecc.ON_DIE) * 1
    for name in READ_NAMES:
        if name in timing:
            timing[name] = timing[name] + change * decode
    if "nRMW" in timing:
        timing["nRMW"] = timing["nRMW"] + change * (timing["nCCDL"] + 2 * decode)


def _all_bank_spacing(timing: Timing, base: Device, knobs: HardwareKnobs, after: Build) -> Any:
    """Return the cycles between activates of all banks: the row cycle, or longer for more charge than may be moved."""
    assert base.power is not None
    own_percent = base.structure.activation_current_percent
    budget = base.power.activation_budget_bytes_per_cycle * knobs.activation_current_percent / own_percent
    return np.maximum(timing["nRC"], whole(after.banks * knobs.row_bytes / budget))


def _refreshes(
    timing: dict[str, Any], base: Device, knobs: HardwareKnobs, constants: LawConstants, case: LawCase
) -> None:
    """Let a refresh take longer the more cells are behind it."""
    own, exponent = base_knobs(base), constants.bands["refresh_density_exponent"].value
    timing["nRFC"] = whole(timing["nRFC"] * powered(own.channels / knobs.channels, exponent, case))
    if "nRFCpb" in timing:
        before, after = build_of(base, own), build_of(base, knobs)
        cells = after.gang * after.rows * knobs.row_bytes / (before.gang * before.rows * own.row_bytes)
        timing["nRFCpb"] = whole(timing["nRFCpb"] * powered(cells, exponent, case))


def _bursts(timing: dict[str, Any], base: Device, knobs: HardwareKnobs, after: Build) -> None:
    """Let columns, buffer entries and accumulators take as many bursts as they have bytes for."""
    own, before = base_knobs(base), build_of(base, base_knobs(base))
    burst, value = base.organisation.burst_bytes, base.unit.value_bytes
    for name, now, then, width in (
        ("nBL", knobs.column_bytes, own.column_bytes, (burst, burst)),
        ("nBLGB", knobs.lanes * value, own.lanes * value, (burst, burst)),
        ("nBLREG", after.parallel * value, before.parallel * value, (knobs.readout_bytes, own.readout_bytes)),
    ):
        timing[name] = whole(timing[name] * bursts(now, width[0]) / bursts(then, width[1]))


def bursts(size: Any, burst: Any) -> Any:
    """Return how many bursts move so many bytes."""
    return -(-size // burst)


@dataclass(frozen=True, slots=True)
class CadenceTerms:
    """What keeps all-bank multiplies apart, in cycles: the longest decides."""

    column_access: Any
    buffer_ports: Any
    unit_clock: Any
    power_cap: Any

    @property
    def cycles(self) -> Any:
        """The cadence."""
        columns = np.maximum(self.column_access, self.buffer_ports)
        return np.maximum(columns, np.maximum(self.unit_clock, self.power_cap))


def cadence_terms(timing: Timing, base: Device, knobs: HardwareKnobs, mac_pj: Any) -> CadenceTerms:
    """Return what column access, buffer ports, units and the power cap allow; `mac_pj` is for one all-bank multiply."""
    assert base.power is not None
    column = np.where(knobs.pim_level == PimLevel.BUFFER_DIE, timing["nCCDS"], timing["nCCDL"])
    percent = knobs.mac_power_cap_percent / base.structure.mac_power_cap_percent
    return CadenceTerms(
        column_access=column,
        buffer_ports=column * bursts(knobs.vectors_per_multiply, knobs.buffer_ports),
        unit_clock=whole(PS_PER_PERIOD_MHZ / (knobs.unit_clock_mhz * base.cycle_ps)),
        power_cap=whole(mac_pj / (base.power.mac_cap_w_per_channel * percent * base.cycle_ps)),
    )
