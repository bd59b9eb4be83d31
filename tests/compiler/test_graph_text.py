"""Does the text form say where it is wrong?"""

import pytest

from compiler.graph_text import fingerprint, parse_graph, print_graph
from configs.errors import UserError

TEXT = """graph small
input %a : bf16[1,8]
input %b : bf16[1,8]
%c : bf16[1,8] = add(%a, %b) {width=8}
output %c
"""


def test_canonical_text_is_printed_as_it_was_read() -> None:
    assert print_graph(parse_graph(TEXT)) == TEXT


def test_comments_and_blank_lines_are_skipped() -> None:
    assert parse_graph(TEXT.replace("output", "\n  # the end\n  output")) == parse_graph(TEXT)


def test_the_fingerprint_is_the_sha256_of_the_text() -> None:
    assert fingerprint(parse_graph(TEXT)) == "cdfcef4f978f1a5cc9d729cb8c8a4e0b5c42f2d917a234b0db1b22c1bbe4fc60"


def test_the_fingerprint_changes_with_any_attribute() -> None:
    assert fingerprint(parse_graph(TEXT)) != fingerprint(parse_graph(TEXT.replace("width=8", "width=9")))


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (1, "graph small", "graph", "a name"),
        (2, "input %a : bf16[1,8]", "input a : bf16[1,8]", "`%name : type`"),
        (2, "%a : bf16", "%a : int3", "an element type"),
        (2, "bf16[1,8]", "bf16[1,,8]", "integers separated by commas"),
        (2, "input %a", "weight %a", "the order graph, input, weight, constant, op, output"),
        (4, "add(", "subtract(", "one of embedding"),
        (4, "%a, %b", "%a %b", "`%name`"),
        (4, "{width=8}", "{width=8", "`%result : type = kind"),
        (4, "width=8", "width", "`name=value`"),
        (4, "width=8", "width=eight", "an integer, float"),
        (5, "output %c", "return %c", "graph, input, weight, constant, output or an operator"),
    ],
)
def test_a_wrong_line_is_reported_by_its_number(line: int, old: str, new: str, message: str) -> None:
    wrong = TEXT.replace(old, new, 1)
    # A section that comes too early is noticed at the statement that follows it.
    reported = line + 1 if new.startswith("weight") else line
    with pytest.raises(UserError) as caught:
        parse_graph(wrong, "small.graph")
    assert caught.value.where == f"small.graph, line {reported}"
    assert message in caught.value.expected


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(UserError, match="graph NAME"):
        parse_graph("")
