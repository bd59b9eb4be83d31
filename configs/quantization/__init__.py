"""How a checkpoint says its weights and KV cache are stored: HuggingFace's `quantization_config`, read and checked.

`record` is what is known in the end; `reading` finds the settings and dispatches by `quant_method`; `methods` reads
those with a handful of keys (awq, gptq, fp8, mxfp4), `schemes` those made of schemes of bits and groups
(compressed-tensors, modelopt). A setting that is not known, or that changes values in a way not modelled, is refused by
name. `compiler.checkpoint` reads the tensors themselves.
"""

from configs.quantization.reading import load_quantization, quantization_of
from configs.quantization.record import Method, Quantization

__all__ = ["Method", "Quantization", "load_quantization", "quantization_of"]
