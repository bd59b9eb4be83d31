"""What knobs build: banks that work and banks that are opened together, units, rows and columns; ints or arrays.

Banks that take turns - at a unit that they share, at the bus of their group or die, or because one command drives only
some of them - are opened together and make one bank of the organisation, whose row is as long as theirs together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from configs.device import Device
from configs.knobs import HardwareKnobs
from configs.structure import CommandBanks, PimLevel


@dataclass(frozen=True, slots=True)
class Build:
    """`banks` work in each channel, `gang` of them at a time make one of `parallel` banks of the organisation.

    `units` are built per channel; `rows` per bank keep the base device's capacity, harvested banks aside.
    """

    banks: Any
    gang: Any
    parallel: Any
    units: Any
    rows: Any


def build_of(base: Device, knobs: HardwareKnobs) -> Build:
    """Return what the knobs build; meaningful only where `simulator.laws.rules` finds nothing."""
    banks = knobs.banks_per_channel - knobs.harvested_banks
    at_group, at_die = knobs.pim_level == PimLevel.BANK_GROUP, knobs.pim_level == PimLevel.BUFFER_DIE
    by_group, by_one = knobs.command_banks == CommandBanks.GROUP, knobs.command_banks == CommandBanks.ONE
    turns = np.where(by_one, banks // knobs.banks_per_unit, np.where(by_group, knobs.bank_groups, 1))
    gang = np.where(at_die, banks, np.where(at_group, banks // knobs.bank_groups, knobs.banks_per_unit * turns))
    at_banks = -(-knobs.banks_per_channel // knobs.banks_per_unit)
    units = np.where(at_die, 1, np.where(at_group, knobs.bank_groups, at_banks))
    return Build(banks, gang, banks // gang, units, rows_per_bank(base, knobs))


def rows_per_bank(base: Device, knobs: HardwareKnobs) -> Any:
    """Return the rows of a bank; harvested banks would have held their share."""
    working = base.organisation.banks * base.structure.gang
    built = base.organisation.capacity_bytes * (working + base.structure.harvested_banks) // working
    return built // (knobs.channels * knobs.banks_per_channel * knobs.row_bytes)


def bank_group_shape(build: Build, knobs: HardwareKnobs) -> tuple[Any, Any]:
    """Return bank groups and banks per group of the organisation; one group where the banks do not divide."""
    groups = np.where(build.parallel % knobs.bank_groups == 0, knobs.bank_groups, 1)
    return groups, build.parallel // groups
