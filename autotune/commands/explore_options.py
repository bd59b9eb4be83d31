"""Options of the main job alone, and its settings from them and a study file: what is typed goes before the file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from autotune.run_settings import RunSettings

Model = Annotated[str, typer.Option(help="built-in model, alias such as llama, or path of a config.json")]
Budget = Annotated[int, typer.Option(help="design points to compile and simulate", min=1)]
Hardware = Annotated[str, typer.Option(help="base device: a name or the path of a .yaml file")]
Seed = Annotated[int, typer.Option(help="every random choice follows from it", min=0)]
Restrict = Annotated[
    list[str] | None,
    typer.Option("--set", help="fix or range a knob: NAME=V, NAME=V,W or NAME=A..B; schedules as TASK.KNOB or *.KNOB"),
]
Objectives = Annotated[
    str,
    typer.Option(
        help="2 to 4 of latency, energy, area, throughput, tokens_per_s_per_w, tokens_per_s_per_mm2, edp, cost"
    ),
]
Require = Annotated[
    list[str] | None, typer.Option("--require", help="limit of a figure or knob, such as 'area_mm2 <= 600'; repeatable")
]
AtMost = Annotated[list[str] | None, typer.Option("--max", help="NAME=VALUE, the same as NAME <= VALUE")]
AtLeast = Annotated[list[str] | None, typer.Option("--min", help="NAME=VALUE, the same as NAME >= VALUE")]
Scenarios = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        help="repeatable: one device for several scenarios, such as 'long: context=32768, batch=4'; keys are model, "
        "context, batch, weights, kv, speculative and weight",
    ),
]
WarmStart = Annotated[
    list[str] | None,
    typer.Option("--warm-start", help="folder of a finished run, or .npz of explore train; repeatable: learn from it"),
]
NoCostModel = Annotated[bool, typer.Option("--no-cost-model", help="choose designs by their lower bounds alone")]
StopWhenWithin = Annotated[
    float | None,
    typer.Option(help="end early once no known lower bound beats the front by more than this share, such as 0.10"),
]
Study = Annotated[Path | None, typer.Option(help="YAML file with these options as keys; options go before it")]
Out = Annotated[Path | None, typer.Option(help="result folder; by default a new one under runs/")]
Workers = Annotated[int, typer.Option(help="processes; 0 takes one per core", min=0)]
Resume = Annotated[bool, typer.Option("--resume", help="continue an interrupted run of the same settings")]
Quiet = Annotated[bool, typer.Option("--quiet", help="show no progress")]
AsJson = Annotated[bool, typer.Option("--json", help="print the Pareto front as JSON")]
# The setting that an option fills, where it has another name.
SETTINGS = {
    "context_length": "context",
    "restrict": "restrictions",
    "require": "requirements",
    "at_most": "requirements",
    "at_least": "requirements",
    "scenario": "scenarios",
    "no_cost_model": "cost_model",
}


def chosen_settings(context: typer.Context, study: Path | None) -> "RunSettings":
    """Return the settings of a call: typed options, then the study file, then defaults."""
    from autotune.run_settings import RunSettings

    values = _values(context.params)
    if study is not None:
        from autotune.study_file import read_study

        typed = {SETTINGS.get(name, name) for name in typed_options(context)}
        values |= {name: value for name, value in read_study(study).items() if name not in typed}
    if not values["model"]:
        _require_model(f"none in {study}")
    return RunSettings(**values)


def typed_options(context: typer.Context) -> list[str]:
    """Return the options that were given on the command line."""
    return [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]


def require_no_options(context: typer.Context) -> None:
    """Raise UserError where options of the main job were given, but not what it is about."""
    typed = typed_options(context)
    if typed:
        _require_model(f"{', '.join(typed)} without it")


def _require_model(found: str) -> None:
    from configs.errors import UserError

    raise UserError(
        where="the main job",
        expected="--model, the model to explore devices and schedules for",
        found=found,
        way_out="give --model llama, or explore --help",
    )


def _values(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that options stand for, defaults included."""
    from autotune.study_file import split_objectives

    plain = ("model", "hardware", "batch", "devices", "budget", "seed", "weights", "kv", "speculative")
    return {name: options[name] for name in plain} | {
        "stop_when_within": options["stop_when_within"],
        "context": options["context_length"],
        "restrictions": tuple(options["restrict"] or ()),
        "objectives": split_objectives(options["objectives"]),
        "scenarios": tuple(options["scenario"] or ()),
        "warm_start": tuple(options["warm_start"] or ()),
        "cost_model": not options["no_cost_model"],
        "requirements": _requirements(options["require"], options["at_most"], options["at_least"]),
    }


def _requirements(
    require: Sequence[str] | None, at_most: Sequence[str] | None, at_least: Sequence[str] | None
) -> tuple[str, ...]:
    from autotune.requirements import canonical_requirement, limit_text

    return (
        *(canonical_requirement(text) for text in require or ()),
        *(limit_text("--max", text) for text in at_most or ()),
        *(limit_text("--min", text) for text in at_least or ()),
    )
