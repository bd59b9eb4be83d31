"""Does the text of any graph parse back to the same graph, valid or not?"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from compiler.graph import DType, Graph, Op, OpKind, TensorType, Value, with_defaults
from compiler.graph_text import fingerprint, parse_graph, print_graph

NAMES = st.from_regex(r"[A-Za-z0-9_.\-]{1,8}", fullmatch=True)
WORDS = st.from_regex(r"[a-z0-9_ =;(){},.$%#'\[\]-]{0,12}", fullmatch=True)
TYPES = st.builds(
    TensorType, st.sampled_from(DType), st.lists(st.integers(0, 10**6), max_size=4).map(lambda sizes: tuple(sizes))
)
VALUES = st.builds(Value, NAMES, TYPES)
ATTRIBUTE_VALUES = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    WORDS,
    st.lists(st.integers(), max_size=3).map(lambda sizes: tuple(sizes)),
)
ATTRIBUTE_NAMES = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
OPS = st.builds(
    Op,
    kind=st.sampled_from(OpKind),
    inputs=st.lists(NAMES, max_size=4).map(lambda names: tuple(names)),
    results=st.lists(VALUES, min_size=1, max_size=3).map(lambda values: tuple(values)),
    attributes=st.lists(st.tuples(ATTRIBUTE_NAMES, ATTRIBUTE_VALUES), max_size=4).map(lambda pairs: tuple(pairs)),
).map(lambda op: replace(op, attributes=with_defaults(op.kind, op.attributes)))
GRAPHS = st.builds(
    Graph,
    name=NAMES,
    inputs=st.lists(VALUES, max_size=3).map(lambda values: tuple(values)),
    weights=st.lists(VALUES, max_size=3).map(lambda values: tuple(values)),
    ops=st.lists(OPS, max_size=4).map(lambda ops: tuple(ops)),
    outputs=st.lists(NAMES, max_size=3).map(lambda names: tuple(names)),
    constants=st.lists(VALUES, max_size=2).map(lambda values: tuple(values)),
)


@given(GRAPHS)
def test_printed_text_parses_back_to_the_same_graph(graph: Graph) -> None:
    parsed = parse_graph(print_graph(graph))
    # The representation tells 1 from True and 1.0, which compare equal.
    assert repr(parsed) == repr(graph)
    assert fingerprint(parsed) == fingerprint(graph)
