"""`explore tune`: the best schedule of every operator on one device, beside what was written by hand for it."""

from typing import TYPE_CHECKING, Annotated

import typer

from autotune.commands.options import Batch, Context, Devices, Kv, Speculative, Weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autotune.tuning_report import OperatorRow
    from compiler.workload import Schedulable

PLAIN_WIDTH = 150


def tune_command(
    model: Annotated[str, typer.Argument(help="built-in model, alias, or path of a config.json")],
    hardware: Annotated[str, typer.Option(help="device: a name or the path of a .yaml file")] = "gddr6-aim",
    context_length: Context = 4096,
    batch: Batch = 1,
    weights: Weights = "bf16",
    kv: Kv = "bf16",
    speculative: Speculative = 1,
    devices: Devices = "1",
    operator: Annotated[str, typer.Option("--op", help="one operator, such as down_proj; by default all")] = "",
    simulations: Annotated[int, typer.Option(help="most schedules simulated for an operator", min=1)] = 200,
    restrict: Annotated[
        list[str] | None, typer.Option("--set", help="fix or range a schedule knob: TASK.KNOB=V or *.KNOB=V,W")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print a record per operator as JSON")] = False,
) -> None:
    """Tune every operator of a decode step alone, and say who wrote its fastest schedule, and by how much.

    Schedules are simulated in rising order of their lower bounds; where a bound reaches the fastest found, that is
    proved to be the fastest of all.
    """
    from json import dumps

    from autotune.problem_spec import problem_spec
    from autotune.run_settings import RunSettings
    from autotune.tuning import tune
    from autotune.tuning_report import operator_rows, step_cycles

    settings = RunSettings(
        model=model,
        hardware=hardware,
        batch=batch,
        context=context_length,
        devices=devices,
        restrictions=tuple(restrict or ()),
        weights=weights,
        kv=kv,
        speculative=speculative,
    )
    spec = problem_spec(settings)
    _require_schedule_knobs(tuple(spec.restrictions))
    scenario = spec().scenario
    shapes, system = _chosen(scenario.space.schedulables, operator), scenario.system_of_base
    tuned = tune(shapes, system, simulations, spec.restrictions, say=_say)
    rows = operator_rows(shapes, tuned, system)
    steps = {} if operator else step_cycles(scenario, {item.name: item.schedule for item in tuned})
    if json:
        print(dumps({"operators": [row.record() for row in rows], "step_cycles": steps}, indent=1))
        return
    _print_table(rows, f"{settings.scenario_text()} on {system.devices} x {system.device.name}")
    if steps:
        print("whole step:", ", ".join(f"{name} {cycles:,} cycles" for name, cycles in steps.items()))


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _chosen(shapes: "tuple[Schedulable, ...]", operator: str) -> "tuple[Schedulable, ...]":
    from autotune.compiled import unknown_operator

    chosen = tuple(shape for shape in shapes if operator in ("", shape.name))
    if not chosen:
        raise unknown_operator(operator, [shape.name for shape in shapes])
    return chosen


def _require_schedule_knobs(names: tuple[str, ...]) -> None:
    from configs.errors import UserError

    for name in names:
        if "." not in name:
            raise UserError(
                where=f"--set {name}",
                expected="a schedule knob, TASK.KNOB or *.KNOB: operators are tuned on one device",
                found="a knob of the device",
                way_out="give another device with --hardware, or search devices with explore --model",
            )


def _print_table(rows: "Sequence[OperatorRow]", title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    by_hand = list(dict.fromkeys(name for row in rows for name in row.hand_cycles))
    table = Table(
        "operator", *by_hand, "tuned", "bound", "won by", "gain", "bound\n/tuned", "rows\n/tuned", title=title
    )
    for row in rows:
        cells = [f"{row.hand_cycles[name]:,}" if name in row.hand_cycles else "" for name in by_hand]
        shares = f"{row.lower_bound_share:.3f}", f"{row.raw_row_share:.3f}"
        figures = f"{row.tuned_cycles:,}", f"{row.lower_bound_cycles:,}", row.winner, f"{row.gain_over_hand:.3f}"
        table.add_row(row.operator, *cells, *figures, *shares)
    console = Console()
    (console if console.is_terminal else Console(width=PLAIN_WIDTH)).print(table)
    print(
        "Cycles of one occurrence, alone; bound: of any schedule; rows: nothing but rows; gain: over the best by hand."
    )
    for row in rows:
        extent = "the fastest of" if row.proved else f"the fastest of {row.simulated_schedules} simulated among"
        print(f"{row.operator}: {extent} {row.legal_schedules} legal schedules, {row.binding} binds: {row.schedule}")
