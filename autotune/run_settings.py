"""What a run was asked for: plain values, written to `run.yaml`, from which its problem can be made again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autotune.problem import HARDWARE_GROUP, Knob
from compiler.workload import StoredFormats
from configs.errors import UserError
from configs.model_config import config_fields
from configs.number_format import CACHE_STORAGE, STORAGE, NumberFormat, Storage
from configs.quantization import Quantization, quantization_of

RUN_FILE = "run.yaml"
AUTO = "auto"
MOST_DEVICES = 1024
DEVICE_COUNTS = frozenset(str(count) for count in range(1, MOST_DEVICES + 1))
MOST_DIGITS = 9
IDENTITY = "made_from"
# Runs made before these were there had their defaults.
ADDED_LATER = frozenset(
    {
        "weights",
        "kv",
        "speculative",
        "objectives",
        "requirements",
        "scenarios",
        "warm_start",
        "cost_model",
        "stop_when_within",
    }
)
HARDWARE_OF_BASE = f"{HARDWARE_GROUP}=base"  # keeps all hardware knobs that have no values of their own
LISTS = ("restrictions", "objectives", "requirements", "scenarios", "warm_start")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The user's choices; `devices` is a number or `auto`, `restrictions` are NAME=VALUES texts.

    `objectives` are names of figures of merit, `requirements` texts such as `area_mm2 <= 600` in their one spelling,
    `scenarios` texts such as `long: context=32768` (`autotune.suite_settings`); without any the settings are the one.
    `warm_start` are run folders and files of training data; `stop_when_within` is the share by which no known bound may
    be better than the front for the search to end before its budget.
    """

    model: str
    hardware: str = "gddr6-aim"
    batch: int = 1
    context: int = 4096
    devices: str = "1"
    budget: int = 500
    seed: int = 0
    restrictions: tuple[str, ...] = ()
    weights: str = "bf16"
    kv: str = "bf16"
    speculative: int = 1
    objectives: tuple[str, ...] = ("latency", "energy", "area")
    requirements: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    warm_start: tuple[str, ...] = ()
    cost_model: bool = True
    stop_when_within: float | None = None

    def require_consistent(self) -> None:
        """Raise UserError for choices that exclude each other."""
        if self.speculative > self.context:
            raise UserError(
                where="--speculative",
                expected=f"at most the {self.context} tokens of the context, which include those that are verified",
                found=str(self.speculative),
                way_out="give fewer, or a longer --context",
            )
        if self.stop_when_within is not None and not 0.0 <= self.stop_when_within < float("inf"):
            raise UserError(
                where="--stop-when-within",
                expected="a share from 0, such as 0.10",
                found=str(self.stop_when_within),
                way_out="give the share by which bounds may be better than the front",
            )
        if self.warm_start and not self.cost_model:
            raise UserError(
                where="--warm-start",
                expected="a run with a cost model, which is what starts from earlier runs",
                found="--no-cost-model",
                way_out="leave one of them out",
            )

    def scenario_text(self) -> str:
        """Return the model and its scenario in a line."""
        several = f", {self.speculative} tokens verified together" if self.speculative > 1 else ""
        formats = f"weights {self.weights}, cache {self.kv}"
        return f"{self.model}, batch {self.batch}, context {self.context}{several}, {formats},"

    def formats(self) -> StoredFormats:
        """Return what weights and caches are stored as: as the checkpoint says, where it is quantised.

        Raises UserError for a format that is not known, and for one that the checkpoint contradicts.
        """
        weights, cache = _format("--weights", self.weights, STORAGE), _format("--kv", self.kv, CACHE_STORAGE)
        quantization = _quantization(self.model)
        if quantization is None:
            return StoredFormats(weights, cache)
        from compiler.checkpoint.chosen import chosen_formats

        return chosen_formats(quantization, _unless_default(weights), _unless_default(cache))

    def device_count(self) -> int | None:
        """Return how many devices were asked for; None stands for as many as needed."""
        if self.devices == AUTO:
            return None
        if self.devices in DEVICE_COUNTS:
            return int(self.devices)
        raise UserError(
            where="--devices",
            expected=f"a number from 1 to {MOST_DEVICES}, or auto",
            found=repr(self.devices),
            way_out="give one of these",
        )


def _quantization(model: str) -> Quantization | None:
    """Return how a checkpoint's configuration says it is stored; None for models without one."""
    if not Path(model).exists():
        return None
    return quantization_of(config_fields(model))


def _unless_default(found: NumberFormat) -> NumberFormat | None:
    return None if found is NumberFormat.BF16 else found


def _format(option: str, text: str, known: Mapping[NumberFormat, Storage]) -> NumberFormat:
    if text in known:
        return NumberFormat(text)
    raise UserError(where=option, expected=f"one of {', '.join(known)}", found=repr(text), way_out="give one of these")


