"""The instructions that HBM-PIM units keep and run, one per column access: words of 32 bits, and how they travel.

    opcode [31:28]  destination [27:25]  source [24:22]  other source [21:19]  aligned [15]  relu [12]
    destination index [11:8]  source index [7:4]  other index [3:0]
    JUMP: count [27:11]  distance back [10:0]        NOP: repetitions - 1 [10:0]

An *aligned* instruction runs eight times and takes its register numbers from the address: of the sums the three low
bits of the column, of the inputs of a MAC the lowest bit of the row and the next two of the column, of the inputs of
others the three low bits, too. A FILL takes a column of a bank as it is, with relu negative values as 0. A JUMP goes
back `count` times, then on; it takes no access. A NOP on a store puts register column mod 8 into the bank: of the
inputs into an even one, of the sums into an odd one.

The write of microkernel column c carries words 8(c - 4) to 8(c - 4) + 7 in the operands lane, buffer, register and
data of its command, two each, the first in the low half. Source: Samsung's public PIMSimulator.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from simulator.isa import Affine, Command, Kind

WORDS_OF_WRITE = 8
WORD_BITS, HALF = 32, 1 << 32
ALIGNED_RUNS = 8
MOST_JUMPS, MOST_BACK, MOST_REPETITIONS = (1 << 17) - 1, (1 << 11) - 1, 1 << 11


class Opcode(IntEnum):
    """What an instruction does; those that no lowering uses are known by name."""

    NOP = 0
    ADD = 1
    MUL = 2
    MAC = 3
    MAD = 4
    MOV = 8
    FILL = 9
    JUMP = 14
    EXIT = 15


class Place(IntEnum):
    """Where an operand is."""

    A_OUT = 0
    M_OUT = 1
    EVEN_BANK = 2
    ODD_BANK = 3
    INPUTS = 4  # GRF_A
    SUMS = 5  # GRF_B
    SCALAR_M = 6
    SCALAR_A = 7


@dataclass(frozen=True, slots=True)
class MicroInstruction:
    """One word, decoded; `count` and `back` are those of a JUMP, `count` the runs of a NOP."""

    opcode: Opcode
    destination: Place = Place.A_OUT
    source: Place = Place.A_OUT
    other: Place = Place.A_OUT
    aligned: bool = False
    relu: bool = False
    count: int = 0
    back: int = 0

    def encode(self) -> int:
        """Return the word."""
        word = int(self.opcode) << 28
        if self.opcode is Opcode.JUMP:
            return word | self.count << 11 | self.back
        if self.opcode is Opcode.NOP:
            return word | self.count - 1
        places = self.destination << 25 | self.source << 22 | self.other << 19
        return word | places | self.aligned << 15 | self.relu << 12


@lru_cache
def decode(word: int) -> MicroInstruction:
    """Return what a word says; raises ValueError for one that says nothing."""
    opcode = Opcode(word >> 28)
    if opcode is Opcode.JUMP:
        return MicroInstruction(opcode, count=word >> 11 & MOST_JUMPS, back=word & MOST_BACK)
    if opcode is Opcode.NOP:
        return MicroInstruction(opcode, count=(word & MOST_BACK) + 1)
    destination, source, other = (Place(word >> shift & 7) for shift in (25, 22, 19))
    return MicroInstruction(opcode, destination, source, other, bool(word >> 15 & 1), bool(word >> 12 & 1))


def multiply_accumulate(bank: Place) -> MicroInstruction:
    """Return an aligned MAC of a column of a bank with a register of inputs, into one of sums."""
    return MicroInstruction(Opcode.MAC, Place.SUMS, bank, Place.INPUTS, aligned=True)


def jump(count: int, back: int) -> MicroInstruction:
    """Return a jump so many times over so many instructions back; raises ValueError for what no word holds."""
    if not 0 <= count <= MOST_JUMPS or not 0 < back <= MOST_BACK:
        raise ValueError(f"a jump back over {back}, {count} times: a word holds {MOST_BACK} and {MOST_JUMPS}")
    return MicroInstruction(Opcode.JUMP, count=count, back=back)


STORE_ALL = MicroInstruction(Opcode.NOP, count=ALIGNED_RUNS)
EXIT = MicroInstruction(Opcode.EXIT)


def load_commands(instructions: tuple[MicroInstruction, ...], write: Command, first_column: int) -> tuple[Command, ...]:
    """Return the writes of a microkernel: copies of `write` with column and words."""
    words = [instruction.encode() for instruction in instructions]
    words += [EXIT.encode()] * (-len(words) % WORDS_OF_WRITE)
    return tuple(
        _with_words(write, first_column + start // WORDS_OF_WRITE, words[start : start + WORDS_OF_WRITE])
        for start in range(0, len(words), WORDS_OF_WRITE)
    )


def _with_words(write: Command, column: int, words: list[int]) -> Command:
    pairs = [_signed(words[place] | words[place + 1] << WORD_BITS) for place in range(0, WORDS_OF_WRITE, 2)]
    lane, buffer, register, data = (Affine(pair) for pair in pairs)
    return Command(Kind.WR8, write.bank, write.row, Affine(column), lane, buffer, register, data)


def _signed(pair: int) -> int:
    """Return 64 bits as an operand, which has a sign."""
    return pair - HALF * HALF if pair >= HALF * HALF // 2 else pair


def words_of(lane: int, buffer: int, register: int, data: int) -> tuple[int, ...]:
    """Return the words that the operands of a write carry."""
    return tuple(half for pair in (lane, buffer, register, data) for half in (pair % HALF, (pair >> WORD_BITS) % HALF))
