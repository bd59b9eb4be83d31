"""Quantisation settings with a handful of keys: AWQ, GPTQ, FP8 (DeepSeek-V3) and MXFP4 (GPT-OSS).

Sources of the keys: transformers 5.24, utils/quantization_config.py; AutoAWQ 0.2.9, models/_config.py; AutoGPTQ 0.7.1,
modeling/_base.py.
"""

from configs.json_fields import JsonFields
from configs.number_format import STORAGE, NumberFormat
from configs.quantization.record import WHOLE, Method, Quantization
from configs.quantization.settings import block_size, group_size, names, require, require_known

GPTQ_OFFSETS = {"gptq": 1, "gptq_v2": 0}  # what is added to a stored zero point (GPTQModel, checkpoint formats)

# Keys that say how values were found or how they are to be run, not what is stored.
AWQ_SILENT = {"backend", "do_fuse", "fuse_max_seq_len", "modules_to_fuse", "exllama_config"}
GPTQ_SILENT = {
    "desc_act", "act_group_aware", "static_groups", "true_sequential", "damp_percent", "damp_auto_increment", "dataset",
    "tokenizer", "model_name_or_path", "model_file_base_name", "meta", "backend", "batch_size", "pad_token_id",
    "use_cuda_fp16", "use_exllama", "exllama_config", "max_input_length", "cache_block_outputs", "model_seqlen",
    "block_name_to_quantize", "module_name_preceding_first_block", "modules_in_block_to_quantize", "lm_head",
    "disable_exllama", "version", "quantizer",
}  # fmt: skip
FP8_SILENT = {"dequantize", "modules_to_convert"}


def read_awq(fields: JsonFields) -> Quantization:
    """Return the settings of AutoAWQ: 4-bit codes with a zero point per group, in the order of its GEMM kernel."""
    require_known(fields, AWQ_SILENT, "bits", "group_size", "zero_point", "version", "format", "modules_to_not_convert")
    require(fields, "bits", 4, default=4)
    require(fields, "zero_point", True, default=True)
    for key in ("version", "format"):
        require(fields, key, "gemm", default="gemm")
    group = group_size(fields)
    skipped = names(fields, "modules_to_not_convert")
    return Quantization(
        Method.AWQ, NumberFormat.AWQ_INT4, (1, group), zero_points=True, symmetric=False, not_converted=skipped
    )


def read_gptq(fields: JsonFields) -> Quantization:
    """Return the settings of GPTQ; its first format stores every zero point less one."""
    own = ("bits", "group_size", "sym", "checkpoint_format", "format", "dynamic", "is_marlin_format", "pack_dtype")
    require_known(fields, GPTQ_SILENT, *own)
    require(fields, "bits", 4)
    require(fields, "dynamic", None, {}, default=None)
    require(fields, "is_marlin_format", False, default=False)
    require(fields, "pack_dtype", "int32", default="int32")
    key = "checkpoint_format" if fields.values.get("checkpoint_format") else "format"
    require(fields, key, *GPTQ_OFFSETS, default="gptq")
    return Quantization(
        Method.GPTQ,
        NumberFormat.GPTQ_INT4,
        (1, group_size(fields)),
        zero_points=True,
        zero_offset=GPTQ_OFFSETS[fields.values.get(key, "gptq")],
        symmetric=fields.values.get("sym", True) is True,
    )


def read_fp8(fields: JsonFields) -> Quantization:
    """Return the settings of FP8: e4m3 with a scale per block, or per tensor where no block is named."""
    skipped = "modules_to_not_convert" if "modules_to_not_convert" in fields.values else "ignored_layers"
    own = ("activation_scheme", "weight_block_size", "fmt", "scale_fmt", "expert_dtype", "ignored_layers")
    require_known(fields, FP8_SILENT, "modules_to_not_convert", *own)
    require(fields, "activation_scheme", "dynamic", "static", default="dynamic")
    require(fields, "fmt", "e4m3", default="e4m3")
    require(fields, "expert_dtype", "fp8", default="fp8")
    require(fields, "scale_fmt", "float", "ue8m0", default="float")
    block = block_size(fields, "weight_block_size")
    return Quantization(
        Method.FP8,
        NumberFormat.FP8 if block is None else NumberFormat.FP8_BLOCK,
        block or (WHOLE, WHOLE),
        power_of_two_scales=fields.values.get("scale_fmt") == "ue8m0",
        not_converted=names(fields, skipped),
    )


def read_mxfp4(fields: JsonFields) -> Quantization:
    """Return the settings of GPT-OSS: the experts' matrices in mxfp4."""
    require_known(fields, {"dequantize"}, "modules_to_not_convert")
    return Quantization(
        Method.MXFP4,
        NumberFormat.MXFP4,
        (1, STORAGE[NumberFormat.MXFP4].group),
        power_of_two_scales=True,
        not_converted=names(fields, "modules_to_not_convert"),
    )
