"""Random programs of long loops around several commands, which engines can skip.

Rows move with the loop, stay, or move apart; other rows are open from before the loop, some of which the moving ones
meet; events stand around loops.
"""

from dataclasses import dataclass
from functools import partial
from random import Random

from configs.device import Device
from simulator.isa import Affine, Command, Instruction, Kind, Loop, Program
from simulator.timing_table import TimingTable

Block = tuple[Instruction, ...]
EVENTS = 4


def repeating_program(random: Random, device: Device, table: TimingTable) -> Program:
    """Return a program that is legal from any state with closed banks and memory mode."""
    writer = _Writer(random, device, table)
    blocks: list[Instruction] = []
    for _ in range(random.randint(1, 2)):
        if random.random() < 0.3:
            blocks.append(Command(random.choice((Kind.WAIT, Kind.SIGNAL)), event=Affine(random.randrange(EVENTS))))
        blocks.extend(writer.framed_loop())
    return Program(tuple(blocks))


@dataclass(frozen=True, slots=True)
class _Writer:
    random: Random
    device: Device
    table: TimingTable

    def framed_loop(self) -> Block:
        """Return a loop, with banks open around it that it leaves alone."""
        banks, random = list(range(self.table.addressing.banks)), self.random
        kept = random.sample(banks, random.choice((0, 0, 1, len(banks) - 1))) if len(banks) > 1 else []
        row = random.randrange(min(200, self.device.organisation.rows))
        before = [command for bank in kept for command in self._open(Affine(bank), Affine(row))]
        after = [Command(Kind.PRE, Affine(bank)) for bank in kept]
        return (*before, *self._loop((), [bank for bank in banks if bank not in kept]), *after)

    def _loop(self, counts: tuple[int, ...], free: list[int]) -> Block:
        count = self.random.choice((6, 9, 17, 40)) if counts else self.random.choice((8, 30, 90, 160))
        kinds = [self._banks]
        if self.table.has(Kind.ACT16):
            kinds += [self._registers]
            kinds += [self._rows] * 2 if len(free) == self.table.addressing.banks else []
        if self.table.has(Kind.ACT8) and len(free) == self.table.addressing.banks:
            kinds += [self._every_other_bank] * 2
        bodies = [self.random.choice(kinds)((*counts, count), free) for _ in range(self.random.randint(1, 2))]
        if not counts and self.random.random() < 0.3:
            bodies.append(self._loop((*counts, count), free))
        return (Loop(count, tuple(instruction for body in bodies for instruction in body)),)

    def _row(self, counts: tuple[int, ...]) -> Affine:
        """Return a row that moves with the loops around as long as the bank has rows."""
        room = self.device.organisation.rows - 1
        terms = []
        for depth, count in enumerate(counts):
            step = self.random.choice((0, 1, 1, 2))
            if step and step * (count - 1) <= room:
                room -= step * (count - 1)
                terms.append((depth, step))
        return Affine(self.random.randint(0, min(room, 20)), tuple(terms))

    def _run(self, kind: Kind, bank: Affine, row: Affine, longest: int) -> Instruction:
        return Loop(self.random.randint(1, longest), (Command(kind, bank, row),))

    def _open(self, bank: Affine, row: Affine) -> Block:
        halves = (Kind.ACT1, Kind.ACT2) if self.table.has(Kind.ACT1) else (Kind.ACT,)
        return tuple(Command(kind, bank, row) for kind in halves)

    def _every_other_bank(self, counts: tuple[int, ...], _: list[int]) -> Block:
        """Visit an even row, an odd one that opens meanwhile, and perhaps the even one again."""
        even, odd, random = Affine(0), Affine(1), self.random
        rows = {even: self._row(counts), odd: self._row(counts)}
        write = partial(self._run, random.choice((Kind.WR8, Kind.ST8)))
        return (
            Command(Kind.ACT8, even, rows[even]),
            self._run(Kind.RD8, even, rows[even], 16),
            Command(Kind.ACT8, odd, rows[odd]),
            random.choice((write(odd, rows[odd], 8), self._run(Kind.RD8, odd, rows[odd], 32))),
            *((self._run(Kind.RD8, even, rows[even], 16),) if random.random() < 0.5 else ()),
            *random.choice(((Command(Kind.PREA),), (Command(Kind.PRE8, odd), Command(Kind.PRE8, even)))),
        )

    def _rows(self, counts: tuple[int, ...], _: list[int]) -> Block:
        row = self._row(counts)
        if self.table.has(Kind.LATCH16):
            multiply = partial(self._run, Kind.MACL16, Affine(), row)
            first = (Command(Kind.ACT16, row=row), Command(Kind.LATCH16, row=row), multiply(64))
            # The row that is opened meanwhile is latched for nothing.
            second = (Command(Kind.ACT16, row=row), multiply(64), Command(Kind.LATCH16, row=row))
            return (*first, *(second if self.random.random() < 0.7 else ()))
        work = self._run(self.random.choice((Kind.MAC16, Kind.MAC16, Kind.EWMUL16)), Affine(), row, 64)
        end = self.random.choice((Command(Kind.PREA), Command(Kind.PREA), Command(Kind.WRA16, row=row)))
        return (Command(Kind.ACT16, row=row), work, end)

    def _banks(self, counts: tuple[int, ...], free: list[int]) -> Block:
        """Open a few banks at rows that may move apart, use them and close them, all with a fixed bank each."""
        chosen = [Affine(bank) for bank in self.random.sample(free, min(len(free), self.random.randint(1, 3)))]
        rows = [self._row(counts) for _ in chosen]
        pairs = list(zip(chosen, rows, strict=True))
        parts: list[Instruction] = [command for bank, row in pairs for command in self._open(bank, row)]
        kind = self.random.choice([kind for kind in (Kind.RD, Kind.WR, Kind.MAC) if self.table.has(kind)])
        parts.extend(self._run(kind, bank, row, self.random.choice((12, 200))) for bank, row in pairs)
        for bank, row in pairs:
            end = self.random.choice((Kind.PRE, Kind.PRE, Kind.RDA if self.table.has(Kind.RDA) else Kind.PRE))
            parts.append(Command(end, bank, row if end is Kind.RDA else Affine()))
        return tuple(parts)

    def _registers(self, counts: tuple[int, ...], _: list[int]) -> Block:
        kinds = self.random.sample((Kind.WRGB, Kind.WRMAC16, Kind.RDMAC16), self.random.randint(1, 2))
        return (Command(Kind.TMOD), *(self._run(kind, Affine(), Affine(), 40) for kind in kinds), Command(Kind.TMOD))
