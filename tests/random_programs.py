"""Random legal programs: nested loops, events, all-bank, group and single-bank work, register mode, copies.

Every block starts and ends with all banks closed and in memory mode, so that blocks can follow and nest at will.
"""

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from simulator.isa import Affine, Command, Instruction, Kind, Loop, Program

COLUMN_KINDS = (Kind.RD, Kind.WR, Kind.MAC, Kind.RDCP, Kind.WRCP)
ALL_BANK_KINDS = (Kind.MAC16, Kind.MAC16, Kind.MAC16, Kind.EWMUL16, Kind.AF16)
REGISTER_KINDS = (Kind.WRGB, Kind.WRMAC16, Kind.RDMAC16, Kind.RDAF16)
EVENTS = 4


def random_events(random: Random, latest: int = 12000) -> NDArray[np.int64]:
    """Return the arrival cycles of the events that random programs wait for."""
    return np.array([random.randrange(latest) for _ in range(EVENTS)], dtype=np.int64)


def random_program(random: Random, device: Device) -> Program:
    """Return a program that is legal on the device from any state with closed banks and memory mode."""
    return Program(_Writer(random, device).block(()))


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes blocks; `counts` holds the repetitions of the loops around."""

    random: Random
    device: Device

    def block(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        parts: list[Instruction] = []
        for _ in range(self.random.randint(1, 4 if not counts else 2)):
            kinds = [self._all_banks, self._single_banks, self._bank_loop, self._group, self._register, self._other]
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

    def _all_banks(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        row = self._operand(counts, self.device.organisation.rows)
        parts: list[Instruction] = [Command(Kind.ACT16, row=row)]
        for _ in range(self.random.randint(1, 3)):
            if self.random.random() < 0.2:
                parts.extend(self._register(counts))
            parts.append(self._repeated(counts, Command(self.random.choice(ALL_BANK_KINDS), row=row), 300))
        parts.append(self.random.choice((Command(Kind.PREA), Command(Kind.WRA16, row=row))))
        return tuple(parts)

    def _single_banks(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        random, organisation = self.random, self.device.organisation
        chosen = random.sample(range(organisation.banks), random.randint(1, min(5, organisation.banks)))
        rows = {bank: self._operand(counts, organisation.rows) for bank in chosen}
        parts: list[Instruction] = [Command(Kind.ACT, Affine(bank), rows[bank]) for bank in chosen]
        for _ in range(random.randint(0, 6)):
            bank = random.choice(chosen)
            parts.append(self._repeated(counts, Command(random.choice(COLUMN_KINDS), Affine(bank), rows[bank]), 40))
        if random.random() < 0.3:
            return (*parts, Command(Kind.PREA))
        for bank in chosen:
            kind = random.choice((Kind.PRE, Kind.RDA, Kind.WRA))
            parts.append(Command(kind, Affine(bank), rows[bank] if kind is not Kind.PRE else Affine()))
        return tuple(parts)

    def _bank_loop(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        """Open, use and close all banks in loops whose variable is the bank."""
        banks, depth = self.device.organisation.banks, len(counts)
        row = self._operand((*counts, banks), self.device.organisation.rows)
        bank = Affine(0, ((depth, 1),))
        kind = self.random.choice(COLUMN_KINDS)
        return (
            Loop(banks, (Command(Kind.ACT, bank, row),)),
            Loop(banks, (Command(kind, bank, row),)),
            Loop(banks, (self._repeated((*counts, banks), Command(kind, bank, row), 6),)),
            self.random.choice((Command(Kind.PREA), Loop(banks, (Command(Kind.PRE, bank),)))),
        )

    def _group(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        organisation = self.device.organisation
        group = self.random.randrange(organisation.bank_groups) * organisation.banks_per_group
        banks = [Affine(group + index) for index in range(organisation.banks_per_group)]
        row = self._operand(counts, organisation.rows)
        parts: list[Instruction] = [Command(Kind.ACT4, self.random.choice(banks), row)]
        for _ in range(self.random.randint(0, 4)):
            command = Command(self.random.choice(COLUMN_KINDS), self.random.choice(banks), row)
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

    def _other(self, counts: tuple[int, ...]) -> tuple[Instruction, ...]:
        banks = self.device.organisation.banks
        event = Command(self.random.choice((Kind.SIGNAL, Kind.WAIT)), event=self._operand(counts, EVENTS))
        loops = Loop(self.random.randint(0, 60), (Command(Kind.PRE, self._operand(counts, banks)),))
        modes = Loop(2 * self.random.randint(0, 3), (Command(Kind.TMOD),))
        return (self.random.choice((event, event, event, loops, modes, Command(Kind.PREA), Command(Kind.AF16))),)
