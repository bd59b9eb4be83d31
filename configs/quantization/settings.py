"""Checked reading of single quantisation settings; every refusal names the key."""

import json
from collections.abc import Set

from configs.errors import UserError
from configs.json_fields import JsonFields
from configs.quantization.record import WHOLE

UNQUANTISED = "give the unquantised checkpoint and choose a format with --weights"
PER_CHANNEL = -1  # a `group_size` that stands for the whole reduction (GPTQ, AWQ, compressed-tensors)


def require_known(fields: JsonFields, silent: Set[str], *own: str) -> None:
    """Raise UserError for a key that is neither read nor known to change no stored value."""
    for key in fields.values:
        if key not in silent and key not in own and key != "quant_method":
            raise fields.bad(key, f"only settings that are known, such as {', '.join(own[:4])}", UNQUANTISED)


def require(fields: JsonFields, key: str, *allowed: object, default: object = ...) -> None:
    """Raise UserError unless a setting has an allowed value; a missing one has `default`, where there is one."""
    found = fields.values.get(key, default)
    found = found.lower() if isinstance(found, str) else found
    if not any(found == item and type(found) is type(item) for item in allowed):
        raise fields.bad(key, " or ".join(json.dumps(item) for item in allowed), UNQUANTISED)


def group_size(fields: JsonFields) -> int:
    """Return the values along the reduction that share a scale; -1 stands for all of them."""
    if fields.values.get("group_size") == PER_CHANNEL:
        return WHOLE
    return fields.integer("group_size", 128)  # the default of GPTQConfig and AwqConfig


def block_size(fields: JsonFields, key: str) -> tuple[int, int] | None:
    """Return [rows, columns] of a block of weights; None for a missing key."""
    found = fields.values.get(key)
    if found is None:
        return None
    if not isinstance(found, list) or len(found) != 2 or not all(type(side) is int and side > 0 for side in found):
        raise fields.bad(key, "two positive integers, rows and columns")
    return found[0], found[1]


def names(fields: JsonFields, key: str) -> tuple[str, ...]:
    """Return a list of module names; a missing or null key gives none."""
    found = fields.values.get(key) or []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise fields.bad(key, "a list of names")
    return tuple(found)


def needed(fields: JsonFields, key: str) -> JsonFields:
    """Return the object under a key that must be there."""
    found = fields.nested(key)
    if found is None:
        raise UserError(
            where=f"{fields.where}, key {key!r}",
            expected="an object",
            found="no such key",
            way_out=UNQUANTISED,
        )
    return found
