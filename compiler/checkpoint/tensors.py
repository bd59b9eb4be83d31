"""One tensor of a checkpoint as a numpy array: numbers as numbers, codes of 8 bits as uint8."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.checkpoint.listing import StoredTensor, safetensors_module

# Types without a numpy equivalent that are read as their bytes; decoders know what they stand for.
CODES = ("F8_E4M3", "F8_E8M0", "F8_E5M2")


def read_tensor(tensor: StoredTensor) -> NDArray[Any]:
    """Return the values of one tensor; bf16 and fp16 as float32, which is exact, fp8 and e8m0 as their codes."""
    import torch

    with safetensors_module().safe_open(tensor.file, framework="pt") as file:
        found = file.get_tensor(tensor.name)
    if tensor.element_type in CODES:
        found = found.view(torch.uint8)
    elif tensor.element_type in ("BF16", "F16"):
        found = found.to(torch.float32)
    array: NDArray[Any] = np.ascontiguousarray(found.numpy())
    return array.reshape(tensor.shape)
