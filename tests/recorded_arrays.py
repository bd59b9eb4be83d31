"""Arrays that another library computed once, kept as text: where they are from, and their bytes in hexadecimal."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_arrays(path: Path, origin: str, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays with a note of where they are from."""
    kept = {
        name: {
            "type": str(array.dtype),
            "shape": list(array.shape),
            "bytes": np.ascontiguousarray(array).tobytes().hex(),
        }
        for name, array in arrays.items()
    }
    path.write_text(json.dumps({"origin": origin, "arrays": kept}, indent=1) + "\n", encoding="utf-8")


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by name."""
    kept = json.loads(path.read_text(encoding="utf-8"))["arrays"]
    return {
        name: np.frombuffer(bytes.fromhex(item["bytes"]), dtype=item["type"]).reshape(item["shape"]).copy()
        for name, item in kept.items()
    }
