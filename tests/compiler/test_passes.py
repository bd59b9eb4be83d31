"""Does each pass do exactly the edit that its docstring shows?"""

import pytest

from compiler.graph_text import parse_graph, print_graph
from compiler.passes import PASSES, PassRun, drop_dead_ops, merge_shared_input_linears, run_passes
from compiler.verify import VerifyError

HEADER = """graph small
input %x : f32[1,8]
weight %wa : f32[4,8]
weight %wb : f32[6,8]
weight %ba : f32[4]
weight %bb : f32[6]
"""


def test_linears_of_one_input_become_one_with_their_biases_behind_the_weights() -> None:
    before = """%a : f32[1,4] = linear(%x, %wa, %ba) {in_features=8, parts=(4), bias=true}
%c : f32[1,4] = add(%a, %a) {width=4}
%b : f32[1,6] = linear(%x, %wb, %bb) {in_features=8, parts=(6), bias=true}
output %b
output %c
"""
    after = """%a : f32[1,4], %b : f32[1,6] = linear(%x, %wa, %wb, %ba, %bb) {in_features=8, parts=(4,6), bias=true}
%c : f32[1,4] = add(%a, %a) {width=4}
output %b
output %c
"""
    assert print_graph(merge_shared_input_linears(parse_graph(HEADER + before))) == HEADER + after


def test_linears_with_and_without_bias_stay_apart() -> None:
    graph = parse_graph(
        HEADER
        + """%a : f32[1,4] = linear(%x, %wa, %ba) {in_features=8, parts=(4), bias=true}
%b : f32[1,6] = linear(%x, %wb) {in_features=8, parts=(6), bias=false}
output %a
output %b
"""
    )
    assert merge_shared_input_linears(graph) == graph


def test_merging_twice_changes_nothing_more() -> None:
    once = merge_shared_input_linears(
        parse_graph(
            HEADER
            + """%a : f32[1,4] = linear(%x, %wa) {in_features=8, parts=(4), bias=false}
%b : f32[1,6] = linear(%x, %wb) {in_features=8, parts=(6), bias=false}
output %a
output %b
"""
        )
    )
    assert len(once.ops) == 1
    assert merge_shared_input_linears(once) == once


def test_a_dead_operator_goes_with_the_weights_that_only_it_read() -> None:
    graph = parse_graph(
        HEADER
        + """%a : f32[1,4] = linear(%x, %wa) {in_features=8, parts=(4), bias=false}
%b : f32[1,6] = linear(%x, %wb) {in_features=8, parts=(6), bias=false}
output %a
"""
    )
    kept = drop_dead_ops(graph)
    assert [op.name for op in kept.ops] == ["a"]
    assert [weight.name for weight in kept.weights] == ["wa"]


def test_a_pass_that_breaks_the_graph_is_caught_after_it() -> None:
    graph = parse_graph(HEADER + "output %x\n")
    with pytest.raises(VerifyError, match="output %x"):
        run_passes(graph, (lambda valid: type(valid)(valid.name, (), (), (), valid.outputs),))


def test_an_observer_is_told_of_every_pass_in_order_and_changes_nothing() -> None:
    graph = parse_graph(
        HEADER
        + """%a : f32[1,4] = linear(%x, %wa) {in_features=8, parts=(4), bias=false}
%b : f32[1,6] = linear(%x, %wb) {in_features=8, parts=(6), bias=false}
output %a
output %b
"""
    )
    told: list[PassRun] = []
    assert run_passes(graph, observer=told.append) == run_passes(graph)
    assert [run.name for run in told] == [rewrite.__name__ for rewrite in PASSES]
    assert [(len(run.before.ops), len(run.after.ops)) for run in told] == [(2, 2), (2, 1)]
    assert all(run.seconds >= 0 for run in told)
