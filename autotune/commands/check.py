"""`explore check`: execute a model's mappings functionally and compare every value."""

from typing import Annotated

import typer

from autotune.exit_codes import ANSWER_IS_NO, DONE


def check_command(
    model: Annotated[str, typer.Argument(help="built-in model, alias, or path of a config.json")],
    hardware: Annotated[str, typer.Option(help="device to check on")] = "gddr6-aim",
    context_length: Annotated[int, typer.Option("--context", help="tokens in the KV cache", min=1)] = 4096,
) -> None:
    """Check the numerics of the hand mapping and of its overlapped form, at a small size of the same structure."""
    from rich.console import Console
    from rich.table import Table

    from autotune.hand_mapping import hand_mapping, overlapped_mapping
    from autotune.problem_spec import import_workload
    from compiler.lowering import System
    from compiler.numerics import numerics_of
    from configs.device import load_device
    from configs.errors import UserError

    device = load_device(hardware)
    if device.processing_unit is None:
        raise UserError(
            where=f"--hardware {hardware}",
            expected="a device with processing units",
            found="plain DRAM",
            way_out="use gddr6-aim",
        )
    shapes = import_workload(model, 1, context_length).schedulables
    table = Table("task", "mapping", "cases", "verdict", title=f"{model} on {device.name}")
    passed = True
    for name, mapping in (("hand", hand_mapping), ("overlapped", overlapped_mapping)):
        for task, schedule in mapping(shapes, System(device, 1)).items():
            report = numerics_of(schedule, device)
            passed &= report.passed
            table.add_row(task, name, str(report.cases), "passed" if report.passed else str(report))
    Console().print(table)
    raise typer.Exit(DONE if passed else ANSWER_IS_NO)
