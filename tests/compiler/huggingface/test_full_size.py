"""Does a model of full size import without weights, and does its graph move what its architecture says?"""

from pathlib import Path

import pytest

pytest.importorskip("transformers")

from compiler.graph import OpKind
from compiler.importing import import_named
from compiler.traffic import traffic_of
from compiler.unmatched import unmatched_of

CONFIGS = Path(__file__).parent / "configs"


@pytest.mark.slow
def test_deepseek_v3_reads_its_active_experts_and_its_latents() -> None:
    """Published: 671 billion parameters of which 37 billion are active (DeepSeek-V3 report, table 1)."""
    found = import_named(str(CONFIGS / "deepseek-v3.json"), 1, 4096)
    graph, traffic = found.graph, traffic_of(found.graph)
    assert not unmatched_of(graph, found.sources)
    hidden, layers, dense, heads, vocabulary = 7168, 61, 3, 128, 129280
    attention = hidden * 1536 + 1536 * heads * 192 + hidden * 576 + 512 * heads * 256 + heads * 128 * hidden
    norms = 2 * hidden + 1536 + 512
    experts = 3 * hidden * 2048 * (8 + 1) + 2 * 256 * hidden  # routers are kept in float32: twice the bytes
    active = layers * (attention + norms) + dense * 3 * hidden * 18432 + (layers - dense) * experts
    assert traffic.weight_bytes_per_token == 2 * (active + hidden + vocabulary * hidden + hidden)
    assert traffic.kv_read_bytes_per_token == 2 * layers * 4096 * (512 + 64)
    assert traffic.parameters == 671_026_404_352
    assert sum(op.kind is OpKind.LATENT_ATTENTION for op in graph.ops) == layers
    assert {op.integer("top_k") for op in graph.ops if op.kind is OpKind.ROUTED_LINEAR} == {8}
