"""Are ordinary reads and writes written as Ramulator's frontend reads them, and nothing else?"""

from collections import Counter

import pytest

from configs.device import load_device
from configs.errors import UserError
from simulator.access_trace import Access, access_lines, accesses_of, parse_accesses, require_levels
from simulator.isa import Command, Kind, Loop, Program, affine

ORGANISATION = load_device("gddr6-aim").organisation
PROGRAM = Program(
    (
        Command(Kind.WAIT),
        Command(Kind.ACT, bank=affine(6), row=affine(9)),
        Loop(2, (Command(Kind.WR, bank=affine(6), row=affine(9), column=affine(3, v0=1)),)),
        Command(Kind.RD, bank=affine(6), row=affine(9), column=affine(4)),
        Command(Kind.PRE, bank=affine(6)),
        Loop(5, (Command(Kind.MAC16),)),
    )
)


def test_an_address_is_row_bank_bank_group_column_and_byte() -> None:
    left_out: Counter[str] = Counter()
    accesses = list(accesses_of(PROGRAM, ORGANISATION, left_out))
    assert accesses == [Access("ST", 9, 2, 1, 3), Access("ST", 9, 2, 1, 4), Access("LD", 9, 2, 1, 4)]
    assert left_out == {"ACT": 1, "PRE": 1, "MAC16": 5}
    first, *_ = access_lines(accesses, ORGANISATION)
    # 14 bits of row, 2 of bank, 2 of bank group, 6 of column, 5 of byte.
    assert first == f"ST {0b1001_10_01_000011_00000:#x}\n"


def test_columns_are_those_of_the_device_where_values_are_narrow() -> None:
    narrow = Program(PROGRAM.body, accesses_per_column=2)
    assert [access.column for access in accesses_of(narrow, ORGANISATION, Counter())] == [1, 2, 2]


def test_parsing_what_was_written_gives_the_accesses() -> None:
    accesses = (Access("LD", 16383, 3, 1, 63), Access("ST", 0, 0, 0, 0), Access("ST", 7, 0, 3, 32))
    assert parse_accesses("".join(access_lines(accesses, ORGANISATION)), ORGANISATION) == accesses


@pytest.mark.parametrize("line", ["# comment", "", "R 0,0,0,0,0", "LD 64", "LD  0x40", "LD 0x1", "ST 0x20000000"])
def test_what_is_no_access_of_the_device_is_refused(line: str) -> None:
    with pytest.raises(UserError, match="line 2"):
        parse_accesses(f"ST 0x0\n{line}\n", ORGANISATION)


def test_devices_with_other_levels_or_without_bits_for_them_are_refused() -> None:
    require_levels(ORGANISATION, "gddr6-aim")
    with pytest.raises(UserError, match="one pseudo channel"):
        require_levels(load_device("hbm3").organisation, "hbm3")
    with pytest.raises(UserError, match="powers of two"):
        require_levels(ORGANISATION.model_copy(update={"bank_groups": 3}), "uneven")
