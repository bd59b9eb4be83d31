"""The hyper-parameters of a language model: a HuggingFace config.json read into one normalised, checked record.

First step of the flow: `load_model_config` -> `compiler.frontend.import_model`. Built-in models: `configs/models`.
"""

import difflib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from configs.errors import UserError
from configs.json_fields import JsonFields, read_json_object

MOST_LAYERS = 1000
MODELS_FOLDER = Path(__file__).parent / "models"
ALIASES = {"llama": "llama-3.1-8b", "mistral": "mistral-7b", "mixtral": "mixtral-8x7b", "qwen": "qwen3-8b"}

# Keys that change the computation in ways we do not model: key -> (values that change nothing, way out).
REFUSED_KEYS: dict[str, tuple[tuple[object, ...], str]] = {
    "auto_map": ((None,), "remote code is never run: use a model type that is built in"),
    "partial_rotary_factor": ((None, 1, 1.0), "use a model with full rotary embeddings"),
    "use_sliding_window": ((None, False), "windows that differ from layer to layer are not supported"),
}


class ModelType(StrEnum):
    """The supported families, by their HuggingFace `model_type`."""

    LLAMA = "llama"
    MISTRAL = "mistral"
    QWEN3 = "qwen3"
    MIXTRAL = "mixtral"


