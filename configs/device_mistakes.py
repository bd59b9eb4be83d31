"""A mistake in a device file as one clear line: which key, what was expected, what was found, the nearest known name."""

import difflib
import typing
from collections.abc import Iterable

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from configs.errors import UserError

LONGEST_FOUND = 80


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ", did you mean ...?" for the known name most like this one, "" if none is."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""


def mistake(file: str, model: type[BaseModel], error: ValidationError) -> UserError:
    """Return what to tell the user of the first of the errors."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the top level"
    known = _known_keys(model, first["loc"][:-1]) if first["type"] == "extra_forbidden" else []
    if known:
        return UserError(
            where=f"{file}, key {place}",
            expected=f"one of {', '.join(known)}",
            found=f"the unknown key {first['loc'][-1]!r}",
            way_out=nearest(str(first["loc"][-1]), known).removeprefix(", ") or "remove it",
        )
    return UserError(
        where=f"{file}, key {place}",
        expected=first["msg"].removeprefix("Value error, "),
        found=_found(first),
        way_out="the built-in files in configs/hardware show every key",
    )


def _found(error: ErrorDetails) -> str:
    """Return the offending value, shortened; a check of several keys together says itself what it found."""
    if error["type"] == "value_error" and isinstance(error["input"], dict):
        return "what it says"
    found = repr(error["input"])
    return found if len(found) < LONGEST_FOUND else f"{found[: LONGEST_FOUND - 3]}..."


def _known_keys(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """Return the keys of the section at a place of the file."""
    for part in place:
        fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        inner = _section(fields[part]) if part in fields else model
        if inner is None:
            return []
        model = inner
    return [field.alias or name for name, field in model.model_fields.items()]


def _section(annotation: object) -> type[BaseModel] | None:
    """Return the model inside an annotation such as `Link | None` or `tuple[Constraint, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_section(argument) for argument in typing.get_args(annotation))
    return next((section for section in found if section is not None), None)
