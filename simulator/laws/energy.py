"""Energy laws: constants of a base device's energy section by knobs; floats or arrays.

A row's energy follows page, banks and bitline and is counted for all banks that open together. A multiply of all banks
is a column read of each, which stays in its bank and follows the width, the multipliers' logic, which follows their
number, and the way from the banks to where the units sit.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from configs.device import Basis, Device, Energy
from configs.knobs import HardwareKnobs, base_knobs
from configs.laws import LawCase, LawConstants, powered
from configs.structure import Ecc, PimLevel
from simulator.laws.build import build_of
from simulator.laws.timing import relative_banks

BITS = 8


def scaled_energy(
    base: Device, energy: Energy, knobs: HardwareKnobs, constants: LawConstants, case: LawCase
) -> Mapping[str, Any]:
    """Return the entries of the energy section that knobs change."""
    own = base_knobs(base)
    before, after = build_of(base, own), build_of(base, knobs)
    row, column = _row(base, knobs, constants, case), _column(base, knobs, constants, case)
    unit_pj = energy.all_bank_mac_pj / before.parallel
    logic = energy.mac_multiply_share * unit_pj * _multipliers(knobs) / _multipliers(own)
    read = (1 - energy.mac_multiply_share) * unit_pj * _in_bank_column(base, knobs, constants, case)
    path = BITS * (_path(knobs, constants, case) * knobs.column_bytes - _path(own, constants, case) * own.column_bytes)
    if energy.basis is Basis.DATASHEET:
        # What is typical in the sources is a maximum here, so that the typical basis finds it as it was.
        path = path / energy.typical_column_factor.nominal
    mac = read + logic + path
    array = energy.standby_array_share * own.channels / knobs.channels + 1 - energy.standby_array_share
    return {
        "activate_precharge_pj": energy.activate_precharge_pj * row * after.gang / before.gang,
        "column_read_pj": energy.column_read_pj * column,
        "column_write_pj": energy.column_write_pj * column,
        "all_bank_mac_pj": after.parallel * mac,
        "row_move_pj": _row_move(energy, knobs, own, after.gang / before.gang, constants, case),
        "mac_multiply_share": logic / mac,
        "global_buffer_access_pj": energy.global_buffer_access_pj * _multipliers(knobs) / _multipliers(own),
        "standby_active_mw": energy.standby_active_mw * array,
        "standby_precharged_mw": energy.standby_precharged_mw * array,
    }


def _multipliers(knobs: HardwareKnobs) -> Any:
    return knobs.lanes * knobs.vectors_per_multiply


def _row(base: Device, knobs: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    own = base_knobs(base)
    page = constants.ratio("page_activate", knobs.row_bytes, own.row_bytes, case)
    banks = constants.ratio("bank_activate", relative_banks(base, knobs), own.banks_per_channel, case)
    bitline = constants.ratio("subarray_activate", knobs.rows_per_subarray, own.rows_per_subarray, case)
    return page * banks * bitline * _checked(knobs, constants, case) / _checked(own, constants, case)


def _row_move(
    energy: Energy, knobs: HardwareKnobs, own: HardwareKnobs, gang: Any, constants: LawConstants, case: LawCase
) -> Any:
    """Return what moving a row between row buffers takes: by its bytes, for all banks that are opened together."""
    added = np.where(knobs.row_buffers > own.row_buffers, constants.band("row_move_share", case), 1.0)
    return energy.row_move_pj * knobs.row_bytes / own.row_bytes * gang * added


def _column(base: Device, knobs: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    own = base_knobs(base)
    banks = constants.ratio("bank_read", relative_banks(base, knobs), own.banks_per_channel, case)
    return (
        knobs.column_bytes
        / own.column_bytes
        * banks
        * _checked(knobs, constants, case)
        / _checked(own, constants, case)
    )


def _in_bank_column(base: Device, knobs: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    """Return how a column read that stays in its bank changes: by its width, hardly by the number of banks."""
    own, curve = base_knobs(base), constants.curves["bank_read"]
    banks = curve.at(relative_banks(base, knobs)) / curve.at(own.banks_per_channel)
    width = knobs.column_bytes / own.column_bytes * _checked(knobs, constants, case) / _checked(own, constants, case)
    return width * powered(banks, constants.bands["bank_mac_exponent"].value, case)


def _checked(knobs: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    """Return how much more than its data a column access moves."""
    return 1 + (knobs.ecc == Ecc.ON_DIE) * constants.band("ecc_storage_share", case)


def _path(knobs: HardwareKnobs, constants: LawConstants, case: LawCase) -> Any:
    """Return pJ per bit from a bank's column to where the units sit."""
    group, die = (constants.band(name, case) for name in ("group_path_pj_per_bit", "die_path_pj_per_bit"))
    at_group, at_die = knobs.pim_level == PimLevel.BANK_GROUP, knobs.pim_level == PimLevel.BUFFER_DIE
    return np.where(at_die, die, np.where(at_group, group, 0.0))
