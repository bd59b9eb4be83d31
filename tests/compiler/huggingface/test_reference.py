"""Is eager decoding an oracle: exact, the same for every batch, past every window, and with known routes?"""

import pytest

pytest.importorskip("transformers")

import torch
from torch import Tensor
from transformers import PreTrainedModel

from compiler.huggingface.reference import decode_reference, lifted_to_float64, state_name
from compiler.huggingface.routes import Route, dispatched_experts, pinned_routes, recorded_routes
from compiler.huggingface.shrinking import VOCABULARY, WINDOW_TOKENS
from compiler.huggingface.tiny import random_model, tiny_config

STEPS = 2 * WINDOW_TOKENS
# One type a mechanism: plain, windows, latent attention with grouped routing, sinks, recurrences of three kinds, a
# rule of its own for the state.
VARIED_TYPES = ("llama", "gemma2", "deepseek_v3", "gpt_oss", "mamba2", "qwen3_next", "recurrent_gemma", "bamba")


def double_model(model_type: str) -> PreTrainedModel:
    return random_model(tiny_config(model_type), seed=0, dtype=torch.float64)


def token_ids(batch: int, steps: int = STEPS) -> Tensor:
    return torch.randint(3, VOCABULARY - 1, (batch, steps), generator=torch.Generator().manual_seed(1))


def uncached(model: PreTrainedModel, ids: Tensor) -> Tensor:
    with torch.no_grad(), lifted_to_float64():
        logits: Tensor = model(ids, use_cache=False).logits
    return logits


@pytest.mark.parametrize("model_type", VARIED_TYPES)
def test_decoding_agrees_with_the_whole_sequence_at_once(model_type: str) -> None:
    model, ids = double_model(model_type), token_ids(1)
    torch.testing.assert_close(decode_reference(model, ids), uncached(model, ids), rtol=0, atol=1e-11)


@pytest.mark.parametrize("model_type", [*VARIED_TYPES, "rwkv"])
def test_a_row_does_not_depend_on_the_others(model_type: str) -> None:
    model, ids = double_model(model_type), token_ids(3, steps=8)
    torch.testing.assert_close(decode_reference(model, ids)[1:2], decode_reference(model, ids[1:2]), rtol=0, atol=1e-12)


def test_a_sequence_does_not_remember_the_one_before() -> None:
    model, ids = double_model("recurrent_gemma"), token_ids(1, steps=8)
    first = decode_reference(model, ids)
    torch.testing.assert_close(decode_reference(model, ids), first, rtol=0, atol=0)


def test_a_type_without_a_cache_recomputes_the_prefix() -> None:
    model, ids = double_model("openai-gpt"), token_ids(1, steps=8)
    assert state_name(model) is None
    torch.testing.assert_close(decode_reference(model, ids), uncached(model, ids), rtol=0, atol=1e-12)


def test_a_float64_model_alone_is_only_exact_to_float32() -> None:
    model, ids = double_model("llama"), token_ids(1, steps=8)
    with torch.no_grad():
        plain = model(ids, use_cache=False).logits
    error = float((plain - uncached(model, ids)).abs().max())
    assert 1e-10 < error < 1e-5


def test_lifting_makes_casts_and_new_tensors_float64() -> None:
    with lifted_to_float64():
        made = (
            torch.ones(2, dtype=torch.float64).float(),
            torch.zeros(2, dtype=torch.float32),
            torch.arange(3).to(torch.float32),
            torch.softmax(torch.ones(2, dtype=torch.float64), -1, dtype=torch.float32),
            torch.tensor([1.0]),
        )
    assert {tensor.dtype for tensor in made} == {torch.float64}


def test_lifting_ends_with_its_body() -> None:
    with lifted_to_float64():
        pass
    assert torch.zeros(1, dtype=torch.float32).dtype is torch.zeros(1).dtype is torch.float32


def recorded(model: PreTrainedModel, ids: Tensor) -> tuple[Tensor, list[Route]]:
    with recorded_routes(model) as routes:
        return decode_reference(model, ids), routes


def test_a_route_is_recorded_for_every_layer_and_step() -> None:
    model, ids = double_model("mixtral"), token_ids(3, steps=4)
    _, routes = recorded(model, ids)
    layers = [f"model.layers.{layer}.mlp.experts" for layer in range(2)]
    assert [route.module for route in routes] == layers * 4
    assert {tuple(route.ids.shape) for route in routes} == {(3, 2)}


def test_recording_changes_no_value() -> None:
    model, ids = double_model("mixtral"), token_ids(1, steps=4)
    torch.testing.assert_close(recorded(model, ids)[0], decode_reference(model, ids), rtol=0, atol=0)


def test_tokens_of_a_tiny_model_choose_different_experts() -> None:
    _, routes = recorded(double_model("mixtral"), token_ids(3, steps=8))
    assert len(torch.cat([route.ids for route in routes]).unique()) >= 6


def test_float32_agrees_with_float64_once_the_routes_are_pinned() -> None:
    ids = token_ids(3, steps=8)
    exact, routes = recorded(double_model("mixtral"), ids)
    single = random_model(tiny_config("mixtral"), seed=0)
    with pinned_routes(single, routes):
        found = decode_reference(single, ids)
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=1e-4)


def test_pinned_routes_decide_instead_of_the_router() -> None:
    model, ids = double_model("mixtral"), token_ids(1, steps=2)
    exact, routes = recorded(model, ids)
    others = [Route(route.module, (route.ids + 1) % 8, route.weights) for route in routes]
    with pinned_routes(model, others):
        assert not torch.allclose(decode_reference(model, ids), exact)


def test_routes_of_another_order_are_refused() -> None:
    model, ids = double_model("mixtral"), token_ids(1, steps=2)
    _, routes = recorded(model, ids)
    with pinned_routes(model, routes[::-1]), pytest.raises(ValueError, match="expected a route of"):
        decode_reference(model, ids)


def test_the_experts_implementation_is_put_back() -> None:
    model = double_model("mixtral")
    recorded(model, token_ids(1, steps=1))
    assert {experts.config._experts_implementation for experts in dispatched_experts(model)} == {"eager"}
