"""Do types with sparse attention and with caches of their own agree with eager transformers to rounding?"""

import pytest

pytest.importorskip("transformers")

from compiler.graph import OpKind
from compiler.huggingface.comparison import compare

LIMIT = 1e-12
# Types, batch and steps: past the tokens that an indexer selects (12), past windows (of 8 tokens), past blocks.
CASES = (
    ("nemotron_h", 3, 12),
    ("deepseek_v32", 3, 20),
    pytest.param("hy_v4", 1, 20, marks=pytest.mark.slow),
    pytest.param("minimax_m3_vl_text", 3, 34, marks=pytest.mark.slow),
    pytest.param("inkling2_text", 3, 20, marks=pytest.mark.slow),
    pytest.param("zaya", 1, 12, marks=pytest.mark.slow),
    ("minimax", 3, 12),
    ("rwkv", 3, 12),
    ("recurrent_gemma", 3, 12),
    ("xlstm", 1, 12),
    # Past the window (16), the entries that the indexer selects (12 of 4 tokens), and three whole entries of 16 tokens.
    ("deepseek_v4", 2, 56),
    ("qwen4_exp_text", 2, 30),  # past the 16 tokens that its indexer selects, in blocks of 4
    ("openai-gpt", 2, 12),
    ("doge", 2, 30),  # past the 24 tokens of the largest biases
)


@pytest.mark.parametrize(("model_type", "batch", "steps"), CASES)
def test_a_type_is_exact_and_hides_no_memory_bound_work(model_type: str, batch: int, steps: int) -> None:
    comparison = compare(model_type, steps, batch)
    assert comparison.largest_difference < LIMIT
    assert comparison.unmatched == ()
    assert len(comparison.differences) == steps


@pytest.mark.slow
def test_layers_share_the_tokens_that_an_earlier_one_selected() -> None:
    graph = compare("hy_v4", 2).graph
    kinds = [op.kind for op in graph.ops]
    assert (kinds.count(OpKind.SELECT), kinds.count(OpKind.LATENT_ATTENTION)) == (2, 3)
