"""Random legal programs for any device: nested loops, events, single-bank work over pseudo channels and ranks.

Where the device has them: all-bank and group work, register mode, copies, two-part activates, refreshes of its own.

Every block starts and ends with all banks closed and in memory mode, so that blocks can follow and nest at will.
"""

from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.isa import REFRESHES, Affine, Command, Instruction, Kind, Loop, Program
from simulator.timing_table import TimingTable, timing_table

COLUMN_KINDS = (Kind.RD, Kind.WR, Kind.MAC, Kind.RDCP, Kind.WRCP)
ALL_BANK_KINDS = (Kind.MAC16, Kind.MAC16, Kind.MAC16, Kind.SCALE16, Kind.EWMUL16, Kind.AF16)
REGISTER_KINDS = (Kind.WRGB, Kind.WRMAC16, Kind.RDMAC16, Kind.RDAF16)
# What starts the data clock before a column command, where the device has it.
DATA_CLOCK = {Kind.RD: Kind.CAS_RD, Kind.RDA: Kind.CAS_RD, Kind.WR: Kind.CAS_WR, Kind.WRA: Kind.CAS_WR}
EVENTS = 4
MOST_BANKS = 16  # of one loop over banks


def random_events(random: Random, latest: int = 20000) -> NDArray[np.int64]:
    """Return the arrival cycles of the events that random programs wait for."""
    return np.array([random.randrange(latest) for _ in range(EVENTS)], dtype=np.int64)


