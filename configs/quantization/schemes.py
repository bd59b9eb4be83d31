"""Quantisation settings made of schemes of bits and groups: compressed-tensors, and NVIDIA's ModelOpt.

Sources: compressed-tensors 0.20, quantization/quant_args.py and config/base.py; for both spellings of ModelOpt
(config.json and hf_quant_config.json) vLLM, quantization/modelopt.py.
"""

from configs.json_fields import JsonFields
from configs.number_format import STORAGE, NumberFormat
from configs.quantization.record import WHOLE, Method, Quantization
from configs.quantization.settings import UNQUANTISED, block_size, names, needed, require, require_known

SCHEME_SILENT = {
    "actorder", "observer", "observer_kwargs", "zp_dtype", "scale_dtype", "strategy", "dynamic", "block_structure",
}  # fmt: skip
GROUPS_SILENT = {"quantization_status", "global_compression_ratio", "version", "run_compressed", "dequantize"}
NVFP4_GROUP = STORAGE[NumberFormat.NVFP4].group
FP8_SIDES = (128, 128)  # ModelOpt's, and DeepSeek-V3's weight_block_size

# ModelOpt's `quant_algo` -> format and block of its weights.
ALGORITHMS = {
    "FP8": (NumberFormat.FP8, (WHOLE, WHOLE)),
    "FP8_PER_CHANNEL_PER_TOKEN": (NumberFormat.FP8, (1, WHOLE)),
    "FP8_PB_WO": (NumberFormat.FP8_BLOCK, FP8_SIDES),
    "NVFP4": (NumberFormat.NVFP4, (1, NVFP4_GROUP)),
    "W4A16_NVFP4": (NumberFormat.NVFP4, (1, NVFP4_GROUP)),
}
CACHE_ALGORITHMS = {None: None, "NONE": None, "FP8": NumberFormat.FP8, "INT8": NumberFormat.INT8}


def read_modelopt(fields: JsonFields) -> Quantization:
    """Return the settings of ModelOpt, whose `quant_algo` names the format as a whole."""
    inner = fields.nested("quantization")
    settings = inner or fields
    own = ("quant_algo", "group_size", "kv_cache_quant_algo", "kv_cache_scheme", "ignore", "exclude_modules")
    silent = {"producer", "config_groups", "has_zero_point", "pre_quant_scale"}
    require_known(settings, silent, *own)
    algorithm = str(settings.values.get("quant_algo")).upper()
    if algorithm not in ALGORITHMS:
        raise settings.bad("quant_algo", f"one of {', '.join(ALGORITHMS)}", UNQUANTISED)
    require(settings, "has_zero_point", False, default=False)
    require(settings, "pre_quant_scale", False, default=False)
    weights, block = ALGORITHMS[algorithm]
    if weights is NumberFormat.NVFP4:
        require(settings, "group_size", NVFP4_GROUP, default=NVFP4_GROUP)
    skipped = "ignore" if "ignore" in settings.values else "exclude_modules"
    return Quantization(
        Method.MODELOPT, weights, block, not_converted=names(settings, skipped), cache=_modelopt_cache(settings)
    )


def _modelopt_cache(fields: JsonFields) -> NumberFormat | None:
    named = fields.values.get("kv_cache_quant_algo")
    algorithm = named.upper() if isinstance(named, str) else named
    if algorithm not in CACHE_ALGORITHMS:
        raise fields.bad("kv_cache_quant_algo", "FP8, INT8 or null", "choose another format of the cache with --kv")
    return CACHE_ALGORITHMS[algorithm] or _cache_scheme(fields)


def read_compressed_tensors(fields: JsonFields) -> Quantization:
    """Return the settings of compressed-tensors with one scheme for all groups of modules."""
    own = ("config_groups", "format", "ignore", "kv_cache_scheme")
    empty = ("sparsity_config", "transform_config", "moe_sparsity_config")
    require_known(fields, GROUPS_SILENT, *own, *empty)
    for key in empty:
        require(fields, key, None, {}, {"format": "dense"}, default=None)
    groups = needed(fields, "config_groups")
    schemes = {_scheme(needed(needed(groups, name), "weights")) for name in groups.values}
    if len(schemes) != 1:
        raise fields.bad("config_groups", "one scheme for all modules", UNQUANTISED)
    weights, block, symmetric = schemes.pop()
    return Quantization(
        Method.COMPRESSED_TENSORS,
        weights,
        block,
        zero_points=not symmetric,
        symmetric=symmetric,
        power_of_two_scales=weights is NumberFormat.MXFP4,
        not_converted=names(fields, "ignore"),
        cache=_cache_scheme(fields),
    )


def _scheme(fields: JsonFields) -> tuple[NumberFormat, tuple[int, int], bool]:
    """Return format, block, and whether codes are symmetric, of one scheme of weights."""
    require_known(fields, SCHEME_SILENT, "num_bits", "type", "symmetric", "group_size")
    require(fields, "dynamic", False, default=False)
    require(fields, "symmetric", True, False, default=True)
    symmetric, strategy = fields.values.get("symmetric", True), fields.values.get("strategy")
    kind = (fields.values.get("type", "int"), fields.values.get("num_bits", 8))
    group = fields.values.get("group_size")
    size: int = group if type(group) is int and group > 0 else WHOLE
    match kind, symmetric:
        case ("int", 8), True if not size:
            return NumberFormat.INT8, (WHOLE if strategy == "tensor" else 1, WHOLE), True
        case ("int", 4), _:
            stored = NumberFormat.INT4 if symmetric else NumberFormat.AWQ_INT4
            return stored, (1, size), symmetric is True
        case ("float", 8), True if strategy == "block":
            return NumberFormat.FP8_BLOCK, block_size(fields, "block_structure") or FP8_SIDES, True
        case ("float", 8), True if not size:
            return NumberFormat.FP8, (1 if strategy == "channel" else WHOLE, WHOLE), True
        case ("float", 4), True if size == NVFP4_GROUP:
            return NumberFormat.NVFP4, (1, size), True
        case ("float", 4), True if size == STORAGE[NumberFormat.MXFP4].group:
            return NumberFormat.MXFP4, (1, size), True
    expected = "int8 per channel, int4, fp8, nvfp4 (groups of 16) or mxfp4 (groups of 32)"
    raise fields.bad("num_bits" if "num_bits" in fields.values else "type", expected, UNQUANTISED)


def _cache_scheme(fields: JsonFields) -> NumberFormat | None:
    scheme = fields.nested("kv_cache_scheme")
    if scheme is None:
        return None
    require_known(scheme, SCHEME_SILENT, "num_bits", "type", "symmetric", "group_size")
    require(scheme, "num_bits", 8)
    require(scheme, "type", "float", "int", default="int")
    require(scheme, "symmetric", True, default=True)
    return NumberFormat.FP8 if scheme.values.get("type") == "float" else NumberFormat.INT8
