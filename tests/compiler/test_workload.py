"""Does a graph with several kinds of everything become the workload that its operators mean?"""

import pytest

from autotune.scenario import routing_loads
from compiler.attention import AttentionShape
from compiler.graph_text import parse_graph
from compiler.linear import LinearShape
from compiler.tasks import tasks_of
from compiler.verify import verify
from compiler.workload import (
    AppendShape,
    EmbeddingShape,
    FreeShape,
    HostShape,
    RoutedShape,
    StoredFormats,
    Workload,
    attended,
    workload_of,
)
from configs.number_format import NumberFormat

HALF = StoredFormats(NumberFormat.INT8, NumberFormat.INT8)


def workload(text: str, formats: StoredFormats = HALF) -> Workload:
    graph = parse_graph(f"graph step\ninput %ids : i64[1]\ninput %position : i64[1]\n{text}")
    verify(graph)
    return workload_of(tasks_of(graph), "step", 1, 20, formats)


TWO_ATTENTIONS = """
input %q : bf16[1,8]
input %k : bf16[1,4]
input %a.k : bf16[1,1,20,4]
input %a.v : bf16[1,1,20,4]
input %b.k : bf16[1,1,20,4]
input %b.v : bf16[1,1,20,4]
weight %sinks : bf16[2]
%a.k1 : bf16[1,1,20,4], %a.v1 : bf16[1,1,20,4] = kv_append(%k, %k, %a.k, %a.v, %position) {kv_heads=1, head_dim=4, context=20}
%b.k1 : bf16[1,1,20,4], %b.v1 : bf16[1,1,20,4] = kv_append(%k, %k, %b.k, %b.v, %position) {kv_heads=1, head_dim=4, context=20}
%a : bf16[1,8] = attention(%q, %a.k1, %a.v1, %position, %sinks) {heads=2, kv_heads=1, head_dim=4, context=20, window=6, scale=1.0, softcap=30.0, sinks=true}
%b : bf16[1,8] = attention(%q, %b.k1, %b.v1, %position) {heads=2, kv_heads=1, head_dim=4, context=20, window=0, scale=1.0, chunk=8}
output %b
"""  # noqa: E501  an operator is a line


def test_a_write_belongs_to_the_attention_that_reads_its_caches() -> None:
    first, second, sliding, chunked = workload(TWO_ATTENTIONS).shapes
    assert isinstance(sliding, AttentionShape)
    assert isinstance(chunked, AttentionShape)
    assert first == AppendShape("kv_append", sliding)
    assert second == AppendShape("kv_append_2", chunked)
    assert (sliding.tokens, sliding.limit, sliding.softcap, sliding.sinks) == (6, 6, True, True)
    assert (chunked.tokens, chunked.room, chunked.limit, chunked.softcap) == (4, 8, 8, False)


@pytest.mark.parametrize(
    ("window", "chunk", "queries", "expected"),
    [(0, 0, 1, 20), (6, 0, 1, 6), (6, 0, 3, 8), (0, 8, 1, 4), (0, 8, 4, 4), (0, 8, 5, 12), (0, 32, 1, 20)],
)
def test_queries_together_attend_from_the_first_token_of_the_first(
    window: int, chunk: int, queries: int, expected: int
) -> None:
    assert attended(20, window, chunk, queries) == expected


ROUTED = """
input %x : bf16[1,8]
weight %router : bf16[4,8]
weight %first.up : bf16[4,6,8]
weight %first.down : bf16[4,6,8]
weight %second.up : bf16[4,6,8]
weight %head : bf16[16,8]
%logits : bf16[1,4] = linear(%x, %router) {in_features=8, parts=(4), bias=false}
%chosen : i64[1,2], %w : bf16[1,2] = compute(%logits) {role="route", body="t0 = aten.topk.default($0, 2); return t0.1, t0.0"}
%up : bf16[1,12] = routed_linear(%x, %chosen, %first.up) {experts=4, top_k=2, in_features=8, out_features=6, shared=true, bias=false, transposed=false}
%down : bf16[1,16] = routed_linear(%up, %chosen, %first.down) {experts=4, top_k=2, in_features=6, out_features=8, shared=false, bias=false, transposed=true}
%logits.2 : bf16[1,4] = linear(%x, %router) {in_features=8, parts=(4), bias=false}
%chosen.2 : i64[1,2], %w.2 : bf16[1,2] = compute(%logits.2) {role="route", body="t0 = aten.topk.default($0, 2); return t0.1, t0.0"}
%up.2 : bf16[1,12] = routed_linear(%x, %chosen.2, %second.up) {experts=4, top_k=2, in_features=8, out_features=6, shared=true, bias=false, transposed=false}
%scores : bf16[1,16] = linear(%x, %head) {in_features=8, parts=(16), bias=false}
%capped : bf16[1,16] = compute(%scores) {role="softcap", body="t0 = aten.tanh.default($0); return t0"}
%next : i64[1] = sample(%capped) {vocabulary=16}
output %next
output %down
output %up.2
"""  # noqa: E501  an operator is a line


def test_matrices_of_one_layer_work_for_the_same_experts() -> None:
    found = workload(ROUTED)
    assert [routing for routing in found.routings if routing is not None] == [0, 0, 1]
    assert len(routing_loads(found, 0, skewed=False)) == 2
    routed = [shape for shape in found.shapes if isinstance(shape, RoutedShape)]
    assert [shape.linear.weights for shape in routed] == [NumberFormat.INT8] * 2


def test_what_decides_on_experts_and_tokens_stays_bf16_through_computations() -> None:
    linears = {shape.name: shape for shape in workload(ROUTED).shapes if isinstance(shape, LinearShape)}
    assert [shape.weights for shape in linears.values()] == [NumberFormat.BF16] * 2


def test_a_matrix_that_layers_share_is_stored_once() -> None:
    found = workload(ROUTED)
    (router,) = [index for index, shape in enumerate(found.shapes) if shape.name == "linear"]
    assert (found.multiplicities[router], found.copies[router]) == (2, 1)


FREE_AND_HOST = """
input %state : f32[1,4]
weight %table : bf16[9,4]
weight %positions : bf16[7,4]
weight %scale : bf16[4]
%x : bf16[1,4] = embedding(%ids, %table) {vocabulary=9, width=4}
%p : bf16[1,4] = embedding(%position, %positions) {vocabulary=7, width=4}
%bigger : bf16[4] = compute(%scale) {role="add", body="t0 = aten.add.Tensor($0, 1.0); return t0"}
%view : bf16[4,1] = compute(%x) {role="view", body="t0 = aten.reshape.default($0, [4, 1]); return t0"}
%y : bf16[1,4] = compute(%x, %bigger) {role="scale", body="t0 = aten.mul.Tensor($0, $1); return t0"}
%after : f32[1,4] = recurrence(%state, %p) {role="decay", states=1, body="t0 = aten.mul.Tensor($0, $1); return t0"}
output %y
output %after
"""


def test_views_and_what_follows_from_parameters_are_free_and_the_rest_is_the_hosts() -> None:
    words, positions, *others = workload(FREE_AND_HOST).shapes
    assert isinstance(words, EmbeddingShape)
    assert isinstance(positions, EmbeddingShape)
    assert others == [
        FreeShape("compute"),
        FreeShape("compute_2"),
        HostShape("compute_3", moved_bytes=24, operations=4, weight_bytes=8),
        HostShape("recurrence", moved_bytes=16 + 8 + 16, operations=4, state_bytes=16),
    ]
