"""HBM-PIM units on values: modes, windows, microkernels, addresses that name registers, rounding after everything."""

import numpy as np
import pytest

from simulator.functional import ChannelSizes, execute, fresh_channel, host_memory
from simulator.functional_errors import (
    EventError,
    FunctionalError,
    ModeError,
    RowStateError,
    UnsupportedCommandError,
    UnwrittenValueError,
)
from simulator.hbm_pim.microkernel import (
    STORE_ALL,
    MicroInstruction,
    Opcode,
    Place,
    decode,
    jump,
    load_commands,
    multiply_accumulate,
)
from simulator.isa import Affine, Command, Kind, Program

SIZES = ChannelSizes(banks=4, rows=4, columns=64, lanes=16, buffer_columns=8, accumulators=8, microkernel_words=32)
ENTER, LEAVE, WINDOW = (SIZES.rows + offset for offset in (125, 126, 127))
EVEN, ODD = 0, 1


def command(kind, **operands):
    return Command(kind, **{name: Affine(value) for name, value in operands.items()})


def entered():
    banks = (0, 4, 1, 5)
    return (
        *(command(Kind.ACT, bank=bank, row=ENTER) for bank in banks),
        *(command(Kind.WR, bank=bank, row=ENTER, column=31) for bank in banks),
        command(Kind.PREA),
    )


def loaded(*instructions):
    """Enter all-bank mode and switch execution of these instructions on, the odd window open."""
    write = command(Kind.WR8, bank=ODD, row=WINDOW)
    return (
        *entered(),
        command(Kind.ACT8, bank=ODD, row=WINDOW),
        *load_commands(instructions, write, 4),
        command(Kind.ACT8, bank=EVEN, row=WINDOW),
        command(Kind.WR8, bank=EVEN, row=WINDOW, lane=1, register=1),
        command(Kind.PRE8, bank=EVEN),
    )


def run(*commands, inputs=None, channel=None, **events):
    channel = channel or fresh_channel(SIZES)
    memory = host_memory(
        SIZES, np.ones((8, 16), dtype=np.float32) if inputs is None else inputs, output_entries=4, **events
    )
    execute(Program(commands), channel, memory)
    return channel, memory


def inputs_written(data=0):
    return tuple(command(Kind.WR8, bank=ODD, row=WINDOW, column=8 + register, data=data) for register in range(8))


def multiplied(bank, row, columns):
    return (
        command(Kind.ACT8, bank=bank, row=row),
        *(command(Kind.RD8, bank=bank, row=row, column=column) for column in columns),
    )


def test_all_bank_commands_are_refused_before_the_mode_is_entered():
    with pytest.raises(ModeError, match="expected all-bank mode, found single-bank mode"):
        run(command(Kind.ACT8, bank=EVEN, row=0))


def test_single_bank_commands_are_refused_in_all_bank_mode():
    with pytest.raises(ModeError, match="expected single-bank mode, found all-bank mode"):
        run(*entered(), command(Kind.ACT, bank=0, row=0))


def test_the_mode_is_entered_only_when_all_four_rows_were_written_and_closed():
    without_one = tuple(item for item in entered() if not (item.kind is Kind.WR and item.bank == Affine(5)))
    with pytest.raises(ModeError):
        run(*without_one, command(Kind.ACT8, bank=EVEN, row=0))
    with pytest.raises(ModeError):
        run(*entered()[:-1], command(Kind.ACT8, bank=ODD, row=0))


def test_writing_the_exit_row_of_both_parities_leaves_the_mode():
    left = [
        item
        for bank in (EVEN, ODD)
        for item in (command(Kind.ACT8, bank=bank, row=LEAVE), command(Kind.WR8, bank=bank, row=LEAVE, column=31))
    ]
    channel, _ = run(*entered(), *left, command(Kind.PREA))
    assert channel.register_mode[0] == 0
    channel, _ = run(*entered(), *left[:2], command(Kind.PREA))
    assert channel.register_mode[0] == 1


def test_the_address_names_the_registers_of_an_aligned_multiply():
    channel = fresh_channel(SIZES)
    channel.cells[1] = 3
    inputs = np.arange(1, 9, dtype=np.float32)[:, None].repeat(16, axis=1)
    written = [command(Kind.WR8, bank=ODD, row=WINDOW, column=8 + register, data=register) for register in range(8)]
    even = multiply_accumulate(Place.EVEN_BANK)
    run(*loaded(even), *written, *multiplied(EVEN, 1, (16 + 5,)), inputs=inputs, channel=channel)
    # Lowest bit of the row 1, bits 3 and 4 of the column 2: input 6, which holds 7; low bits of the column: sum 5.
    assert (channel.sums[5] == 3 * 7).all()
    assert (np.delete(channel.sums, 5, axis=0) == 0).all()


