"""The command line: bare options run the main job, subcommands look at its parts.

Exit codes: 0 done, 1 the answer is no, 2 a user's mistake, 70 a bug, 130 interrupted. Heavy modules are imported where
they are used, so that `explore --help` is instant.
"""

import typer

from autotune.commands import explore_options as opt
from autotune.commands.baseline import baseline_command
from autotune.commands.check import check_command
from autotune.commands.compile import compile_command
from autotune.commands.hardware import hardware_command
from autotune.commands.import_model import import_command
from autotune.commands.models import models_command
from autotune.commands.options import Batch, Context, Devices, Kv, Speculative, Weights
from autotune.commands.replay import replay_command
from autotune.commands.sensitivity import sensitivity_command
from autotune.commands.timeline import timeline_command
from autotune.commands.train import train_command
from autotune.commands.tune import tune_command
from autotune.exit_codes import run_to_exit_code

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=False)
app.command("baseline")(baseline_command)
app.command("replay")(replay_command)
app.command("timeline")(timeline_command)
app.command("sensitivity")(sensitivity_command)
app.command("tune")(tune_command)
app.command("train")(train_command)
app.command("import")(import_command)
app.command("check")(check_command)
app.command("compile")(compile_command)
app.command("models")(models_command)
app.command("hardware")(hardware_command)


@app.callback(invoke_without_command=True)
def explore_command(
    context: typer.Context,
    model: opt.Model = "",
    budget: opt.Budget = 500,
    hardware: opt.Hardware = "gddr6-aim",
    batch: Batch = 1,
    context_length: Context = 4096,
    weights: Weights = "bf16",
    kv: Kv = "bf16",
    speculative: Speculative = 1,
    devices: Devices = "1",
    seed: opt.Seed = 0,
    objectives: opt.Objectives = "latency,energy,area",
    require: opt.Require = None,
    at_most: opt.AtMost = None,
    at_least: opt.AtLeast = None,
    restrict: opt.Restrict = None,
    scenario: opt.Scenarios = None,
    warm_start: opt.WarmStart = None,
    no_cost_model: opt.NoCostModel = False,
    stop_when_within: opt.StopWhenWithin = None,
    study: opt.Study = None,
    out: opt.Out = None,
    workers: opt.Workers = 0,
    resume: opt.Resume = False,
    quiet: opt.Quiet = False,
    json: opt.AsJson = False,
) -> None:
    """Find Pareto-optimal processing-in-memory devices and schedules for decoding a language model.

    explore --model llama --budget 500
    """
    if context.invoked_subcommand is not None:
        return
    if not model and study is None:
        opt.require_no_options(context)
        print(context.get_help())
        raise typer.Exit(0)
    settings = opt.chosen_settings(context, study)
    from autotune.commands.explore import explore_and_print

    raise typer.Exit(explore_and_print(settings, out=out, workers=workers, resume=resume, quiet=quiet, as_json=json))


def main() -> None:
    """Run the command line; a user's mistake is one line on stderr and exit code 2."""
    run_to_exit_code(app)


if __name__ == "__main__":
    main()
