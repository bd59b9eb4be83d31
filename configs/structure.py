"""How a device's banks and units are built where its organisation does not show it.

Banks that take turns at one unit, or at one command, are opened together and count as one bank of the organisation,
with a row as long as theirs together: `gang` says how many.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from configs.record import PositiveInt, Record


class PimLevel(StrEnum):
    """Where the units of a channel sit."""

    BANK = "bank"
    BANK_GROUP = "bank-group"
    BUFFER_DIE = "buffer-die"


class CommandBanks(StrEnum):
    """Which banks one multiply command drives."""

    ALL = "all"
    GROUP = "group"
    ONE = "one"


class UnitFormats(StrEnum):
    """Which stored formats the units decode; each class holds those before it."""

    SIXTEEN_BIT = "16-bit"
    EIGHT_BIT = "8-bit"
    ALL = "all"


class Ecc(StrEnum):
    """Error correction between the cells and the unit."""

    NONE = "none"
    ON_DIE = "on-die"


class Structure(Record):
    """The build of a device; 0 groups or read-out bytes stand for those of the organisation."""

    gang: PositiveInt = Field(default=1, description="banks of the silicon that make one bank of the organisation")
    bank_groups: Annotated[int, Field(ge=0)] = 0
    rows_per_subarray: PositiveInt = 512
    pim_level: PimLevel = PimLevel.BANK
    banks_per_unit: PositiveInt = 1
    command_banks: CommandBanks = CommandBanks.ALL
    readout_bytes: Annotated[int, Field(ge=0)] = 0
    buffer_ports: PositiveInt = 1
    activation_current_percent: PositiveInt = 100
    activation_stagger_cycles: Annotated[int, Field(ge=0)] = 0
    unit_clock_mhz: PositiveInt = 1000
    mac_power_cap_percent: PositiveInt = 100
    ecc: Ecc = Ecc.NONE
    harvested_banks: Annotated[int, Field(ge=0)] = 0
    host_link: str = "own"
