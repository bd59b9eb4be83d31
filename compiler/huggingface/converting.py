"""Modules that convert their parameters while they are made, such as `module.to(float32)` in a constructor.

Torch swaps the contents of the two tensors then, which it refuses for tensors without values.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn


@contextmanager
def conversions_replace_parameters() -> Iterator[None]:
    """Run the body with conversions of modules that put new parameters in the place of the old ones."""
    before = nn.Module._apply
    nn.Module._apply = _replace  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module._apply = before  # type: ignore[method-assign]


def _replace(self: nn.Module, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
    for child in self.children() if recurse else ():
        _replace(child, convert)
    for name, parameter in self._parameters.items():
        if parameter is not None:
            self._parameters[name] = nn.Parameter(convert(parameter), parameter.requires_grad)
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = convert(buffer)
    return self
