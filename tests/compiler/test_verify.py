"""Does the verifier accept what is valid and name what is not?"""

import re

import pytest

from compiler.graph import ATTRIBUTES, OpKind
from compiler.graph_text import parse_graph
from compiler.signatures import SIGNATURES, WITH_BODY
from compiler.verify import VerifyError, verify

TEXT = """graph small
input %x : bf16[2,8]
input %position : i64[1]
input %keys : bf16[2,1,5,4]
input %values : bf16[2,1,5,4]
weight %w : bf16[4,8]
weight %router : bf16[3,8]
%q : bf16[2,8] = rotary(%x, %position) {ROTARY}
%k : bf16[2,4], %v : bf16[2,4] = linear(%x, %w, %w) {in_features=8, parts=(4,4), bias=false}
%keys2 : bf16[2,1,5,4], %values2 : bf16[2,1,5,4] = kv_append(%k, %v, %keys, %values, %position) {APPEND}
%a : bf16[2,8] = attention(%q, %keys2, %values2, %position) {ATTENTION}
%logits : bf16[2,3] = linear(%a, %router) {in_features=8, parts=(3), bias=false}
%ids : i64[2,2], %weights : bf16[2,2] = route(%logits) {experts=3, top_k=2, normalise=true}
%y : bf16[2,8] = add(%a, %x) {width=8}
output %y
"""
TEXT = TEXT.replace("APPEND}", "kv_heads=1, head_dim=4, context=5}")
TEXT = TEXT.replace("{ATTENTION}", "{heads=2, kv_heads=1, head_dim=4, context=5, window=0, scale=0.5}")
TEXT = TEXT.replace(
    "{ROTARY}",
    '{heads=2, head_dim=4, theta=10000.0, scaling="none", factor=1.0, low_frequency_factor=1.0, '
    "high_frequency_factor=1.0, original_context=0}",
)


def test_a_valid_graph_passes() -> None:
    graph = parse_graph(TEXT)
    verify(graph)
    assert graph.ops


def test_every_kind_has_attributes_and_a_signature() -> None:
    assert set(ATTRIBUTES) == set(OpKind)
    assert {*SIGNATURES, *WITH_BODY} == set(OpKind)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("add(%a, %x)", "add(%a, %y)", "add %y: expected %y to be defined before its use"),
        ("%y : bf16[2,8] =", "%a : bf16[2,8] =", "expected %a to be defined once"),
        ("output %y", "output %z", "output %z: expected a defined value"),
        ("add(%a, %x)", "add(%a, %k)", "operand 1 %k: expected float[2,8], found bf16[2,4]"),
        ("add(%a, %x)", "add(%a)", "expected 2 operands, found 1"),
        ("add(%a, %x) {width=8}", "add(%a, %x) {size=8}", "expected the attributes (width: int), found (size: int)"),
        ("{width=8}", "{width=true}", "found (width: bool)"),
        ("%y : bf16[2,8] =", "%y : bf16[2,9] =", "result 0 %y: expected float[2,8], found bf16[2,9]"),
        ("%ids : i64[2,2]", "%ids : bf16[2,2]", "result 0 %ids: expected i64[2,2], found bf16[2,2]"),
        ("parts=(4,4)", "parts=(4,5)", "operand 2 %w: expected float[5,8], found bf16[4,8]"),
        ("window=0", "window=-1", "expected a window of 0 or more"),
        ("heads=2, kv_heads=1", "heads=2, kv_heads=3", "expected kv_heads to divide heads"),
        ("top_k=2", "top_k=4", "expected top_k of at most experts"),
        ('scaling="none"', 'scaling="yarn"', "expected scaling to be one of ('none', 'llama3')"),
        ("input %x : bf16[2,8]", "input %x : bf16[0,8]", "expected %x to have positive sizes"),
        ("%y : bf16[2,8] =", "%y : bf16[] =", "expected a first result with a leading batch dimension"),
    ],
)
def test_a_broken_rule_is_named_with_what_was_found(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(VerifyError, match=re.escape(message)):
        verify(parse_graph(TEXT.replace(old, new, 1)))