@dataclass(frozen=True, slots=True)
class RotaryScaling:
    """Llama-3 frequency scaling: long wavelengths are divided by `factor` (Llama 3.1 release, `rope_type: llama3`)."""

    factor: float
    low_frequency_factor: float
    high_frequency_factor: float
    original_context: int


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One decoder-only language model; widths in elements, `experts` = 0 for a dense model."""

    name: str
    model_type: ModelType
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    maximum_context: int
    norm_epsilon: float
    rotary_theta: float
    rotary_scaling: RotaryScaling | None = None
    tied_embeddings: bool = False
    sliding_window: int | None = None
    experts: int = 0
    experts_per_token: int = 0
    query_key_norm: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False


def built_in_models() -> tuple[str, ...]:
    """Return the names of the built-in models, sorted."""
    return tuple(sorted(path.stem for path in MODELS_FOLDER.glob("*.json")))


def load_model_config(name_or_path: str | Path) -> ModelConfig:
    """Return the checked configuration of a built-in model, an alias, a config.json or a folder that holds one.

    Raises UserError naming the key or the name that is wrong.
    """
    text, path = str(name_or_path), Path(name_or_path)
    fields = config_fields(name_or_path)
    if text in ALIASES or text in built_in_models():
        return parse_model_config(fields, ALIASES.get(text, text))
    if path.is_dir():
        return parse_model_config(fields, path.resolve().name)
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return parse_model_config(fields, " ".join(name.split()))  # a name stands in one line of every text


def is_built_in_family(fields: JsonFields) -> bool:
    """Tell whether a configuration is of a family that needs no other library, without settings beyond it."""
    plain = all(fields.values.get(key) in harmless for key, (harmless, _) in REFUSED_KEYS.items() if key != "auto_map")
    scaling = fields.values.get("rope_scaling") or fields.values.get("rope_parameters") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default")) if isinstance(scaling, dict) else "default"
    return fields.values.get("model_type") in tuple(ModelType) and plain and kind in ("default", "llama3")


def config_fields(name_or_path: str | Path) -> JsonFields:
    """Return the fields of the configuration that a built-in model's name, an alias or a path stands for.

    Raises UserError for a name that is not known and for a file that cannot be read.
    """
    text, path = str(name_or_path), Path(name_or_path)
    if text in ALIASES or text in built_in_models():
        return read_json_object(MODELS_FOLDER / f"{ALIASES.get(text, text)}.json")
    if path.is_dir():
        return read_json_object(path / "config.json")
    if path.exists() or path.suffix == ".json" or len(path.parts) > 1:
        return read_json_object(path)
    known = (*ALIASES, *built_in_models())
    close = difflib.get_close_matches(text.lower(), known, n=3, cutoff=0.5)
    raise UserError(
        where="model",
        expected="a built-in model or the path of a config.json",
        found=repr(text),
        way_out=f"did you mean {' or '.join(close)}?" if close else f"use one of {', '.join(known)}",
    )


def parse_model_config(fields: JsonFields, name: str) -> ModelConfig:
    """Return the normalised record of a HuggingFace configuration; raises UserError naming the bad key."""
    model_type = _supported_model_type(fields)
    heads = fields.integer("num_attention_heads")
    is_llama = model_type is ModelType.LLAMA
    # Only Llama's configurations may leave these out: its first release predates grouped queries and long contexts.
    kv_heads = fields.integer("num_key_value_heads", heads if is_llama else None)
    hidden = fields.integer("hidden_size")
    if fields.values.get("head_dim") is None and hidden % heads:
        raise fields.bad("hidden_size", f"a multiple of num_attention_heads = {heads}")
    head_dim = fields.integer("head_dim", hidden // heads or None)
    if head_dim % 2:
        raise fields.bad("head_dim", "an even number, for the rotary pairs")
    if heads % kv_heads:
        raise fields.bad("num_key_value_heads", f"a divisor of num_attention_heads = {heads}")
    experts, experts_per_token = _experts(fields, model_type)
    theta, scaling = _rotary(fields, 10000.0 if is_llama else None)
    return ModelConfig(
        name=name,
        model_type=model_type,
        hidden=hidden,
        layers=fields.integer("num_hidden_layers", limit=MOST_LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=fields.integer("intermediate_size"),
        vocabulary=fields.integer("vocab_size"),
        maximum_context=fields.integer("max_position_embeddings"),
        norm_epsilon=fields.number("rms_norm_eps"),
        rotary_theta=theta,
        rotary_scaling=scaling,
        tied_embeddings=fields.flag("tie_word_embeddings"),
        sliding_window=_sliding_window(fields, model_type),
        experts=experts,
        experts_per_token=experts_per_token,
        query_key_norm=model_type is ModelType.QWEN3,
        attention_bias=model_type in (ModelType.LLAMA, ModelType.QWEN3) and fields.flag("attention_bias"),
        mlp_bias=is_llama and fields.flag("mlp_bias"),
    )


def _supported_model_type(fields: JsonFields) -> ModelType:
    for key, (harmless, way_out) in REFUSED_KEYS.items():
        if fields.values.get(key) not in harmless:
            raise fields.bad(key, "no such setting", way_out)
    if fields.values.get("hidden_act") != "silu":
        raise fields.bad("hidden_act", '"silu"')
    found = fields.values.get("model_type")
    if found not in tuple(ModelType):
        raise fields.bad("model_type", f"one of {', '.join(ModelType)}", "use a model of one of these families")
    return ModelType(found)


def _sliding_window(fields: JsonFields, model_type: ModelType) -> int | None:
    if model_type not in (ModelType.MISTRAL, ModelType.MIXTRAL):
        return None
    # A missing key is refused: HuggingFace's default differs between releases, null means "no window".
    if "sliding_window" not in fields.values:
        raise fields.bad("sliding_window", "a positive integer or null", "add the key; null means no window")
    return None if fields.values["sliding_window"] is None else fields.integer("sliding_window")


def _experts(fields: JsonFields, model_type: ModelType) -> tuple[int, int]:
    if model_type is not ModelType.MIXTRAL:
        return 0, 0
    experts = fields.integer("num_local_experts")
    experts_per_token = fields.integer("num_experts_per_tok")
    if experts_per_token > experts:
        raise fields.bad("num_experts_per_tok", f"at most num_local_experts = {experts}")
    return experts, experts_per_token


def _rotary(fields: JsonFields, default_theta: float | None) -> tuple[float, RotaryScaling | None]:
    """Read both spellings: `rope_theta` with `rope_scaling`, and the newer `rope_parameters` that holds the two."""
    merged = fields.nested("rope_parameters")
    theta = (merged or fields).number("rope_theta", default_theta)
    scaling = merged or fields.nested("rope_scaling")
    if scaling is None:
        return theta, None
    kind_key = "rope_type" if "rope_type" in scaling.values else "type"
    if scaling.values.get(kind_key) == "default":
        return theta, None
    if scaling.values.get(kind_key) != "llama3":
        raise scaling.bad(kind_key, '"llama3" or "default"', "use a model without another frequency scaling")
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    if low >= high:
        raise scaling.bad("high_freq_factor", f"more than low_freq_factor = {low}")
    original = scaling.integer("original_max_position_embeddings")
    if scaling.number("factor") < 1:
        raise scaling.bad("factor", "a number of at least 1")
    return theta, RotaryScaling(scaling.number("factor"), low, high, original)
