"""The scenarios of a suite: texts such as `long: context=32768, batch=4`, each a change of the run's own settings."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from autotune.run_settings import MOST_DIGITS, RunSettings
from configs.device_mistakes import nearest
from configs.errors import UserError

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
MOST_SCENARIOS = 32
MOST_WEIGHT = 1000.0
MOST_VERIFIED = 64


@dataclass(frozen=True, slots=True)
class ScenarioSettings:
    """One scenario: its name, its weight in means over scenarios, and settings that hold no scenarios of their own."""

    name: str
    weight: float
    settings: RunSettings


def scenarios_of(settings: RunSettings) -> tuple[ScenarioSettings, ...]:
    """Return the scenarios that settings name; raises UserError for a text that is none, and for equal ones."""
    if len(settings.scenarios) > MOST_SCENARIOS:
        found = str(len(settings.scenarios))
        raise _mistake("", f"at most {MOST_SCENARIOS} scenarios", found, "leave some out")
    found_all = [_scenario(text, settings) for text in settings.scenarios]
    for number, item in enumerate(found_all):
        before = found_all[:number]
        if any(other.name == item.name or other.settings == item.settings for other in before):
            raise _mistake(
                settings.scenarios[number], "a scenario of its own", "one that is there already", "change it"
            )
    return tuple(found_all)


def scenario_text(values: Mapping[str, object]) -> str:
    """Return the text of a scenario given as keys and values, such as those of a study file."""
    name = f"{values['name']}: " if "name" in values else ""
    return name + ", ".join(f"{key}={value}" for key, value in values.items() if key != "name")


def _scenario(text: str, settings: RunSettings) -> ScenarioSettings:
    name, colon, rest = text.rpartition(":")
    pairs = [_value(text, item.strip()) for item in rest.split(",") if item.strip()]
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _mistake(text, "every key once", f"{len(pairs)} values for {len(values)} keys", "leave one out")
    weight = values.pop("weight", 1.0)
    own = replace(settings, scenarios=(), **values)
    own.require_consistent()
    name = name.strip() if colon else _own_name(own, values)
    if not NAME.fullmatch(name):
        raise _mistake(text, "a name of lower-case letters, digits, _ and - before the colon", repr(name), "rename it")
    return ScenarioSettings(name, weight, own)


def _own_name(settings: RunSettings, values: Mapping[str, Any]) -> str:
    """Return a name made of what a scenario changes."""
    parts = [f"{key}-{value}" for key, value in values.items() if key != "model"]
    model = [str(values["model"])] if "model" in values else []
    return re.sub(r"[^a-z0-9_-]+", "-", "-".join([*model, *parts]).lower()).strip("-")[:40] or "same"


def _value(text: str, item: str) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or key not in KEYS:
        way_out = nearest(key, KEYS) or "give some of these, with commas between them"
        raise _mistake(text, f"KEY=VALUE with KEY one of {', '.join(KEYS)}", repr(item), way_out)
    found = KEYS[key](value)
    if found is None:
        expected = "a word" if KEYS[key] is _word else "a positive number"
        raise _mistake(text, f"{expected} behind {key}=", repr(value), "change it")
    return key, found


def _word(value: str) -> str | None:
    return value or None


def _count(value: str) -> int | None:
    fits = value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS
    return int(value) if fits and int(value) > 0 else None


def _verified(value: str) -> int | None:
    found = _count(value)
    return found if found is not None and found <= MOST_VERIFIED else None


def _weight(value: str) -> float | None:
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,6})?", value):
        return None
    return float(value) if 0 < float(value) <= MOST_WEIGHT else None


KEYS: dict[str, Callable[[str], Any]] = {
    "model": _word,
    "context": _count,
    "batch": _count,
    "weights": _word,
    "kv": _word,
    "speculative": _verified,
    "weight": _weight,
}


def _mistake(text: str, expected: str, found: str, way_out: str) -> UserError:
    return UserError(where=f"--scenario {text}".rstrip(), expected=expected, found=found, way_out=way_out)
