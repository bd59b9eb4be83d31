"""Does the text of any program parse back to the same program?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.errors import UserError
from simulator.isa import OPERANDS, Affine, Command, Kind, Loop, Program
from simulator.program_text import parse_program, print_program

COEFFICIENTS = st.integers(-300, 300).filter(bool)
TERMS = st.dictionaries(st.integers(0, 4), COEFFICIENTS, max_size=3).map(lambda terms: tuple(sorted(terms.items())))
AFFINES = st.builds(Affine, st.integers(-(10**6), 10**6), TERMS)
COMMANDS = st.builds(Command, st.sampled_from(Kind), **dict.fromkeys(OPERANDS, AFFINES | st.just(Affine())))
BLOCKS = st.recursive(
    st.lists(COMMANDS, max_size=3).map(tuple),
    lambda inner: st.lists(COMMANDS | st.builds(Loop, st.integers(0, 100), inner), max_size=3).map(tuple),
    max_leaves=6,
)


WIDTHS = st.sampled_from((1, 2, 3, 4, 8, 16, 4096))


@given(st.builds(Program, BLOCKS, st.text(max_size=20), WIDTHS, WIDTHS))
def test_printed_program_parses_back_to_the_same_program(program):
    assert parse_program(print_program(program)) == program


def test_what_a_multiply_serves_stands_before_its_commands():
    program = Program((Command(Kind.MACL16, data=Affine(8)),), accesses_per_column=4, vectors_per_multiply=2)
    assert print_program(program) == "accesses_per_column 4\nvectors_per_multiply 2\nMACL16 data=8\n"


def test_text_follows_the_grammar():
    command = Command(Kind.MAC16, row=Affine(3, ((0, 1),)), column=Affine(0, ((0, 64), (1, 1))))
    program = Program((Loop(2, (Loop(4, (command,)),)),), "q")
    lines = ["# q", "loop 2 {", "  loop 4 {", "    MAC16 row=3+%0 column=64%0+%1", "  }", "}", ""]
    assert print_program(program) == "\n".join(lines)


@pytest.mark.parametrize("text", ["loop 2 {", "}", "loop x {\n}", "MAC17", "ACT bank=", "ACT bank=1 bank=2", "ACT x=1"])
def test_text_outside_the_grammar_is_refused_with_its_line(text):
    with pytest.raises(UserError, match="program text"):
        parse_program(text)


@pytest.mark.parametrize(
    "text",
    [
        "ACT row=" + "9" * 5000,
        "loop " + "9" * 5000 + " {\n}",
        "loop \u0663 {\n}",
        "accesses_per_column 0",
        "vectors_per_multiply 12345",
        "loop 1 {\n" * 3000 + "}\n" * 3000,
    ],
    ids=["digits", "count", "other digits", "accesses", "vectors", "depth"],
)
def test_text_beyond_the_limits_of_the_grammar_is_a_mistake_with_its_line(text):
    with pytest.raises(UserError, match="line"):
        parse_program(text)
