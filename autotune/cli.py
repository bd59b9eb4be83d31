"""The command line: bare options run the main job, subcommands look at its parts.

Exit codes: 0 done, 1 the answer is no, 2 a user's mistake, 70 a bug, 130 interrupted. Heavy modules are imported where
they are used, so that `explore --help` is instant.
"""

from pathlib import Path
from typing import Annotated

import typer

from autotune.commands.baseline import baseline_command
from autotune.commands.check import check_command
from autotune.commands.compile import compile_command
from autotune.commands.hardware import hardware_command
from autotune.commands.import_model import import_command
from autotune.commands.models import models_command
from autotune.commands.options import Batch, Context, Devices, Kv, Speculative, Weights
from autotune.commands.replay import replay_command
from autotune.commands.timeline import timeline_command
from autotune.commands.tune import tune_command
from autotune.exit_codes import run_to_exit_code

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=False)
app.command("baseline")(baseline_command)
app.command("replay")(replay_command)
app.command("timeline")(timeline_command)
app.command("tune")(tune_command)
app.command("import")(import_command)
app.command("check")(check_command)
app.command("compile")(compile_command)
app.command("models")(models_command)
app.command("hardware")(hardware_command)


@app.callback(invoke_without_command=True)
def explore_command(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="built-in model, alias such as llama, or path of a config.json")] = "",
    budget: Annotated[int, typer.Option(help="design points to compile and simulate", min=1)] = 500,
    hardware: Annotated[str, typer.Option(help="base device: a name or the path of a .yaml file")] = "gddr6-aim",
    batch: Batch = 1,
    context_length: Context = 4096,
    weights: Weights = "bf16",
    kv: Kv = "bf16",
    speculative: Speculative = 1,
    devices: Devices = "1",
    seed: Annotated[int, typer.Option(help="every random choice follows from it", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="result folder; by default a new one under runs/")] = None,
    restrict: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="fix or range a knob: NAME=V, NAME=V,W or NAME=A..B; schedules as TASK.KNOB or *.KNOB"
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="processes; 0 takes one per core", min=0)] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="continue an interrupted run of the same settings")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="show no progress")] = False,
    json: Annotated[bool, typer.Option("--json", help="print the Pareto front as JSON")] = False,
) -> None:
    """Find Pareto-optimal processing-in-memory devices and schedules for decoding a language model.

    explore --model llama --budget 500
    """
    if context.invoked_subcommand is not None:
        return
    if not model:
        _require_no_options(context)
        print(context.get_help())
        raise typer.Exit(0)
    from autotune.commands.explore import explore_and_print
    from autotune.run_settings import RunSettings

    settings = RunSettings(
        model=model,
        hardware=hardware,
        batch=batch,
        context=context_length,
        devices=devices,
        budget=budget,
        seed=seed,
        restrictions=tuple(restrict or ()),
        weights=weights,
        kv=kv,
        speculative=speculative,
    )
    raise typer.Exit(explore_and_print(settings, out=out, workers=workers, resume=resume, quiet=quiet, as_json=json))


def _require_no_options(context: typer.Context) -> None:
    """Raise UserError where options of the main job were given, but not what it is about."""
    from configs.errors import UserError

    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    if given:
        raise UserError(
            where="explore",
            expected="--model, the model to explore devices and schedules for",
            found=f"{', '.join(given)} without it",
            way_out="give --model llama, or explore --help",
        )


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    run_to_exit_code(app)


if __name__ == "__main__":
    main()
