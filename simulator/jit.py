"""The one place where functions are compiled: numba's decorators, cached on disk and with their types kept for mypy.

The cache does not know of a change here: remove `__pycache__` after editing this module.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_njit: Any = numba.njit  # its stub lacks the option _nrt


def njit(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function at its first call; the machine code is kept beside the module for the next process."""
    return cast("Callable[Parameters, Result]", _njit(cache=True)(function))


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile an entry that allocates nothing, without counting references to its arrays.

    With records of many arrays that counting took nine tenths of the time (perf, numba 0.68).
    """
    return cast("Callable[Parameters, Result]", _njit(cache=True, _nrt=False)(function))


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that allocates nothing into each of its callers, which have to be kernels."""
    return cast("Callable[Parameters, Result]", _njit(cache=True, _nrt=False, forceinline=True)(function))
