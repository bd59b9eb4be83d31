"""A HuggingFace configuration made into a captured decode step: checked, built without values, exported."""

from typing import Any

from transformers import AutoConfig, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from compiler.body_execution import TYPE_NAMED
from compiler.huggingface.capture import build, capture
from compiler.huggingface.quiet import quiet
from compiler.huggingface.tiny import decoder_only_types
from compiler.importing import Captured
from configs.errors import UserError
from configs.json_fields import JsonFields

PREFIX = "model."  # the wrapper's name of the model
NO_SETTINGS = (
    *("quantization_config", "torch_dtype", "dtype", "architectures", "transformers_version", "_name_or_path"),
    *("attn_implementation", "experts_implementation"),
)


def capture_config(fields: JsonFields, batch: int, context: int, dtype: str) -> Captured:
    """Return the decode step of a configuration's model; raises UserError naming the key that is wrong."""
    config = config_of(fields)
    most = getattr(config, "max_position_embeddings", None)
    if isinstance(most, int) and context > most:
        raise UserError(
            where="context",
            expected=f"1 to {most} tokens for this model",
            found=str(context),
            way_out="give a context within what the model was trained for",
        )
    try:
        model = build(config, TYPE_NAMED[dtype])
        return Captured(name_of(fields), capture(model, batch, context), PREFIX)
    except UserError:
        raise
    except Exception as error:
        # Models check what they are made of in ways of their own, and fail to trace in as many.
        raise UserError(
            where=fields.where,
            expected=f"a {config.model_type} model that can be built and exported",
            found=f"{type(error).__name__}: {_first_line(error)}",
            way_out=f"check the configuration; `explore models --coverage {config.model_type}` tells what is known",
        ) from error


def config_of(fields: JsonFields) -> PreTrainedConfig:
    """Return transformers' record of a configuration: of its text part where it has several."""
    if fields.values.get("auto_map") is not None:
        raise fields.bad("auto_map", "no code of its own", "remote code is never run: use a type transformers has")
    model_type = fields.values.get("model_type")
    values = {key: value for key, value in fields.values.items() if key not in (*NO_SETTINGS, "model_type")}
    try:
        with quiet():
            whole = AutoConfig.for_model(str(model_type), **values)
    except ValueError as error:
        raise fields.bad("model_type", "a type that the installed transformers knows", _close(model_type)) from error
    except Exception as error:
        # Every configuration checks its own values, each with errors of its own.
        raise UserError(
            where=fields.where,
            expected=f"values that {model_type} takes",
            found=_first_line(error),
            way_out="correct them",
        ) from error
    config: Any = whole.get_text_config(decoder=True)
    if config.model_type not in decoder_only_types():
        raise fields.bad("model_type", "a decoder-only language model", _close(model_type))
    return config


def name_of(fields: JsonFields) -> str:
    """Return what a model is called: its folder or file."""
    from pathlib import Path

    path = Path(fields.where)
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return "".join(one if one.isalnum() or one in "_.-" else "-" for one in name) or "model"


def _close(model_type: object) -> str:
    import difflib

    close = difflib.get_close_matches(str(model_type), MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, n=3)
    return f"did you mean {' or '.join(close)}?" if close else "use a causal language model's configuration"


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
