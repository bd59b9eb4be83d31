"""Named command streams for timing the engines; each is one channel's program on gddr6-aim."""

from collections.abc import Callable
from functools import cache
from itertools import groupby
from pathlib import Path
from random import Random

from configs.device import Device, load_device
from simulator.aim.replay import replay
from simulator.aim.requests import COMMAND_NAMES
from simulator.isa import Affine, Command, Instruction, Kind, Loop, Program

TRACE = Path(__file__).parents[1] / "fidelity" / "data" / "aim" / "cent_7b_c8_s128.trace.gz"
MIXED_COMMANDS = 100_000


@cache
def device() -> Device:
    """Return the device all streams run on: refresh is on."""
    return load_device("gddr6-aim")


@cache
def cent_block() -> Program:
    """Return what channel 0 issues for CENT's Llama-2-7B block at 128 tokens, equal neighbours as loops."""
    commands = replay(TRACE, load_device("gddr6-aim-compat")).commands
    mine = commands.channel == 0
    names = [COMMAND_NAMES[code] for code in commands.name[mine].tolist()]
    banks = (commands.bank_group[mine] * device().organisation.banks_per_group + commands.bank[mine]).tolist()
    issued = [(Kind(name), max(0, bank)) for name, bank in zip(names, banks, strict=True) if name in Kind.__members__]
    body: list[Instruction] = []
    for (kind, bank), run in groupby(issued):
        command, length = Command(kind, Affine(bank)), len(list(run))
        body.append(command if length == 1 else Loop(length, (command,)))
    return Program(tuple(body))


@cache
def mixed() -> Program:
    """Return single-bank work in random order, without loops: rows opened and closed, reads, writes, multiplies."""
    random, open_rows = Random(1), dict[int, int]()
    kinds = (Kind.RD, Kind.RD, Kind.WR, Kind.MAC, Kind.MAC, Kind.RDCP, Kind.WRCP, Kind.PRE)
    body: list[Instruction] = []
    for _ in range(MIXED_COMMANDS):
        bank = random.randrange(device().organisation.banks)
        kind = random.choice(kinds) if bank in open_rows else Kind.ACT
        row = open_rows.setdefault(bank, random.randrange(64))
        body.append(Command(kind, Affine(bank), Affine(row)))
        if kind is Kind.PRE:
            del open_rows[bank]
    return Program(tuple(body))


@cache
def matrix_rows() -> Program:
    """Return 20,000 rows multiplied one after the other: what a large matrix-vector product repeats."""
    row = Affine(0, ((0, 1),))
    visit = (Command(Kind.ACT16, row=row), Loop(64, (Command(Kind.MAC16, row=row),)), Command(Kind.PREA))
    return Program((Loop(20_000, visit),))


STREAMS: dict[str, Callable[[], Program]] = {"cent_block": cent_block, "mixed": mixed, "matrix_rows": matrix_rows}
