"""`explore timeline`: write the timeline of one design's decode step and tell how well it used what it ran on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.commands.options import Batch, Context, Devices, Kv, Speculative, Weights, require_among

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from autotune.timelines import Inside

PLAIN_WIDTH = 132
SHOWN_STALLS = 10
HEADINGS = (
    *("times", "µs", "step", "units", "data\nbus", "command\nbus"),
    *("activates", "row\nhits", "refreshes", "link\nMB", "host\nµs"),
)


def timeline_command(
    run: Annotated[Path | None, typer.Argument(help="folder of a finished run", metavar="RUN_FOLDER")] = None,
    point: Annotated[int | None, typer.Argument(help="point of the run; by default its fastest", min=0)] = None,
    model: Annotated[
        str, typer.Option(help="instead of a run: a built-in model, alias, or path of a config.json")
    ] = "",
    mapping: Annotated[str, typer.Option(help="how to map it: hand, overlapped or tuned")] = "hand",
    hardware: Annotated[str, typer.Option(help="device for it: a name or the path of a .yaml file")] = "gddr6-aim",
    batch: Batch = 1,
    context_length: Context = 4096,
    devices: Devices = "1",
    weights: Weights = "bf16",
    kv: Kv = "bf16",
    speculative: Speculative = 1,
    detail: Annotated[
        str, typer.Option(help="operators shown down to their commands: none, first (of every task) or all")
    ] = "first",
    out: Annotated[Path, typer.Option(help="the timeline: .json.gz or .json")] = Path("timeline.json.gz"),
    csv: Annotated[Path | None, typer.Option(help="write the utilisation of every operator to this .csv")] = None,
    json: Annotated[bool, typer.Option("--json", help="print the utilisation of every task as JSON")] = False,
) -> None:
    """Write a timeline of one decode step that ui.perfetto.dev opens, and print how well each task used the hardware.

    explore timeline runs/mine 12, or explore timeline --model llama
    """
    from autotune.chosen_design import MAPPINGS, inside_of_mapping, inside_of_run
    from autotune.run_settings import RunSettings
    from autotune.timelines import save_timeline, save_utilisation, stall_frame, summary, task_frame
    from simulator.step_trace import Detail

    _require_targets(out, csv)
    require_among(detail, tuple(Detail), "--detail")
    require_among(mapping, tuple(MAPPINGS), "--mapping")
    given = (hardware, mapping, batch, context_length, devices, weights, kv, speculative)
    own = given == ("gddr6-aim", "hand", 1, 4096, "1", "bf16", "bf16", 1)
    _require_run_or_model(run, model, own)
    if run is not None:
        inside = inside_of_run(run, point)
    else:
        settings = RunSettings(
            model=model,
            hardware=hardware,
            batch=batch,
            context=context_length,
            devices=devices,
            weights=weights,
            kv=kv,
            speculative=speculative,
        )
        inside = inside_of_mapping(settings, mapping)
    save_timeline(inside, Detail(detail), out)
    if csv is not None:
        save_utilisation(inside, csv)
    tasks, stalls = task_frame(inside.log), stall_frame(inside.log)
    whole = summary(inside)
    if json:
        _print_json(whole, tasks, stalls, out)
    else:
        _print_table(inside, whole, tasks, stalls, out)


def _require_targets(out: Path, csv: Path | None) -> None:
    from configs.errors import UserError
    from simulator.perfetto import require_trace_name

    require_trace_name(out)
    for path in (out, csv):
        if path is not None and not path.absolute().parent.is_dir():
            raise UserError(
                where=str(path),
                expected="a file in a folder that exists",
                found=f"no folder {path.parent}",
                way_out="make the folder first",
            )


def _require_run_or_model(run: Path | None, model: str, only_defaults: bool) -> None:
    from configs.errors import UserError

    if (run is None) == (not model):
        raise UserError(
            where="explore timeline",
            expected="a run folder or --model",
            found="neither" if run is None else "both",
            way_out="give one of them",
        )
    if run is not None and not only_defaults:
        raise UserError(
            where="explore timeline RUN_FOLDER",
            expected="the run alone: it has its own hardware, mapping, batch, context and devices",
            found="one of --hardware, --mapping, --batch, --context, --devices, --weights, --kv, --speculative",
            way_out="leave it out, or give --model instead of the run",
        )


def _print_json(whole: dict[str, float | str], tasks: "pd.DataFrame", stalls: "pd.DataFrame", out: Path) -> None:
    import json

    fields = {
        "timeline": str(out),
        **whole,
        "tasks": tasks.to_dict("records"),
        "channel_time": stalls.to_dict("records"),
    }
    typer.echo(json.dumps(fields))


def _stall_table(stalls: "pd.DataFrame") -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="what the channel's time went into")
    table.add_column("cause", no_wrap=True, max_width=80)
    for heading in ("cycles", "step"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in stalls.head(SHOWN_STALLS).to_dict("records"):
        table.add_row(escape(row["cause"]), f"{row['cycles']:,}", f"{row['step_share']:.1%}")
    return table


def _print_table(
    inside: "Inside", whole: dict[str, float | str], tasks: "pd.DataFrame", stalls: "pd.DataFrame", out: Path
) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from autotune.units import MS_PER_NS

    device = inside.log.device.name
    table = Table(title=escape(f"{inside.model} on {device}, {inside.latency_ns * MS_PER_NS:.4f} ms"))
    table.add_column("task", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in tasks.to_dict("records"):
        shares = ("step_share", "mac_duty", "data_bus_busy_share", "command_bus_busy_share")
        table.add_row(
            escape(row["task"]),
            str(row["occurrences"]),
            f"{row['moved_end_ns'] / 1e3:,.1f}",
            *(f"{row[name]:.1%}" for name in shares),
            f"{row['row_activations']:,}",
            f"{row['row_hits'] / row['column_accesses']:.1%}" if row["column_accesses"] else "",
            f"{row['refreshes']:,}",
            f"{(row['link_down_bytes'] + row['link_up_bytes']) / 1e6:,.3f}",
            f"{row['host_ns'] / 1e3:,.1f}",
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, PLAIN_WIDTH)
    console.print(table)
    console.print("µs, step: how far the task's operators moved the end of the step, and their share of it")
    console.print("units to refreshes: of one channel, busy shares of the operators' own time; link: per device")
    console.print(_stall_table(stalls))
    if "power_peak_w" in whole:
        console.print(
            f"power of all channels, without link and host: at most {whole['power_peak_w']:.1f} W over "
            f"{whole['power_window_ns']:.0f} ns"
        )
    console.print(escape(f"timeline: {out}, to be opened in ui.perfetto.dev"), soft_wrap=True)
