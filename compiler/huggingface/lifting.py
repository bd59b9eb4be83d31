"""Float64 throughout: transformers asks for float32 in norms, softmax, rotary tables and routers of any model.

A float64 model is then only as exact as float32. Here every float32 that code asks for, by a function's argument or by
an operator's, becomes a float64, for the oracle as well as for what is captured.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

LIFTED = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class _Functions(TorchFunctionMode):
    """Replaces float32 in the arguments of Python functions, `torch.tensor` among them, and `.float()`."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        if function is Tensor.float:
            function = Tensor.double
        return function(
            *[_lifted(one) for one in arguments], **{key: _lifted(one) for key, one in (named or {}).items()}
        )


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Replaces float32 in the arguments of operators."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        return function(
            *[_lifted(one) for one in arguments], **{key: _lifted(one) for key, one in (named or {}).items()}
        )


def _lifted(value: Any) -> Any:
    return LIFTED.get(value, value) if isinstance(value, torch.dtype) else value


@contextmanager
def lifted_functions(active: bool = True) -> Iterator[None]:
    """Run the body with every float32 that Python code asks for made float64: all that tracing a model needs."""
    if not active:
        yield
        return
    with _Functions():
        yield


@contextmanager
def lifted_to_float64(active: bool = True) -> Iterator[None]:
    """Run the body with every cast to float32 and every new float32 tensor made float64 instead."""
    if not active:
        yield
        return
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Functions(), _Operators():  # type: ignore[no-untyped-call]
            yield
    finally:
        torch.set_default_dtype(before)
