"""Typed reading of a JSON object, so that every bad key gives one clear line and never a traceback."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from configs.errors import UserError

# More than any published model has; a size beyond it is a typing error and would only exhaust memory.
LARGEST_INTEGER = 1 << 24


@dataclass(frozen=True, slots=True)
class JsonFields:
    """The values of one JSON object and where they came from; every reader raises UserError on a bad value."""

    where: str
    values: Mapping[str, Any]

    def bad(self, key: str, expected: str, way_out: str = "correct the value in the file") -> UserError:
        """Return the error that names `key`, to be raised by the caller."""
        found = json.dumps(self.values[key]) if key in self.values else "no such key"
        return UserError(where=f"{self.where}, key {key!r}", expected=expected, found=found, way_out=way_out)

    def integer(self, key: str, default: int | None = None, limit: int = LARGEST_INTEGER) -> int:
        """Return an integer from 1 to `limit`; a missing or null key gives `default` when there is one."""
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= limit:
            raise self.bad(key, f"an integer from 1 to {limit}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a positive finite number; a missing or null key gives `default` when there is one."""
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.bad(key, "a positive number")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return a boolean; a missing key is false."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.bad(key, "true or false")
        return value

    def nested(self, key: str) -> "JsonFields | None":
        """Return the object under `key`, or None when it is missing or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.bad(key, "an object or null")
        return JsonFields(f"{self.where}, {key}", value)


def read_json_object(path: Path) -> JsonFields:
    """Read a file that holds one JSON object; raises UserError when it cannot be read or is something else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise UserError(
            where=str(path), expected="a readable JSON file", found=str(error), way_out="check the path and its content"
        ) from error
    if not isinstance(values, dict):
        raise UserError(
            where=str(path),
            expected="a JSON object",
            found=f"a JSON {type(values).__name__}",
            way_out="give a HuggingFace config.json",
        )
    return JsonFields(str(path), values)
