"""Ordinary reads and writes as the public Ramulator 2 takes them: the text of its frontend `LoadStoreTrace`.

A line reads `LD` or `ST`, a blank, and an address in bytes. Its address mapper `RoBaRaCoCh`, over one channel, takes it
apart: from the top row, bank, bank group, column, byte. There are no comments, no times and no other commands: what the
units do cannot be said, and Ramulator sends a line a cycle and schedules it anew. Its frontend `ReadWriteTrace`, whose
lines name the levels, gives requests no address in bytes, so that its controller merges all writes that wait.
Source: github.com/CMU-SAFARI/ramulator2, loadstore_trace.cpp, ro_ba_ra_co_ch.cpp and controller_base.cpp.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from configs.device import Organisation
from configs.errors import UserError
from simulator.isa import EVENT_KINDS, Kind, Program, walk

OPERATION = {Kind.RD: "LD", Kind.RDA: "LD", Kind.WR: "ST", Kind.WRA: "ST"}
LINE = re.compile(r"(LD|ST) (0x[0-9a-f]+)", re.ASCII)


class Access(NamedTuple):
    """One line, its address taken apart; `column` counts accesses of the data bus."""

    operation: str
    row: int
    bank: int
    bank_group: int
    column: int


def accesses_of(program: Program, organisation: Organisation, left_out: Counter[str]) -> Iterator[Access]:
    """Yield the reads and writes of a program on one channel, and count by kind what has no line."""
    for command in walk(program):
        operation = OPERATION.get(command.kind)
        if operation is not None:
            group, bank = divmod(command.bank, organisation.banks_per_group)
            yield Access(operation, command.row, bank, group, command.column // program.accesses_per_column)
        elif command.kind not in EVENT_KINDS:
            left_out[str(command.kind)] += 1


def require_levels(organisation: Organisation, name: str) -> None:
    """Raise UserError for a device whose addresses the mapper does not take apart into the levels above."""
    if organisation.pseudo_channels * organisation.ranks > 1:
        raise UserError(
            where=f"--hardware {name}",
            expected="one pseudo channel and one rank, as GDDR6 has",
            found=f"{organisation.pseudo_channels} and {organisation.ranks}",
            way_out="take another device, or --emit commands",
        )
    uneven = [size for size in _sizes(organisation) if size & (size - 1)]
    if uneven:
        raise UserError(
            where=f"--hardware {name}",
            expected="powers of two of banks, bank groups, columns and their bytes, which have bits of an address",
            found=str(uneven[0]),
            way_out="take another device, or --emit commands",
        )


def access_lines(accesses: Iterable[Access], organisation: Organisation) -> Iterator[str]:
    """Yield the lines of a trace."""
    sizes = _sizes(organisation)
    for operation, address, *places in accesses:
        for place, size in zip((*places, 0), sizes, strict=True):
            address = address * size + place
        yield f"{operation} {address:#x}\n"


def parse_accesses(text: str, organisation: Organisation, source: str = "trace") -> tuple[Access, ...]:
    """Return the accesses of a trace; raises UserError, with the line, for what is none of this device."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = LINE.fullmatch(line)
        if match is None:
            raise _error(f"{source}, line {number}", "`LD ADDRESS` or `ST ADDRESS` in hexadecimal", repr(line))
        rest, places = int(match[2], 16), []
        for size in reversed(_sizes(organisation)):
            rest, place = divmod(rest, size)
            places.append(place)
        byte, column, group, bank = places
        if byte or rest >= organisation.rows:
            expected = f"an address of a whole column in a bank of {organisation.rows} rows"
            raise _error(f"{source}, line {number}", expected, match[2])
        found.append(Access(match[1], rest, bank, group, column))
    return tuple(found)


def _sizes(organisation: Organisation) -> tuple[int, int, int, int]:
    """Return how many there are of each level below the row, from the top."""
    return organisation.banks_per_group, organisation.bank_groups, organisation.columns, organisation.column_bytes


def _error(where: str, expected: str, found: str) -> UserError:
    return UserError(where=where, expected=expected, found=found, way_out="mend the line")
