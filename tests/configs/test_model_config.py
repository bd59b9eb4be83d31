"""Is every configuration read correctly, and every wrong one refused with one clear line?"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from configs import formulas
from configs.errors import UserError
from configs.model_config import ModelType, RotaryScaling, built_in_models, load_model_config
from tests.tiny_models import raw_config, tiny_config

# The published parameter counts of the releases, kept as literals so that no formula of ours can shift them.
PUBLISHED_PARAMETERS = {
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen3-8b": 8_190_735_360,
}


def test_every_built_in_model_has_a_published_count() -> None:
    assert set(built_in_models()) == set(PUBLISHED_PARAMETERS)


@pytest.mark.parametrize(("name", "count"), PUBLISHED_PARAMETERS.items())
def test_the_hand_formula_gives_the_published_parameter_count(name: str, count: int) -> None:
    assert formulas.parameters(load_model_config(name)) == count


def test_llama_is_an_alias_of_llama_3_1_8b() -> None:
    assert load_model_config("llama") == load_model_config("llama-3.1-8b")


def test_the_default_model_is_read_with_its_frequency_scaling() -> None:
    config = load_model_config("llama")
    assert (config.hidden, config.layers, config.heads, config.kv_heads, config.head_dim) == (4096, 32, 32, 8, 128)
    assert config.rotary_scaling == RotaryScaling(8.0, 1.0, 4.0, 8192)
    assert config.rotary_theta == 500000.0


def test_only_qwen3_has_query_and_key_norms_among_the_dense_models() -> None:
    assert [name for name in built_in_models() if load_model_config(name).query_key_norm] == ["qwen3-8b"]


def test_mistral_has_a_window_of_4096_tokens() -> None:
    assert load_model_config("mistral-7b").sliding_window == 4096


def test_a_path_a_folder_and_a_name_give_the_same_model(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(raw_config("mixtral")))
    by_folder, by_file = load_model_config(folder), load_model_config(str(folder / "config.json"))
    assert by_folder == by_file
    assert (by_folder.name, by_folder.model_type) == ("tiny", ModelType.MIXTRAL)


def test_the_newer_rope_parameters_key_is_understood() -> None:
    raw: dict[str, object] = {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}}
    assert tiny_config("qwen3", **raw).rotary_theta == 7.0


def test_an_unknown_name_suggests_close_ones() -> None:
    with pytest.raises(UserError, match=r"did you mean .*llama-3\.1-8b"):
        load_model_config("llama-3-8b")


def test_a_missing_file_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a readable JSON file"):
        load_model_config(tmp_path / "config.json")


def test_a_file_that_is_not_an_object_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[1, 2]")
    with pytest.raises(UserError, match="expected a JSON object, found a JSON list"):
        load_model_config(tmp_path)


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("llama", {"hidden_size": None}, "'hidden_size': expected an integer from 1 to"),
        ("llama", {"hidden_size": "32"}, 'expected an integer from 1 to .*, found "32"'),
        ("llama", {"num_hidden_layers": 0}, "expected an integer from 1 to .*, found 0"),
        ("llama", {"num_hidden_layers": True}, "expected an integer from 1 to .*, found true"),
        ("llama", {"rms_norm_eps": -1.0}, "'rms_norm_eps': expected a positive number"),
        ("llama", {"rope_theta": float("inf")}, "'rope_theta': expected a positive number"),
        ("llama", {"model_type": "gpt2"}, 'expected one of llama, mistral, qwen3, mixtral, found "gpt2"'),
        ("llama", {"model_type": ["llama"]}, "expected one of llama"),
        ("llama", {"hidden_act": "gelu"}, 'expected "silu", found "gelu"'),
        ("llama", {"num_attention_heads": 5}, "a multiple of num_attention_heads = 5"),
        ("llama", {"num_key_value_heads": 3}, "a divisor of num_attention_heads = 4"),
        ("llama", {"head_dim": 7}, "an even number"),
        ("llama", {"tie_word_embeddings": 1}, "expected true or false"),
        ("llama", {"auto_map": {"AutoModel": "modeling.Model"}}, "modeling.Model.*remote code is never run"),
        ("llama", {"rope_scaling": {"type": "linear"}}, '"llama3" or "default", found "linear"'),
        ("llama", {"rope_scaling": 2}, "expected an object or null"),
        ("mistral", {"sliding_window": 0}, "expected an integer from 1 to .*, found 0"),
        ("qwen3", {"use_sliding_window": True}, "windows that differ from layer to layer"),
        ("mixtral", {"num_experts_per_tok": 5}, "at most num_local_experts = 4"),
    ],
)
def test_a_bad_key_is_named_with_what_was_expected(family: str, changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        tiny_config(family, **changes)


def test_mistral_without_the_window_key_is_refused() -> None:
    with pytest.raises(UserError, match="null means no window"):
        tiny_config("llama", model_type="mistral")


def test_reading_a_configuration_does_not_import_torch() -> None:
    program = "import sys, configs.model_config as m; m.load_model_config('llama'); print('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", program], check=True, cwd=root, capture_output=True, text=True)
    assert told.stdout.strip() == "False"
