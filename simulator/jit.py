"""The one place where functions are compiled: numba's decorators, cached on disk and with their types kept for mypy.

numba renews a cached function when its own file changes, not when one it calls or a constant it uses does. So the cache
has a folder for each state of the simulator's sources, and stale machine code is never met.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_njit: Any = numba.njit  # the stubs lack the option _nrt
_config: Any = numba.config


def _sources_fingerprint() -> str:
    folder = Path(__file__).parent
    sources = sorted(folder.rglob("*.py"))
    text = "\n".join(f"{path.relative_to(folder)}\n{path.read_text(encoding='utf-8')}" for path in sources)
    return hashlib.sha256(text.encode()).hexdigest()


_folder = Path(_config.CACHE_DIR or Path(__file__).parent / "__pycache__")
_config.CACHE_DIR = str(_folder / f"kernels-{_sources_fingerprint()[:16]}")


def njit(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function at its first call; the machine code is kept for the next process."""
    return cast("Callable[Parameters, Result]", _njit(cache=True)(function))


def kernel(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile an entry that allocates nothing, without counting references to its arrays.

    With records of many arrays that counting took nine tenths of the time (perf, numba 0.68).
    """
    return cast("Callable[Parameters, Result]", _njit(cache=True, _nrt=False)(function))


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function that allocates nothing into each of its callers, which have to be kernels."""
    return cast("Callable[Parameters, Result]", _njit(cache=True, _nrt=False, forceinline=True)(function))


def spliced(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a function part of each of its callers' sources, so to say: it is never compiled by itself.

    A caller of inlined functions or kernels is optimised together with them, over again at each level of calls;
    splicing spares that (the engine's first run took 23 s of compiling without it, 14 s with it).
    """
    return cast("Callable[Parameters, Result]", _njit(cache=True, _nrt=False, inline="always")(function))
