"""How a channel of HBM-PIM enters and leaves all-bank mode, and the commands that every kernel there is made of."""

from dataclasses import dataclass

from compiler.emission import Block
from configs.microkernel_units import BANKS_OF_UNIT
from simulator.hbm_pim.microkernel import MicroInstruction, load_commands
from simulator.hbm_pim.registers import (
    ENTER_ROW,
    EVEN,
    EXECUTION_COLUMN,
    LEAVE_ROW,
    MICROKERNEL_COLUMN,
    MODE_COLUMN,
    ODD,
    WINDOW_ROW,
    entry_banks,
)
from simulator.isa import Affine, Command, Kind

CLOSE_ALL = Command(Kind.PREA)


@dataclass(frozen=True, slots=True)
class AllBankMode:
    """A channel of so many units, whose rows from the first reserved one on hold no data."""

    units: int
    first_reserved: int

    @property
    def window(self) -> Affine:
        """The row of the register windows."""
        return self.reserved(WINDOW_ROW)

    def reserved(self, row: int) -> Affine:
        """Return a reserved row."""
        return Affine(self.first_reserved + row)

    def enter(self, instructions: tuple[MicroInstruction, ...]) -> Block:
        """Enter, write a microkernel and switch execution on; the window of odd banks stays open."""
        row = self.reserved(ENTER_ROW)
        banks = [Affine(bank) for bank in entry_banks(BANKS_OF_UNIT * self.units)]
        opened = [Command(Kind.ACT, bank=bank, row=row) for bank in banks]
        written = [Command(Kind.WR, bank=bank, row=row, column=Affine(MODE_COLUMN)) for bank in banks]
        words = load_commands(instructions, self.window_write(0), MICROKERNEL_COLUMN)
        switched = (self.activate(EVEN, self.window), self.switch(True), self.close(EVEN))
        return (*opened, *written, CLOSE_ALL, self.activate(ODD, self.window), *words, *switched)

    def leave(self) -> Block:
        """Switch execution off and leave; even banks are closed before."""
        row, column = self.reserved(LEAVE_ROW), Affine(MODE_COLUMN)
        left = [
            command
            for bank in (EVEN, ODD)
            for command in (self.activate(bank, row), Command(Kind.WR8, Affine(bank), row, column))
        ]
        return (self.activate(EVEN, self.window), self.switch(False), CLOSE_ALL, *left, CLOSE_ALL)

    def window_write(self, column: int, data: Affine | None = None) -> Command:
        """Return a write to a register window."""
        return Command(Kind.WR8, Affine(ODD), self.window, Affine(column), data=data or Affine())

    def switch(self, on: bool) -> Command:
        """Return the switch of execution; switching on clears the sums."""
        column, value = Affine(EXECUTION_COLUMN), Affine(int(on))
        return Command(Kind.WR8, Affine(EVEN), self.window, column, lane=value, register=value)

    @staticmethod
    def activate(bank: int, row: Affine) -> Command:
        """Return the activate of all even or all odd banks."""
        return Command(Kind.ACT8, bank=Affine(bank), row=row)

    @staticmethod
    def close(bank: int) -> Command:
        """Return the precharge of all even or all odd banks."""
        return Command(Kind.PRE8, bank=Affine(bank))
