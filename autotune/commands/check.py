"""`explore check`: execute a model's mappings functionally and compare every value."""

from typing import TYPE_CHECKING, Annotated

import typer

from autotune.commands.options import Batch, Context, Kv, Speculative, Weights
from autotune.exit_codes import ANSWER_IS_NO, DONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autotune.numerics_check import Checked


def check_command(
    model: Annotated[str, typer.Argument(help="built-in model, alias, or path of a config.json")],
    hardware: Annotated[str, typer.Option(help="device to check on")] = "gddr6-aim",
    context_length: Context = 4096,
    batch: Batch = 1,
    weights: Weights = "bf16",
    kv: Kv = "bf16",
    speculative: Speculative = 1,
    schedules: Annotated[int, typer.Option(help="random legal schedules of every operator", min=0, max=1000)] = 4,
    seed: Annotated[int, typer.Option(help="of the random schedules", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="print a record per schedule as JSON")] = False,
) -> None:
    """Check the numerics of hand-written, tuned and random schedules, at small sizes of the same structure.

    Every value is compared with the declared order of additions bit by bit, and with fp64. A failure is made as small
    as it can be, and told with operator, schedule, first wrong element and the command that wrote it.
    """
    from json import dumps

    from autotune.numerics_check import check_model
    from autotune.problem_spec import import_workload
    from autotune.run_settings import RunSettings
    from autotune.scenario import complete_device, require_formats, require_programs
    from compiler.lowering import System
    from configs.device import load_device
    from configs.errors import UserError

    settings = RunSettings(model, hardware, batch, context_length, weights=weights, kv=kv, speculative=speculative)
    device = load_device(hardware)
    if device.processing_unit is None:
        raise UserError(
            where=f"--hardware {hardware}",
            expected="a device with processing units",
            found="plain DRAM",
            way_out=f"use {complete_device(device)}",
        )
    require_programs(device)
    settings.require_consistent()
    workload = import_workload(model, batch, context_length, settings.formats(), speculative)
    require_formats(workload, device)
    found = list(check_model(workload.schedulables, System(device, 1), schedules, seed))
    if json:
        print(dumps([item.record() for item in found], indent=1))
    else:
        _print_table(found, f"{settings.scenario_text()} on {device.name}")
    raise typer.Exit(DONE if all(item.passed for item in found) else ANSWER_IS_NO)


def _print_table(found: "Sequence[Checked]", title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("task", "schedule", "format", "kernels run", "verdict", title=title)
    for item in found:
        verdict = "passed" if item.passed and item.kernels else item.report
        table.add_row(item.task, item.mapping, item.stored, str(item.kernels), verdict)
    Console().print(table)
    ran = [item for item in found if item.kernels]
    right = sum(item.passed for item in ran)
    print(
        f"{right} of {len(ran)} schedules passed: every value as the declared order of additions gives it, bit by "
        "bit, exact on integers, and within the rounding bound of fp64"
    )
