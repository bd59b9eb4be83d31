"""Writes `data/formats`: what other libraries store and read back for small matrices, one file per library.

Run with `python -m tests.fidelity.record_formats` where these are installed (none is needed to run the tests): torchao
0.18.0, compressed-tensors 0.20.1, optimum-quanto 0.2.7, autoawq 0.2.9, auto-gptq 0.7.1. The last two import much that
does not matter here; only the modules with the layouts are loaded.
"""

import importlib
import sys
import types
from pathlib import Path

import torch
from torch import nn

from tests.recorded_arrays import write_arrays

FOLDER = Path(__file__).parent / "data" / "formats"
OUTPUTS, INPUTS, GROUP = 32, 64, 32
FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def main() -> None:
    for record in (record_torchao, record_compressed_tensors, record_quanto, record_autoawq, record_auto_gptq):
        record(torch.Generator().manual_seed(20))


def spread(generator: torch.Generator, rows: int, columns: int) -> torch.Tensor:
    """Return values whose blocks differ in size, one block all zeros, with exact ties and powers of two among them."""
    values = torch.randn(rows, columns, generator=generator) * torch.exp2(
        torch.randint(-12, 12, (rows, columns // 16), generator=generator).float().repeat_interleave(16, 1)
    )
    values[0, :32] = 0
    values[1, :32] = torch.arange(32) / 4
    values[2, :32] = torch.exp2(torch.arange(-16, 16).float())
    return values


def record_torchao(generator: torch.Generator) -> None:
    from torchao.prototype.mx_formats.mx_tensor import to_mx
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale

    values = spread(generator, 16, INPUTS)
    mx_scales, mx_codes = to_mx(values, torch.float4_e2m1fn_x2, 32)
    tensor_scale = per_tensor_amax_to_scale(values.abs().max())
    nv_scales, nv_codes = nvfp4_quantize(values, 16, tensor_scale)
    write_arrays(
        FOLDER / "torchao.json",
        "torchao 0.18.0, prototype.mx_formats: to_mx (FLOOR) and nvfp4_quantize with per_tensor_amax_to_scale, on CPU",
        {
            "values": values.numpy(),
            "mxfp4_codes": mx_codes.view(torch.uint8).numpy(),
            "mxfp4_scales": mx_scales.view(torch.uint8).numpy().reshape(16, -1),
            "nvfp4_codes": nv_codes.view(torch.uint8).numpy(),
            "nvfp4_scales": nv_scales.view(torch.uint8).numpy().reshape(16, -1),
            "nvfp4_tensor_scale": tensor_scale.numpy().reshape(1),
        },
    )


def record_compressed_tensors(generator: torch.Generator) -> None:
    from compressed_tensors.compressors.nvfp4.helpers import pack_fp4_to_uint8, unpack_fp4_from_uint8
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    codes = torch.randint(-8, 8, (OUTPUTS, INPUTS), generator=generator).to(torch.int8)
    zeros = torch.randint(-8, 8, (OUTPUTS, 2), generator=generator).to(torch.int8)
    scales = torch.rand(OUTPUTS, 2, generator=generator).to(torch.bfloat16).float()
    grouped = QuantizationArgs(num_bits=4, type="int", symmetric=False, strategy="group", group_size=GROUP)
    fp4 = pack_fp4_to_uint8(codes.sign() * torch.tensor(FP4)[codes.abs().long().clamp(max=7)])
    block = torch.randint(1, 127, (OUTPUTS, INPUTS // 16), generator=generator).to(torch.uint8)
    divisor = torch.tensor([2688 / 0.37])
    sixteen = QuantizationArgs(num_bits=4, type="float", strategy="tensor_group", group_size=16)
    write_arrays(
        FOLDER / "compressed_tensors.json",
        "compressed-tensors 0.20.1: pack_to_int32, pack_fp4_to_uint8 and dequantize",
        {
            "int4_packed": pack_to_int32(codes, 4).numpy(),
            "int4_zeros": pack_to_int32(zeros, 4, packed_dim=0).numpy(),
            "int4_scales": scales.numpy(),
            "int4_values": dequantize(codes, scales, zeros, grouped, dtype=torch.float32).numpy(),
            "nvfp4_packed": fp4.numpy(),
            "nvfp4_scales": block.numpy(),
            "nvfp4_divisor": divisor.numpy(),
            "nvfp4_values": dequantize(
                unpack_fp4_from_uint8(fp4, OUTPUTS, INPUTS, dtype=torch.float32),
                block.view(torch.float8_e4m3fn).float(),
                args=sixteen,
                global_scale=divisor,
                dtype=torch.float32,
            ).numpy(),
        },
    )


def record_quanto(generator: torch.Generator) -> None:
    from optimum.quanto import MaxOptimizer, qint4, quantize_weight

    values = (torch.randn(1, 2, 5, 128, generator=generator) * 3).to(torch.bfloat16)
    scale, shift = MaxOptimizer()(values, qint4, 0, 64)
    coded = quantize_weight(values, qint4, 0, scale, shift, 64)
    write_arrays(
        FOLDER / "quanto.json",
        "optimum-quanto 0.2.7, as transformers 5.24 calls it (QuantoQuantizedLayer): MaxOptimizer, qint4, axis 0, 64",
        {"values": values.float().numpy()[0], "read_back": coded.dequantize().float().numpy()[0]},
    )


def record_autoawq(generator: torch.Generator) -> None:
    package("awq", "awq.utils", "awq.modules", "awq.modules.linear")
    packing = load("awq.utils.packing_utils")
    load("awq.utils.module")
    gemm = load("awq.modules.linear.gemm")
    codes = torch.randint(0, 16, (OUTPUTS, INPUTS), generator=generator)
    zeros = torch.randint(0, 16, (INPUTS // GROUP, OUTPUTS), generator=generator)
    scales = (torch.rand(INPUTS // GROUP, OUTPUTS, generator=generator) + 0.1).half()
    linear = nn.Linear(INPUTS, OUTPUTS, bias=False)
    each_scale, each_zero = (item.repeat_interleave(GROUP, 0).t().float() for item in (scales, zeros))
    linear.weight.data = (codes - each_zero) * each_scale
    packed = gemm.WQLinear_GEMM.from_linear(linear, 4, GROUP, scales=scales.float(), zeros=zeros.float())
    values = packing.dequantize_gemm(packed.qweight, packed.qzeros, packed.scales.float(), 4, GROUP)
    write_arrays(
        FOLDER / "autoawq.json",
        "AutoAWQ 0.2.9: WQLinear_GEMM.from_linear and dequantize_gemm [inputs, outputs], groups of 32",
        {
            "qweight": packed.qweight.numpy(),
            "qzeros": packed.qzeros.numpy(),
            "scales": packed.scales.float().numpy(),
            "values": values.numpy(),
        },
    )


def record_auto_gptq(generator: torch.Generator) -> None:
    package("auto_gptq", "auto_gptq.nn_modules", "auto_gptq.nn_modules.qlinear")
    sys.modules["auto_gptq.nn_modules.triton_utils"] = types.ModuleType("none")
    mixin = types.ModuleType("auto_gptq.nn_modules.triton_utils.mixin")
    mixin.TritonModuleMixin = object
    sys.modules[mixin.__name__] = mixin
    QuantLinear = load("auto_gptq.nn_modules.qlinear.qlinear_cuda").QuantLinear
    order = torch.randint(0, INPUTS // GROUP, (INPUTS,), generator=generator)
    zeros = torch.randint(1, 17, (OUTPUTS, INPUTS // GROUP), generator=generator)
    scales = (torch.rand(OUTPUTS, INPUTS // GROUP, generator=generator) + 0.1).half().float()
    codes = torch.randint(0, 16, (OUTPUTS, INPUTS), generator=generator)
    linear = nn.Linear(INPUTS, OUTPUTS, bias=False)
    linear.weight.data = (codes - zeros[:, order]) * scales[:, order]
    packed = QuantLinear(4, GROUP, INPUTS, OUTPUTS, bias=False, weight_dtype=torch.float32)
    packed.pack(linear, scales, zeros.clone(), order.int())
    write_arrays(
        FOLDER / "auto_gptq.json",
        "AutoGPTQ 0.7.1: qlinear_cuda.QuantLinear, pack and forward of unit vectors (first version, act-order), fp32",
        {
            "qweight": packed.qweight.numpy(),
            "qzeros": packed.qzeros.numpy(),
            "scales": packed.scales.numpy(),
            "g_idx": packed.g_idx.numpy(),
            "values": packed(torch.eye(INPUTS)).detach().numpy(),
        },
    )


def package(*names: str) -> None:
    """Put packages in place without running their __init__, so that single modules of them can be loaded."""
    for name in names:
        parent, _, own = name.rpartition(".")
        paths = [str(Path(item) / own) for item in (sys.modules[parent].__path__ if parent else sys.path)]
        module = types.ModuleType(name)
        module.__path__ = [path for path in paths if Path(path).is_dir()]
        sys.modules[name] = module


def load(name: str) -> types.ModuleType:
    return importlib.import_module(name)


if __name__ == "__main__":
    main()
