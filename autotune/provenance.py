"""Where the numbers of a run come from: versions, settings, and every constant of the device with its source."""

import json
import platform
import re
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from autotune.finished import FinishedRun
from autotune.system_energy import energy_of
from configs.device import HARDWARE_FOLDER, Basis, Device

PACKAGES = ("pim-explore", "torch", "numpy", "scipy", "numba", "xgboost-cpu", "xgboost", "optuna", "moocore", "pandas")
SECTIONS = (
    "clock_ps",
    "organisation",
    "unit",
    "timing",
    "refresh",
    "energy",
    "area",
    "power",
    "link",
    "host",
    "dispatcher",
)
TRAILING = re.compile(r"\s#\s*(.*)$")
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant of the device file; `source` is its comment, or the comment its block begins with."""

    name: str
    value: Any
    source: str


def write_provenance(run: FinishedRun) -> Path:
    """Write provenance.json and return its path."""
    path = run.folder / "provenance.json"
    path.write_text(json.dumps(provenance(run), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def provenance(run: FinishedRun) -> dict[str, object]:
    """Return the sheet as plain values; it names no path of this machine."""
    base = run.problem.scenario.base
    return {
        "settings": run.shown_settings,
        "seed": run.settings.get("seed"),
        "git_commit": git_commit(Path(__file__).resolve().parents[1]),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": package_versions(),
        "device": {"name": base.name, "title": base.title, "sha256": base.fingerprint()},
        "energy_basis": {
            "energy_pj": str(energy_of(run.problem.scenario).basis),
            "energy_typical_pj": str(Basis.TYPICAL),
        },
        "constants": [asdict(item) for item in device_constants(base, str(run.settings.get("hardware", "")))],
        "assumptions": list(base.assumptions),
    }


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that can change a result, those that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def device_constants(device: Device, name_or_path: str) -> tuple[Constant, ...]:
    """Return the base device's constants; sources are empty where its file cannot be read any more."""
    built_in = HARDWARE_FOLDER / f"{device.name}.yaml"
    path = built_in if name_or_path == device.name else Path(name_or_path)
    sources: dict[str, str] = {}
    if path.is_file():
        sources = commented_keys(path.read_text(encoding="utf-8"))
    content = device.model_dump(mode="json", exclude_none=True)
    return tuple(
        Constant(name, value, _source(name, sources))
        for section in SECTIONS
        if section in content
        for name, value in _leaves(section, content[section])
    )


def commented_keys(text: str) -> dict[str, str]:
    """Return the comment of every key of a YAML text, by dotted name: on its line, else the last above in its block."""
    lines = text.splitlines()
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    found: dict[str, str] = {}
    if isinstance(root, yaml.MappingNode):
        _collect(root, "", lines, found)
    return found


def git_commit(folder: Path) -> str | None:
    """Return the commit a checkout stands at; None for an installed package."""
    head = folder / ".git" / "HEAD"
    if not head.is_file():
        return None
    text = head.read_text(encoding="utf-8").strip()
    if text.startswith("ref: "):
        name = text.removeprefix("ref: ")
        reference, packed = folder / ".git" / name, folder / ".git" / "packed-refs"
        text = reference.read_text(encoding="utf-8").strip() if reference.is_file() else _packed(packed, name)
    return text if COMMIT.fullmatch(text) else None


def _packed(path: Path, name: str) -> str:
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")


def _collect(node: yaml.MappingNode, prefix: str, lines: list[str], found: dict[str, str]) -> None:
    first = node.start_mark.line
    for key, value in node.value:
        name, line = f"{prefix}{key.value}", key.start_mark.line
        trailing = TRAILING.search(lines[line])
        if trailing is not None:
            found[name] = trailing[1]
        elif (above := _comment_above(lines, first if prefix else line, line)) is not None:
            found[name] = above
        if isinstance(value, yaml.MappingNode):
            _collect(value, f"{name}.", lines, found)


def _comment_above(lines: list[str], first: int, line: int) -> str | None:
    """Return the whole comment block nearest above a line, not above the line before `first`."""
    end = next((row for row in range(line - 1, max(first - 2, -1), -1) if lines[row].lstrip().startswith("#")), None)
    if end is None:
        return None
    start = end
    while start > 0 and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return " ".join(row.strip().lstrip("# ") for row in lines[start : end + 1])


def _source(name: str, sources: dict[str, str]) -> str:
    """Return the source of a constant: its own, or that of the nearest section around it."""
    while name not in sources and "." in name:
        name = name.rpartition(".")[0]
    return sources.get(name, "")


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(name, value)]
    return [leaf for key, inner in value.items() for leaf in _leaves(f"{name}.{key}", inner)]
