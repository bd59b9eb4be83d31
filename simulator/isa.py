"""The instruction set: DRAM and processing-in-memory commands inside counted loops with affine operands.

A `Program` is what one channel executes. Grammar of its text form (`simulator.program_text`):

    program  := ["accesses_per_column" count] ["vectors_per_multiply" count] block
    block    := instruction*
    instruction := command | loop
    loop     := "loop" count "{" block "}"
    command  := KIND (operand "=" affine)*        e.g.  MAC16 column=%1 buffer=%1 register=%0
    affine   := constant ("+" coefficient? "%" depth)*   loop variables count from the outermost loop of the program

Kinds that end in 16 address all banks of the channel (16 on the AiM base device), those in 4 one bank group, those in 8
every even or every odd bank, for which bank 0 or 1 stands. Which kinds a device has, and what else each addresses, its
file says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Scope(StrEnum):
    """What one command addresses."""

    CHANNEL = "channel"
    PSEUDO_CHANNEL = "pseudochannel"
    RANK = "rank"
    BANK_GROUP = "bankgroup"
    BANK = "bank"


class Kind(StrEnum):
    """Every command. `buffer` is the global buffer, `register` an accumulator of each unit."""

    ACT = "ACT"
    ACT1 = "ACT1"  # the first half of an activate that takes two commands (LPDDR5)
    ACT2 = "ACT2"  # its second half, which opens the row
    ACT4 = "ACT4"
    ACT16 = "ACT16"
    PRE = "PRE"
    PRE4 = "PRE4"
    PREA = "PREA"
    CAS_RD = "CAS_RD"  # starts the data clock before a read (LPDDR5)
    CAS_WR = "CAS_WR"
    RD = "RD"
    WR = "WR"
    RDA = "RDA"
    WRA = "WRA"
    WRA16 = "WRA16"  # one value to each bank: 16 x 16 bit in one burst, then precharge
    MAC = "MAC"
    MAC16 = "MAC16"
    LATCH16 = "LATCH16"  # the open row of every bank to its second row buffer, then precharge
    MACL16 = "MACL16"  # MAC16 from the second row buffer
    SCALE16 = "SCALE16"  # a column of scales from every bank to its unit
    AF16 = "AF16"
    EWMUL16 = "EWMUL16"
    RDCP = "RDCP"  # bank to global buffer
    WRCP = "WRCP"  # global buffer to bank
    WRGB = "WRGB"  # host data to global buffer
    WRMAC16 = "WRMAC16"  # host data to one accumulator of every unit
    RDMAC16 = "RDMAC16"  # one accumulator of every unit to the host
    RDAF16 = "RDAF16"
    TMOD = "TMOD"  # change between register and memory mode
    REFab = "REFab"
    REFpb = "REFpb"
    RFMab = "RFMab"  # refresh management: extra refreshes asked for by row hammer counters
    RFMpb = "RFMpb"
    ACT8 = "ACT8"  # HBM-PIM in its all-bank modes: a row of every even bank (bank 0) or of every odd one (bank 1)
    PRE8 = "PRE8"
    RD8 = "RD8"  # a column of those banks to their units, which run one microkernel instruction on it
    WR8 = "WR8"  # host data to a register window of every unit
    ST8 = "ST8"  # one microkernel instruction that stores a register of every unit in a column of those banks
    SIGNAL = "SIGNAL"  # no DRAM command: tells the host that everything issued before has completed
    WAIT = "WAIT"  # no DRAM command: holds the channel until the host's event


KINDS = tuple(Kind)
CODE_OF = {kind: code for code, kind in enumerate(KINDS)}
BANK_KINDS = frozenset(
    {
        Kind.ACT,
        Kind.ACT1,
        Kind.ACT2,
        Kind.PRE,
        Kind.CAS_RD,
        Kind.CAS_WR,
        Kind.RD,
        Kind.WR,
        Kind.RDA,
        Kind.WRA,
        Kind.MAC,
        Kind.RDCP,
        Kind.WRCP,
        Kind.REFpb,
        Kind.RFMpb,
        Kind.ACT8,
        Kind.PRE8,
        Kind.RD8,
        Kind.WR8,
        Kind.ST8,
    }
)
EVERY_OTHER_BANK_KINDS = frozenset({Kind.ACT8, Kind.PRE8, Kind.RD8, Kind.WR8, Kind.ST8})
BANK_GROUP_KINDS = frozenset({Kind.ACT4, Kind.PRE4})
EVENT_KINDS = frozenset({Kind.SIGNAL, Kind.WAIT})
REGISTER_MODE_KINDS = frozenset({Kind.WRGB, Kind.WRMAC16, Kind.RDMAC16, Kind.RDAF16})
ACTIVATES = frozenset({Kind.ACT, Kind.ACT2, Kind.ACT4, Kind.ACT16, Kind.ACT8})
REFRESHES = frozenset({Kind.REFab, Kind.REFpb, Kind.RFMab, Kind.RFMpb})
PRECHARGES = frozenset({Kind.PRE, Kind.PRE4, Kind.PREA, Kind.PRE8})
CLOSING = PRECHARGES | {Kind.RDA, Kind.WRA, Kind.WRA16, Kind.LATCH16}
COLUMN_KINDS = frozenset(
    {
        Kind.RD,
        Kind.WR,
        Kind.RDA,
        Kind.WRA,
        Kind.WRA16,
        Kind.MAC,
        Kind.MAC16,
        Kind.SCALE16,
        Kind.RDCP,
        Kind.WRCP,
        Kind.EWMUL16,
        Kind.RD8,
        Kind.WR8,
        Kind.ST8,
    }
)
# What finds the row open that it works on or prepares to work on, and what touches the arrays of its banks at all.
NEED_OPEN_ROWS = COLUMN_KINDS | {Kind.CAS_RD, Kind.CAS_WR, Kind.LATCH16}
ARRAY_KINDS = NEED_OPEN_ROWS | ACTIVATES | PRECHARGES | REFRESHES | {Kind.ACT1, Kind.AF16}
# Units multiply either what lies in the open rows, or what lies in the second row buffers where banks have them.
FROM_OPEN_ROWS = frozenset({Kind.MAC, Kind.MAC16, Kind.SCALE16, Kind.EWMUL16})
FROM_SECOND_BUFFERS = frozenset({Kind.LATCH16, Kind.MACL16})


def scope_of(kind: Kind) -> Scope:
    """Return what a command of this kind addresses where the device does not say otherwise."""
    if kind in BANK_KINDS:
        return Scope.BANK
    return Scope.BANK_GROUP if kind in BANK_GROUP_KINDS else Scope.CHANNEL


@dataclass(frozen=True, slots=True)
class Affine:
    """`constant + sum(coefficient * loop variable)`; `terms` holds (loop depth, coefficient), sorted, without zeros."""

    constant: int = 0
    terms: tuple[tuple[int, int], ...] = ()

    def at(self, variables: tuple[int, ...]) -> int:
        """Return the value for the loop variables, outermost first."""
        return self.constant + sum(coefficient * variables[depth] for depth, coefficient in self.terms)

    def plus(self, offset: int) -> "Affine":
        """Return this operand moved by a constant."""
        return Affine(self.constant + offset, self.terms)


def affine(constant: int = 0, **coefficients: int) -> Affine:
    """Write an operand: affine(3, v0=2, v1=1) is 3 + 2*%0 + %1; zero coefficients are dropped."""
    terms = sorted((int(name[1:]), value) for name, value in coefficients.items() if value)
    return Affine(constant, tuple(terms))


ZERO = Affine()


@dataclass(frozen=True, slots=True)
class Command:
    """One command; operands a kind does not use stay zero. `event` numbers the host events of SIGNAL and WAIT.

    The `lane` of a MAC16 says which scale its sum of products is multiplied by: 0 none, k the k-th that SCALE16 loaded.
    Where a multiply serves several vectors, its `data` is how far apart they lie in the global buffer, in its columns.
    """

    kind: Kind
    bank: Affine = ZERO
    row: Affine = ZERO
    column: Affine = ZERO
    lane: Affine = ZERO
    buffer: Affine = ZERO
    register: Affine = ZERO
    data: Affine = ZERO
    event: Affine = ZERO


OPERANDS = ("bank", "row", "column", "lane", "buffer", "register", "data", "event")


@dataclass(frozen=True, slots=True)
class Loop:
    """`count` repetitions of `body`; its variable runs from 0."""

    count: int
    body: tuple["Instruction", ...]


Instruction = Command | Loop


@dataclass(frozen=True, slots=True)
class Program:
    """What one channel executes; `comment` names the task and schedule it was lowered from.

    `column` operands count accesses of as many stored values as a unit has lanes; `accesses_per_column` of them make a
    column of the device: as many as it holds of 16-bit values, twice or four times as many of narrower ones.

    A MAC16 or MACL16 multiplies its column with `vectors_per_multiply` vectors of the global buffer, into accumulators
    that follow each other: acc[register + j] += column . buffer[buffer + j * data] for every j below that.
    """

    body: tuple[Instruction, ...]
    comment: str = field(default="", compare=False)
    accesses_per_column: int = 1
    vectors_per_multiply: int = 1


@dataclass(frozen=True, slots=True)
class Issued:
    """One command with its operands resolved, as the engines and the functional simulator see it."""

    kind: Kind
    bank: int
    row: int
    column: int
    lane: int
    buffer: int
    register: int
    data: int
    event: int


def walk(program: Program) -> Iterator[Issued]:
    """Yield every command in order with its operands resolved: the readable meaning of loops."""
    yield from _walk(program.body, ())


def _walk(body: tuple[Instruction, ...], variables: tuple[int, ...]) -> Iterator[Issued]:
    for instruction in body:
        match instruction:
            case Loop(count, inner):
                for index in range(count):
                    yield from _walk(inner, (*variables, index))
            case Command(kind=kind):
                yield Issued(kind, *(getattr(instruction, name).at(variables) for name in OPERANDS))


def command_count(body: tuple[Instruction, ...]) -> int:
    """Return how many commands a block issues, loops counted out but not walked."""
    return sum(item.count * command_count(item.body) if isinstance(item, Loop) else 1 for item in body)
