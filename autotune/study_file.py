"""A study file: the options of the main job as YAML, under their names on the command line, checked before anything.

model: llama
budget: 200
objectives: [latency, cost]
require: [area_mm2 <= 600, power_avg_w <= 40]
set: {channels: 16..32, lanes: [16, 32], "*.place": pim}
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autotune.requirements import canonical_requirement
from autotune.suite_settings import scenario_text
from configs.device_mistakes import nearest
from configs.errors import UserError
from configs.yaml_text import load_yaml

LONGEST_FOUND = 60
MOST_INTEGER = 10**9


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the file: the setting that it fills, what is expected, and how to read it (None for anything else)."""

    setting: str
    expected: str
    read: Callable[[Any], Any]


def read_study(path: Path) -> dict[str, Any]:
    """Return the settings that a study file gives, by the names of `RunSettings`; raises UserError for a mistake."""
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        found = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise UserError(
            where=f"--study {path}", expected="a YAML file", found=str(found), way_out="give another file"
        ) from error
    if not isinstance(content, Mapping):
        raise UserError(
            where=f"--study {path}",
            expected="keys and values, such as model: llama",
            found=_shortened(content),
            way_out=f"the keys are {', '.join(KEYS)}",
        )
    return {_key(path, name).setting: _value(path, str(name), value) for name, value in content.items()}


def _key(path: Path, name: object) -> Key:
    if name not in KEYS:
        raise UserError(
            where=f"--study {path}",
            expected=f"keys among {', '.join(KEYS)}",
            found=f"the unknown key {_shortened(name)}",
            way_out=nearest(str(name), KEYS) or "remove it",
        )
    return KEYS[str(name)]


def _value(path: Path, name: str, value: object) -> Any:
    found = KEYS[name].read(value)
    if found is None:
        raise UserError(
            where=f"--study {path}, key {name}",
            expected=KEYS[name].expected,
            found=_shortened(value),
            way_out=f"it means the same as --{name} on the command line",
        )
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> str | None:
    """Return a number of devices, or a word such as auto, as the command line takes it."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)


def _integer(least: int, most: int = MOST_INTEGER) -> Callable[[object], int | None]:
    def read(value: object) -> int | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return int(value) if fits and isinstance(value, int) else None

    return read


def _texts(value: object) -> tuple[str, ...] | None:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return None
    return tuple(str(item) for item in items)


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _share(value: object) -> float | None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    return float(value) if fits and isinstance(value, int | float) else None


def _objectives(value: object) -> tuple[str, ...] | None:
    return split_objectives(value) if isinstance(value, str) else _texts(value)


def split_objectives(text: str) -> tuple[str, ...]:
    """Return the names in a text such as `latency,energy,area`."""
    return tuple(name.strip() for name in text.split(","))


def _requirements(value: object) -> tuple[str, ...] | None:
    texts = _texts(value)
    return None if texts is None else tuple(canonical_requirement(text) for text in texts)


def _scenarios(value: object) -> tuple[str, ...] | None:
    """Return scenario texts for a list of texts, or of mappings of keys to values."""
    if not isinstance(value, list) or not all(isinstance(item, str | dict) for item in value):
        return None
    return tuple(item if isinstance(item, str) else scenario_text(item) for item in value)


def _restrictions(value: object) -> tuple[str, ...] | None:
    """Return NAME=VALUES texts for a mapping of knobs to one value, a list of values, or a range A..B."""
    if not isinstance(value, Mapping):
        return None
    texts = []
    for name, chosen in value.items():
        items = chosen if isinstance(chosen, list) else [chosen]
        if not isinstance(name, str) or not items:
            return None
        if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in items):
            return None
        texts.append(f"{name}={','.join(str(item) for item in items)}")
    return tuple(texts)


def _shortened(value: object) -> str:
    found = repr(value)
    return found if len(found) < LONGEST_FOUND else f"{found[: LONGEST_FOUND - 3]}..."


KEYS = {
    "model": Key("model", "a model's name or path", _text),
    "hardware": Key("hardware", "a device's name or path", _text),
    "batch": Key("batch", "a whole number from 1", _integer(1)),
    "context": Key("context", "a whole number from 1", _integer(1)),
    "weights": Key("weights", "a number format", _text),
    "kv": Key("kv", "a number format", _text),
    "speculative": Key("speculative", "a whole number from 1 to 64", _integer(1, 64)),
    "devices": Key("devices", "a number, or auto", _count),
    "budget": Key("budget", "a whole number from 1", _integer(1)),
    "seed": Key("seed", "a whole number from 0", _integer(0)),
    "objectives": Key("objectives", "a list of names, such as [latency, area]", _objectives),
    "require": Key("requirements", "a list of texts, such as [area_mm2 <= 600]", _requirements),
    "scenarios": Key("scenarios", "a list of texts or mappings, such as [{name: long, context: 32768}]", _scenarios),
    "warm_start": Key("warm_start", "a list of run folders and .npz files", _texts),
    "cost_model": Key("cost_model", "true or false", _flag),
    "stop_when_within": Key("stop_when_within", "a share from 0, such as 0.10", _share),
    "set": Key("restrictions", "knobs with values, such as {channels: 32, lanes: 16..64}", _restrictions),
}
