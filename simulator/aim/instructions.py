"""The instructions an AiM trace may hold, as a table: fields, DRAM command, and how the DMA treats them.

A line of a trace reads `AiM OPCODE field...`, `W|R MEM channel bank row`, `W|R GPR register`,
`W CFR register data` or `R CFR register`.
Source: README of the public AiM simulator, table of host requests.
"""

from dataclasses import dataclass
from enum import StrEnum

from simulator.isa import Kind


class Opcode(StrEnum):
    """Every instruction; those with a blank are host accesses, the others follow the word AiM."""

    WR_SBK = "WR_SBK"
    WR_ABK = "WR_ABK"
    WR_GB = "WR_GB"
    WR_BIAS = "WR_BIAS"
    RD_MAC = "RD_MAC"
    RD_AF = "RD_AF"
    RD_SBK = "RD_SBK"
    COPY_BKGB = "COPY_BKGB"
    COPY_GBBK = "COPY_GBBK"
    MAC_SBK = "MAC_SBK"
    MAC_ABK = "MAC_ABK"
    AF = "AF"
    EWMUL = "EWMUL"
    EWADD = "EWADD"
    SYNC = "SYNC"
    EOC = "EOC"
    WRITE_MEM = "W MEM"
    READ_MEM = "R MEM"
    WRITE_GPR = "W GPR"
    READ_GPR = "R GPR"
    WRITE_CFR = "W CFR"
    READ_CFR = "R CFR"


class Field(StrEnum):
    """The operands of a line, named as its messages name them."""

    OPSIZE = "opsize"
    GPR = "general register"
    SECOND_GPR = "second general register"
    MASK = "channel mask"
    CHANNEL = "channel"
    BANK = "bank"
    ROW = "row"
    CFR = "configuration register"
    DATA = "data"


class Route(StrEnum):
    """Where the DMA sends the requests of an instruction."""

    NOWHERE = "nowhere"
    PIM = "pim"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Shape:
    """One row of the table; `kind` is the DRAM command each request ends with."""

    fields: tuple[Field, ...]
    route: Route = Route.NOWHERE
    kind: Kind | None = None
    register_mode: bool = False
    blocking: bool = False


_OPSIZE, _GPR, _MASK, _BANK, _ROW = Field.OPSIZE, Field.GPR, Field.MASK, Field.BANK, Field.ROW
_ONE_BANK = (_OPSIZE, _MASK, _BANK, _ROW)
_ALL_BANKS = (_OPSIZE, _MASK, _ROW)
_REGISTERS = (_GPR, _MASK)
_HOST_BANK = (_GPR, _MASK, _BANK, _ROW)
_MEMORY = (Field.CHANNEL, _BANK, _ROW)

SHAPES: dict[Opcode, Shape] = {
    Opcode.WR_SBK: Shape(_HOST_BANK, Route.WRITE, Kind.WR),
    Opcode.RD_SBK: Shape(_HOST_BANK, Route.READ, Kind.RD),
    Opcode.WR_ABK: Shape((_GPR, _MASK, _ROW), Route.PIM, Kind.WRA16),
    Opcode.WR_GB: Shape((_OPSIZE, _GPR, _MASK), Route.PIM, Kind.WRGB, register_mode=True),
    Opcode.WR_BIAS: Shape(_REGISTERS, Route.PIM, Kind.WRMAC16, register_mode=True),
    Opcode.RD_MAC: Shape(_REGISTERS, Route.PIM, Kind.RDMAC16, register_mode=True, blocking=True),
    Opcode.RD_AF: Shape(_REGISTERS, Route.PIM, Kind.RDAF16, register_mode=True, blocking=True),
    Opcode.COPY_BKGB: Shape(_ONE_BANK, Route.PIM, Kind.RDCP),
    Opcode.COPY_GBBK: Shape(_ONE_BANK, Route.PIM, Kind.WRCP),
    Opcode.MAC_SBK: Shape(_ONE_BANK, Route.PIM, Kind.MAC),
    Opcode.MAC_ABK: Shape(_ALL_BANKS, Route.PIM, Kind.MAC16),
    Opcode.AF: Shape((_MASK,), Route.PIM, Kind.AF16),
    Opcode.EWMUL: Shape(_ALL_BANKS, Route.PIM, Kind.EWMUL16),
    Opcode.EWADD: Shape((_OPSIZE, _GPR, Field.SECOND_GPR)),
    Opcode.SYNC: Shape((), Route.PIM, blocking=True),
    Opcode.EOC: Shape((), Route.PIM, blocking=True),
    Opcode.WRITE_MEM: Shape(_MEMORY, Route.WRITE, Kind.WR),
    Opcode.READ_MEM: Shape(_MEMORY, Route.READ, Kind.RD),
    Opcode.WRITE_GPR: Shape((_GPR,)),
    Opcode.READ_GPR: Shape((_GPR,)),
    Opcode.WRITE_CFR: Shape((Field.CFR, Field.DATA)),
    Opcode.READ_CFR: Shape((Field.CFR,)),
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line; a field its opcode does not have keeps its default. `channels` are sorted ids."""

    opcode: Opcode
    opsize: int = 1
    channels: tuple[int, ...] = ()
    bank: int = -1
    row: int = -1
    register: int = -1
    data: int = 0
