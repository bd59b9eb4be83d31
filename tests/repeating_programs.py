"""Random programs of long loops around several commands, which engines can skip: rows move, or do not, or apart."""

from dataclasses import dataclass
from random import Random

from configs.device import Device
from simulator.isa import Affine, Command, Instruction, Kind, Loop, Program

Block = tuple[Instruction, ...]


def repeating_program(random: Random, device: Device) -> Program:
    """Return a program for an AiM device that is legal from any state with closed banks and memory mode."""
    writer = _Writer(random, device)
    blocks = [writer.loop(()) for _ in range(random.randint(1, 3))]
    return Program(tuple(instruction for block in blocks for instruction in block))


@dataclass(frozen=True, slots=True)
class _Writer:
    random: Random
    device: Device

    def loop(self, counts: tuple[int, ...]) -> Block:
        count = self.random.choice((6, 9, 17, 40)) if counts else self.random.choice((8, 30, 90))
        kinds = [self._rows, self._rows, self._banks, self._registers]
        bodies = [self.random.choice(kinds)((*counts, count)) for _ in range(self.random.randint(1, 2))]
        if not counts and self.random.random() < 0.3:
            bodies.append(self.loop((*counts, count)))
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
        return Affine(self.random.randint(0, room), tuple(terms))

    def _run(self, kind: Kind, bank: Affine, row: Affine, longest: int) -> Instruction:
        return Loop(self.random.randint(1, longest), (Command(kind, bank, row),))

    def _rows(self, counts: tuple[int, ...]) -> Block:
        row = self._row(counts)
        work = self._run(self.random.choice((Kind.MAC16, Kind.MAC16, Kind.EWMUL16)), Affine(), row, 64)
        return (Command(Kind.ACT16, row=row), work, Command(Kind.PREA))

    def _banks(self, counts: tuple[int, ...]) -> Block:
        """Open a few banks at rows that may move apart, use them and close them, all with a fixed bank each."""
        banks = self.device.organisation.banks
        chosen = [Affine(bank) for bank in self.random.sample(range(banks), min(banks, self.random.randint(1, 3)))]
        rows = [self._row(counts) for _ in chosen]
        parts: list[Instruction] = [Command(Kind.ACT, bank, row) for bank, row in zip(chosen, rows, strict=True)]
        kind = self.random.choice((Kind.RD, Kind.WR, Kind.MAC))
        parts.extend(self._run(kind, bank, row, 12) for bank, row in zip(chosen, rows, strict=True))
        parts.extend(Command(Kind.PRE, bank) for bank in chosen)
        return tuple(parts)

    def _registers(self, counts: tuple[int, ...]) -> Block:
        kinds = self.random.sample((Kind.WRGB, Kind.WRMAC16, Kind.RDMAC16), self.random.randint(1, 2))
        return (Command(Kind.TMOD), *(self._run(kind, Affine(), Affine(), 40) for kind in kinds), Command(Kind.TMOD))