def save_settings(folder: Path, settings: RunSettings, identity: Mapping[str, str]) -> None:
    """Write run.yaml, whole or not at all, unless it is there: the settings, and what its evaluations depend on."""
    import yaml

    if (folder / RUN_FILE).exists():
        return
    part = folder / f"{RUN_FILE}.part"
    part.write_text(yaml.safe_dump(_plain(settings) | {IDENTITY: dict(identity)}, sort_keys=False), encoding="utf-8")
    part.replace(folder / RUN_FILE)


def load_settings(folder: Path) -> dict[str, Any] | None:
    """Return what run.yaml says; None when the folder holds no run. Raises UserError for a damaged file."""
    import yaml

    path = folder / RUN_FILE
    if not path.is_file():
        return None
    try:
        stored = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        stored = None
    if not isinstance(stored, dict):
        raise UserError(
            where=str(path), expected="the settings of a run", found="a damaged file", way_out="choose another folder"
        )
    return stored


def stored_settings(stored: Mapping[str, Any]) -> RunSettings:
    """Return the settings that `load_settings` found."""
    later = _later_defaults()
    values = {name: stored.get(name, later[name]) if name in later else stored[name] for name in RunSettings.__slots__}
    return RunSettings(**values | {name: tuple(values[name]) for name in LISTS})


def require_same_identity(folder: Path, identity: Mapping[str, str]) -> None:
    """Raise UserError when the folder's evaluations were made by another device, model or version of the sources."""
    stored = load_settings(folder)
    if stored is None:
        return
    kept = stored.get(IDENTITY, {})
    for name, value in identity.items():
        if kept.get(name) != value:
            raise UserError(
                where=f"{folder / RUN_FILE}, {IDENTITY}",
                expected=f"the {name} that made its evaluations ({kept.get(name)})",
                found=f"another one ({value})",
                way_out="its evaluations cannot be continued: choose another folder",
            )


def require_same_settings(folder: Path, settings: RunSettings) -> None:
    """Raise UserError when the folder holds a run with other settings."""
    stored = load_settings(folder)
    if stored is None:
        return
    wanted, defaults = _plain(settings), _later_defaults()
    different = [name for name in wanted if stored.get(name, defaults.get(name)) != wanted[name]]
    if different:
        name = different[0]
        raise UserError(
            where=f"{folder / RUN_FILE}, {name}",
            expected=str(stored.get(name, defaults.get(name))),
            found=str(wanted[name]),
            way_out="resume with the settings of the first run, or choose another folder",
        )


def _later_defaults() -> dict[str, Any]:
    """Return what runs had that were made before these settings were there."""
    return {name: value for name, value in _plain(RunSettings("")).items() if name in ADDED_LATER}


def same_settings(folder: Path, settings: RunSettings) -> bool:
    """Return whether the folder holds a run with exactly these settings."""
    try:
        stored = load_settings(folder)
    except UserError:
        return False
    wanted, defaults = _plain(settings), _later_defaults()
    return stored is not None and {name: stored.get(name, defaults.get(name)) for name in wanted} == wanted


def parse_restrictions(texts: tuple[str, ...], knobs: tuple[Knob, ...]) -> Mapping[str, tuple[int | str, ...]]:
    """Return knob name -> values for texts such as `channels=32`, `lanes=16..64`, `*.order=reload`."""
    by_name: dict[str, list[Knob]] = {}
    for knob in knobs:
        by_name.setdefault(knob.label, []).append(knob)
        if knob.group != HARDWARE_GROUP:
            by_name.setdefault(f"*.{knob.name}", []).append(knob)
    return dict(_restriction(text, by_name) for text in texts if text != HARDWARE_OF_BASE) | (
        {HARDWARE_GROUP: ()} if HARDWARE_OF_BASE in texts else {}
    )


def _restriction(text: str, by_name: Mapping[str, list[Knob]]) -> tuple[str, tuple[int | str, ...]]:
    name, separator, values = text.partition("=")
    if not separator or name not in by_name:
        raise UserError(
            where=f"--set {text}",
            expected=f"NAME=VALUE with NAME one of {', '.join(by_name)}",
            found=repr(name),
            way_out="explore hardware lists the knobs of devices",
        )
    allowed = [value for value in by_name[name][0].values if all(value in knob.values for knob in by_name[name])]
    chosen = _chosen(values, allowed)
    if not chosen:
        raise UserError(
            where=f"--set {text}",
            expected=f"values among {', '.join(str(value) for value in allowed)}",
            found=repr(values),
            way_out="give one value, several with commas, or a range A..B",
        )
    return name, chosen


def _chosen(text: str, allowed: list[int | str]) -> tuple[int | str, ...]:
    """Return the allowed values that a text names; empty when it names anything else."""
    first, dots, last = text.partition("..")
    if dots:
        if not all(text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS for text in (first, last)):
            return ()
        return tuple(value for value in allowed if isinstance(value, int) and int(first) <= value <= int(last))
    by_text = {str(value): value for value in allowed}
    parts = text.split(",")
    return tuple(dict.fromkeys(by_text[part] for part in parts)) if all(part in by_text for part in parts) else ()


def _plain(settings: RunSettings) -> dict[str, Any]:
    plain = asdict(settings)
    return plain | {name: list(plain[name]) for name in LISTS}
