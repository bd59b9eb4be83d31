"""Broken lowerings to HBM-PIM are caught like others: each test damages the emitted programs in one way."""

from dataclasses import replace

import pytest

from compiler.numerics.check import check_attention, check_linear
from compiler.schedule import AttentionSchedule, LinearSchedule
from configs.device import load_device
from simulator.isa import Affine, Kind, Program
from tests.differential.test_mutations import commands, drop, every, first, last, moved, other_bank, without_innermost

DEVICE = load_device("hbm-pim")
LINEAR = LinearSchedule(reduction_split=2, segment_columns=8, registers=8)
ATTENTION = AttentionSchedule(token_split=2, context_segment_columns=8, registers=8)


def both_rows_moved(program: Program) -> Program:
    for kind in (Kind.ACT8, Kind.RD8):
        program = every(kind, lambda command: (replace(command, row=_moved_data_row(command.row)),))(program)
    return program


def _moved_data_row(row: Affine) -> Affine:
    return row.plus(2) if row.terms or row.constant < 8 else row


def shifted_words(command):
    """Load another microkernel: the first two words swapped with the next two."""
    return (replace(command, lane=command.buffer, buffer=command.lane),) if command.lane.constant > 1 else (command,)


def never_cleared(command):
    return (replace(command, register=Affine(0)),)


DAMAGES = (
    ("one multiply in the other bank", last(Kind.RD8, other_bank)),
    ("one multiply left out", last(Kind.RD8, drop)),
    ("multiplies of the neighbouring column", first(Kind.RD8, moved("column", 1))),
    ("wrong row base", both_rows_moved),
    ("a row opened that is not multiplied", last(Kind.ACT8, moved("row", -1))),
    ("an input in the neighbouring register", last(Kind.WR8, moved("column", 1))),
    ("words of the microkernel not written", first(Kind.WR8, drop)),
    ("inputs of the first segment in all", every(Kind.WR8, without_innermost("data"))),
    ("another microkernel", every(Kind.WR8, shifted_words)),
    ("a store left out", last(Kind.ST8, drop)),
    ("a store of another register", last(Kind.ST8, moved("column", -1))),
    ("a result read from another unit", last(Kind.RD, moved("bank", -2))),
    ("a result read from an even bank", last(Kind.RD, moved("bank", -1))),
    ("a result not read", last(Kind.RD, drop)),
    ("a result read to another entry", last(Kind.RD, moved("data", -1))),
    ("rows not closed", last(Kind.PREA, drop)),
    ("the mode not entered", first(Kind.WR, drop)),
    ("no input is waited for", every(Kind.WAIT, drop)),
    ("the event of another segment is waited for", every(Kind.WAIT, without_innermost("event"))),
    ("results are not handed over", last(Kind.SIGNAL, drop)),
    ("the event of another group is signalled", last(Kind.SIGNAL, moved("event", 1))),
)


@pytest.mark.parametrize("damage", [item[1] for item in DAMAGES], ids=[item[0] for item in DAMAGES])
def test_a_damaged_linear_program_is_caught(damage):
    changes = []

    def rewrite(_: str, program: Program) -> Program:
        damaged = damage(program)
        changes.append(commands(damaged.body) != commands(program.body))
        return damaged

    report = check_linear(LINEAR, DEVICE, rewrite)
    assert any(changes)
    assert not report.passed


def test_sums_that_are_not_cleared_are_caught():
    def rewrite(_: str, program: Program) -> Program:
        return every(Kind.WR8, lambda c: never_cleared(c) if c.column == Affine(0) else (c,))(program)

    report = check_linear(LINEAR, DEVICE, rewrite)
    assert not report.passed


ATTENTION_DAMAGES = (
    ("score", "one score multiply left out", last(Kind.RD8, drop)),
    ("context", "one context multiply left out", last(Kind.RD8, drop)),
    ("context", "weights of the first segment in all", every(Kind.WR8, without_innermost("data"))),
    ("k append", "a column of K not written", last(Kind.WR, drop)),
    ("k append", "a column of K in the neighbour's place", last(Kind.WR, moved("column", 1))),
    ("v append", "a column of V not written", first(Kind.WR, drop)),
    ("v append", "a column of V of another dimension", first(Kind.WR, moved("data", 1))),
)


@pytest.mark.parametrize(
    ("name", "damage"), [(item[0], item[2]) for item in ATTENTION_DAMAGES], ids=[item[1] for item in ATTENTION_DAMAGES]
)
def test_a_damaged_attention_program_is_caught(name, damage):
    report = check_attention(ATTENTION, DEVICE, lambda own, program: damage(program) if own == name else program)
    assert not report.passed


@pytest.mark.parametrize("preactivate", [True, False])
def test_what_is_lowered_passes(preactivate):
    assert check_linear(replace(LINEAR, preactivate=preactivate), DEVICE).passed


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 2])
def test_attention_that_is_lowered_passes(blocks):
    assert check_attention(replace(ATTENTION, token_blocks=blocks), DEVICE).passed


def test_several_queries_that_share_a_column_of_v_pass():
    assert check_attention(replace(ATTENTION, token_split=1), DEVICE, queries=3).passed