def random_program(random: Random, device: Device) -> Program:
    """Return a program that is legal on the device from any state with closed banks and memory mode."""
    return Program(_Writer(random, device, timing_table(device)).block(()))


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes blocks; the tuples passed down hold the repetitions of the loops around."""

    random: Random
    device: Device
    table: TimingTable
    columns: tuple[Kind, ...] = field(init=False)
    all_banks: tuple[Kind, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(kind for kind in COLUMN_KINDS if self.table.has(kind)))
        object.__setattr__(self, "all_banks", tuple(kind for kind in ALL_BANK_KINDS if self.table.has(kind)))

    def block(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        parts: list[Instruction] = []
        for _ in range(self.random.randint(1, 4 if not counts else 2)):
            kinds = [self._single_banks, self._bank_loop, self._other]
            if self.table.has(Kind.ACT16):
                kinds += [self._all_banks, self._group, self._register]
            else:
                kinds.append(self._refreshes)
            if self.table.has(Kind.ACT8):
                kinds.append(self._every_other_bank)
            if len(counts) < 2:
                kinds.append(self._nested)
            parts.extend(self.random.choice(kinds)(counts))
        return tuple(parts)

    def _nested(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        count = self.random.choice((0, 1, 2, 3))
        return (Loop(count, self.block((*counts, count))),)

    def _operand(self, counts: tuple[int, ...], limit: int) -> Affine:
        """Return an operand that moves with the loops around it and stays below the limit."""
        room = limit - 1
        terms = []
        for depth, count in enumerate(counts):
            coefficient = self.random.choice((0, 0, 1, 2))
            if coefficient and coefficient * max(0, count - 1) <= room:
                room -= coefficient * max(0, count - 1)
                terms.append((depth, coefficient))
        return Affine(self.random.randint(0, room), tuple(terms))

    def _repeated(self, counts: tuple[int, ...], command: Command, longest: int) -> Instruction:
        """Return a loop over one command, its column running where the row has room."""
        count = self.random.choice((0, 1, 2, self.random.randint(3, longest)))
        column = self._operand((*counts, count), self.device.organisation.columns)
        return Loop(count, (Command(command.kind, command.bank, command.row, column),))

    def _activate(self, bank: Affine, row: Affine) -> tuple[Instruction, ...]:
        """Return what opens a row: one command, or two halves (other commands may come between, these do not)."""
        kinds = (Kind.ACT1, Kind.ACT2) if self.table.has(Kind.ACT1) else (Kind.ACT,)
        return tuple(Command(kind, bank, row) for kind in kinds)

    def _data_clock(self, kind: Kind, bank: Affine) -> tuple[Instruction, ...]:
        starts = DATA_CLOCK.get(kind)
        return (Command(starts, bank),) if starts is not None and self.table.has(starts) else ()

    def _precharge_all(self, banks: list[int]) -> tuple[Instruction, ...]:
        """Return one command for every instance of what PREA addresses that one of the banks lies in."""
        firsts = sorted({self.table.addressing.banks_of(Kind.PREA, bank).start for bank in banks})
        return tuple(Command(Kind.PREA, Affine(first)) for first in firsts)

    def _all_banks(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        row = self._operand(counts, self.device.organisation.rows)
        if self.table.has(Kind.LATCH16) and self.random.random() < 0.7:
            return self._latched(counts, row)
        parts: list[Instruction] = [Command(Kind.ACT16, row=row)]
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.2:
                parts.extend(self._register(counts))
            parts.append(self._repeated(counts, Command(self.random.choice(self.all_banks), row=row), 300))
        parts.append(self.random.choice((Command(Kind.PREA), Command(Kind.WRA16, row=row))))
        return tuple(parts)

    def _latched(self, counts: tuple[int, ...], row: Affine) -> tuple[Instruction, ...]:
        """Latch a row and multiply it, with another row opened meanwhile, or register work, or both."""
        random = self.random
        multiply, following = Command(Kind.MACL16, row=row), self._operand(counts, self.device.organisation.rows)
        parts: list[Instruction] = [Command(Kind.ACT16, row=row), Command(Kind.LATCH16, row=row)]
        parts.append(self._repeated(counts, multiply, 100))
        if random.random() < 0.3:
            parts.extend(self._register(counts))
        if random.random() < 0.7:
            parts.extend((Command(Kind.ACT16, row=following), self._repeated(counts, multiply, 100)))
            end = random.choice((Kind.PREA, Kind.WRA16, Kind.LATCH16, Kind.LATCH16))
            parts.append(Command(end, row=following))
            multiply = Command(Kind.MACL16, row=following) if end is Kind.LATCH16 else multiply
        return (*parts, self._repeated(counts, multiply, 10))

    def _every_other_bank(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        """Open even banks, odd ones or both, access their columns by turns, and close them in any order."""
        random = self.random
        chosen = random.choice(((0,), (1,), (0, 1), (1, 0)))
        rows = {bank: self._operand(counts, self.device.organisation.rows) for bank in chosen}
        parts: list[Instruction] = [Command(Kind.ACT8, Affine(bank), rows[bank]) for bank in chosen]
        for _ in range(random.randint(1, 5)):
            bank, kind = random.choice(chosen), random.choice((Kind.RD8, Kind.RD8, Kind.WR8, Kind.ST8))
            parts.append(self._repeated(counts, Command(kind, Affine(bank), rows[bank]), 60))
        one_by_one = tuple(Command(Kind.PRE8, Affine(bank)) for bank in random.sample(chosen, len(chosen)))
        return (*parts, *random.choice((one_by_one, self._precharge_all([0]))))

    def _single_banks(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        random, organisation = self.random, self.device.organisation
        chosen = random.sample(range(organisation.banks), random.randint(1, min(6, organisation.banks)))
        rows = {bank: self._operand(counts, organisation.rows) for bank in chosen}
        opening = [self._activate(Affine(bank), rows[bank]) for bank in chosen]
        if random.random() < 0.5:  # first halves before second ones: they may be interleaved
            opening = [tuple(half) for half in zip(*opening, strict=True)]
        parts: list[Instruction] = [command for commands in opening for command in commands]
        for _ in range(random.randint(0, 8)):
            bank, kind = random.choice(chosen), random.choice(self.columns)
            parts.extend(self._data_clock(kind, Affine(bank)))
            parts.append(self._repeated(counts, Command(kind, Affine(bank), rows[bank]), 40))
        if random.random() < 0.3:
            return (*parts, *self._precharge_all(chosen))
        for bank in chosen:
            kind = random.choice(tuple(kind for kind in (Kind.PRE, Kind.RDA, Kind.WRA) if self.table.has(kind)))
            parts.extend(self._data_clock(kind, Affine(bank)))
            parts.append(Command(kind, Affine(bank), rows[bank] if kind is not Kind.PRE else Affine()))
        return tuple(parts)

    def _bank_loop(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        """Open, use and close many banks in loops whose variable is the bank."""
        depth, all_banks = len(counts), self.device.organisation.banks
        banks = min(all_banks, MOST_BANKS)
        first = self.random.randrange(all_banks - banks + 1)
        row = self._operand((*counts, banks), self.device.organisation.rows)
        bank = Affine(first, ((depth, 1),))
        kind = self.random.choice(self.columns)
        closing = self._precharge_all(list(range(first, first + banks)))
        return (
            Loop(banks, self._activate(bank, row)),
            Loop(banks, (*self._data_clock(kind, bank), Command(kind, bank, row))),
            Loop(banks, (self._repeated((*counts, banks), Command(kind, bank, row), 6),)),
            *self.random.choice((closing, (Loop(banks, (Command(Kind.PRE, bank),)),))),
        )

    def _group(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        organisation = self.device.organisation
        group = self.random.randrange(organisation.bank_groups) * organisation.banks_per_group
        banks = [Affine(group + index) for index in range(organisation.banks_per_group)]
        row = self._operand(counts, organisation.rows)
        parts: list[Instruction] = [Command(Kind.ACT4, self.random.choice(banks), row)]
        for _ in range(self.random.randint(0, 4)):
            command = Command(self.random.choice(self.columns), self.random.choice(banks), row)
            parts.append(self._repeated(counts, command, 30))
        if self.random.random() < 0.5:
            return (*parts, Command(Kind.PRE4, self.random.choice(banks)))
        return (*parts, *(Command(Kind.PRE, bank) for bank in banks))

    def _register(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        work = (
            self._repeated(counts, Command(self.random.choice(REGISTER_KINDS)), 150)
            for _ in range(self.random.randint(0, 3))
        )
        return (Command(Kind.TMOD), *work, Command(Kind.TMOD))

    def _refreshes(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        """Return refreshes that the program itself asks for, as refresh management does."""
        kinds = sorted(kind for kind in REFRESHES if self.table.has(kind))
        banks = self.device.organisation.banks
        return tuple(
            Command(self.random.choice(kinds), self._operand(counts, banks)) for _ in range(self.random.randint(1, 3))
        )

    def _other(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        banks = self.device.organisation.banks
        event = Command(self.random.choice((Kind.SIGNAL, Kind.WAIT)), event=self._operand(counts, EVENTS))
        loops = Loop(self.random.randint(0, 60), (Command(Kind.PRE, self._operand(counts, banks)),))
        precharge = Command(Kind.PREA, self._operand(counts, banks))
        choices: list[Instruction] = [event, event, event, loops, precharge]
        if self.table.has(Kind.TMOD):
            choices += [Loop(2 * self.random.randint(0, 3), (Command(Kind.TMOD),)), Command(Kind.AF16)]
        return (self.random.choice(choices),)
