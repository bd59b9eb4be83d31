"""Finds the quantisation settings of a model's configuration and dispatches by `quant_method`."""

from pathlib import Path

from configs.errors import UserError
from configs.json_fields import JsonFields, read_json_object
from configs.quantization.methods import read_awq, read_fp8, read_gptq, read_mxfp4
from configs.quantization.record import Method, Quantization
from configs.quantization.schemes import read_compressed_tensors, read_modelopt

READERS = {
    Method.AWQ: read_awq,
    Method.GPTQ: read_gptq,
    Method.FP8: read_fp8,
    Method.MXFP4: read_mxfp4,
    Method.MODELOPT: read_modelopt,
    Method.COMPRESSED_TENSORS: read_compressed_tensors,
}
SPELLINGS = {"modelopt_fp4": Method.MODELOPT, "compressed_tensors": Method.COMPRESSED_TENSORS}

# Methods that are known and not read, with what to do instead.
REFUSED_METHODS = {
    "bitsandbytes": "it is made while a model is loaded: give the unquantised checkpoint and choose --weights",
    "gguf": "convert the file back to safetensors, or give the unquantised checkpoint",
}


def load_quantization(folder: Path) -> Quantization | None:
    """Return the quantisation of a checkpoint folder, None for an unquantised one; raises UserError.

    Settings stand in config.json, or, in older files of ModelOpt, in hf_quant_config.json beside it.
    """
    found = quantization_of(read_json_object(folder / "config.json"))
    separate = folder / "hf_quant_config.json"
    if found is None and separate.is_file():
        return read_modelopt(read_json_object(separate))
    return found


def quantization_of(fields: JsonFields) -> Quantization | None:
    """Return the quantisation that a config.json names, None where it names none; raises UserError."""
    settings = fields.nested("quantization_config")
    if settings is None:
        return None
    named = settings.values.get("quant_method")
    if named is None and "quantization" in settings.values:
        named = Method.MODELOPT
    method = SPELLINGS.get(named, named) if isinstance(named, str) else None
    if method in READERS:
        return READERS[Method(method)](settings)
    way_out = REFUSED_METHODS.get(str(named), "give the unquantised checkpoint and choose a format with --weights")
    expected = f"one of {', '.join(READERS)}"
    if named is None:
        raise UserError(where=f"{settings.where}, key 'quant_method'", expected=expected, found="none", way_out=way_out)
    raise settings.bad("quant_method", expected, way_out)
