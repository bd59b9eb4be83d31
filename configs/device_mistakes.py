"""A mistake in a device file as one clear line: which key, expected against found, and the nearest known name."""

import difflib
import typing
from collections.abc import Iterable

from pydantic import BaseModel, ValidationError

from configs.errors import UserError

LONGEST_FOUND = 80
UNKNOWN_KEY = "extra_forbidden"
LOOK = "the built-in files in configs/hardware show every key"


class InconsistentDevice(ValueError):  # noqa: N818 - named for what it reports
    """Raised by a check of several keys together; it says which key to look at and what to do."""

    def __init__(self, *, place: str, expected: str, found: str, way_out: str = "") -> None:
        """Keep the parts of the message."""
        super().__init__(f"{place}: expected {expected}, found {found}")
        self.place, self.expected, self.found, self.way_out = place, expected, found, way_out or LOOK


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?" for the known name most like this one, "" if none is."""
    names = list(known)
    same = [other for other in names if other.casefold() == name.casefold()]
    close = same or difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else ""


def mistake(file: str, model: type[BaseModel], error: ValidationError) -> UserError:
    """Return what to tell the user of the first of the errors; a misspelt key goes before the key it is missing as."""
    first = min(error.errors(), key=lambda found: found["type"] != UNKNOWN_KEY)
    reported = first.get("ctx", {}).get("error")
    if isinstance(reported, InconsistentDevice):
        where = f"{file}, key {reported.place}"
        return UserError(where=where, expected=reported.expected, found=reported.found, way_out=reported.way_out)
    where = f"{file}, key {'.'.join(str(part) for part in first['loc']) or 'the top level'}"
    known = _known_keys(model, first["loc"][:-1]) if first["type"] == UNKNOWN_KEY else []
    if known:
        name = str(first["loc"][-1])
        return UserError(
            where=where,
            expected=f"one of {', '.join(known)}",
            found=f"the unknown key {name!r}",
            way_out=nearest(name, known) or "remove it",
        )
    if first["type"] == "missing":
        return UserError(where=where, expected="this key", found="none", way_out=LOOK)
    expected = first["msg"].removeprefix("Value error, ")
    return UserError(where=where, expected=expected, found=_shortened(first["input"]), way_out=LOOK)


def _shortened(value: object) -> str:
    found = repr(value)
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