def test_products_and_sums_are_rounded_to_half_precision_one_after_the_other():
    channel = fresh_channel(SIZES)
    channel.cells[0, 8] = 2048
    channel.cells[0, 0] = np.float16(1 + 2**-10)
    even = multiply_accumulate(Place.EVEN_BANK)
    written = [command(Kind.WR8, bank=ODD, row=WINDOW, column=8 + register, data=register) for register in range(2)]
    values = np.float32([1.0078125, 1])[:, None].repeat(16, axis=1)
    run(*loaded(even, even), *written, *multiplied(EVEN, 0, (0, 8)), inputs=values, channel=channel)
    product = np.float16(np.float32(1.0078125) * np.float32(np.float16(1 + 2**-10)))
    assert (channel.sums[0] == np.float32(np.float16(np.float32(product) + 2048))).all()


def test_an_aligned_instruction_runs_eight_times_and_a_jump_goes_back_so_often():
    even, odd = multiply_accumulate(Place.EVEN_BANK), multiply_accumulate(Place.ODD_BANK)
    first, second = (fresh_channel(SIZES) for _ in range(2))
    for channel in (first, second):
        channel.cells[:] = 1
    three = (*loaded(even, jump(2, 1), odd), *inputs_written())
    run(*three, *multiplied(EVEN, 0, range(24)), channel=first)
    assert (first.sums == 3).all()
    with pytest.raises(ModeError, match="EVEN_BANK next"):
        run(*three, *multiplied(EVEN, 0, range(25)), channel=second)


def test_a_store_puts_every_units_sums_into_its_odd_bank():
    channel = fresh_channel(SIZES)
    channel.cells[0] = 1
    stored = (
        command(Kind.PREA),
        command(Kind.ACT8, bank=ODD, row=SIZES.rows),
        *(command(Kind.ST8, bank=ODD, row=SIZES.rows, column=column) for column in range(8)),
    )
    run(
        *loaded(multiply_accumulate(Place.EVEN_BANK), STORE_ALL),
        *inputs_written(),
        *multiplied(EVEN, 0, range(8)),
        *stored,
        channel=channel,
    )
    assert (channel.results[0, :8, :, 1::2] == 1).all()
    assert np.isnan(channel.results[0, :8, :, 0::2]).all()


def test_a_multiply_of_the_other_bank_than_the_instruction_names_is_refused():
    odd = (*loaded(multiply_accumulate(Place.ODD_BANK)), *inputs_written())
    channel = fresh_channel(SIZES)
    channel.cells[:] = 1
    with pytest.raises(ModeError, match="EVEN_BANK next"):
        run(*odd, *multiplied(EVEN, 0, (0,)), channel=channel)


def test_units_that_do_not_execute_refuse_a_multiply():
    with pytest.raises(ModeError, match="execution switched off"):
        run(*entered(), *multiplied(EVEN, 0, (0,)))


def test_inputs_that_have_not_come_are_not_written():
    with pytest.raises(EventError, match="WAIT for event 3"):
        run(*loaded(STORE_ALL), *inputs_written(), input_events=np.full(8, 3, dtype=np.int64))


def test_values_that_were_never_written_are_not_multiplied():
    with pytest.raises(UnwrittenValueError, match="a cell"):
        run(*loaded(multiply_accumulate(Place.EVEN_BANK)), *inputs_written(), *multiplied(EVEN, 0, (0,)))


def test_a_multiply_needs_its_row():
    with pytest.raises(RowStateError, match="closed"):
        run(*loaded(multiply_accumulate(Place.EVEN_BANK)), command(Kind.RD8, bank=EVEN, row=0, column=0))


def test_an_instruction_without_a_meaning_on_values_is_named():
    madd = MicroInstruction(Opcode.MAD, Place.INPUTS, Place.EVEN_BANK)
    with pytest.raises(UnsupportedCommandError, match="MAD"):
        run(*loaded(madd), *multiplied(EVEN, 0, (0,)))


@pytest.mark.parametrize(
    "instruction", [multiply_accumulate(Place.ODD_BANK), jump(131071, 2047), jump(1, 8), STORE_ALL], ids=str
)
def test_a_word_says_what_was_encoded(instruction):
    assert decode(instruction.encode()) == instruction


def test_words_outside_the_instruction_set_are_refused():
    assert issubclass(UnsupportedCommandError, FunctionalError)
    with pytest.raises(ValueError, match="5 is not a valid Opcode"):
        decode(5 << 28)


@pytest.mark.parametrize(("count", "back"), [(1 << 17, 1), (1, 0), (1, 1 << 11)])
def test_a_jump_that_no_word_holds_is_refused(count, back):
    with pytest.raises(ValueError, match="a word holds"):
        jump(count, back)
