"""Do the architectures that people run import from their configuration, complete, and compute the same?"""

import pytest

pytest.importorskip("transformers")

from compiler.huggingface.comparison import compare

# Past every window (16 to 24 tokens in tiny models), over as many steps as the whole table takes at least.
STEPS = 64
TYPES = (
    *("llama", "mistral", "mixtral", "qwen3_moe", "qwen3_next", "gemma2", "gemma3_text", "phi3", "gpt_oss"),
    *("deepseek_v3", "glm4", "cohere2", "olmo2", "granite", "falcon", "mamba2", "jamba", "falcon_h1", "nemotron"),
    *("ernie4_5", "hunyuan_v1_dense", "minimax_m2", "smollm3", "starcoder2", "llama4_text"),
)


@pytest.mark.parametrize("model_type", TYPES)
def test_the_graph_of_a_type_is_complete_and_exact(model_type: str) -> None:
    found = compare(model_type, STEPS)
    assert not found.unmatched
    assert found.largest_difference < 1e-9
