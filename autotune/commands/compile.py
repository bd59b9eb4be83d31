"""`explore compile`: write a model's operators, mapped to a device, in one of several forms."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.commands.options import Batch, Context, Devices, Kv, Speculative, Weights, require_among
from autotune.exit_codes import DONE

if TYPE_CHECKING:
    from autotune.compile_forms import Form, Kind, Written
    from autotune.compiled import Compiled
    from autotune.imported import Imported
    from autotune.run_settings import RunSettings

MAPPING, HARDWARE, MOST_COMMANDS = "overlapped", "gddr6-aim", 5_000_000


def compile_command(
    model: Annotated[str, typer.Argument(help="built-in model, alias, or path of a config.json")] = "",
    emit: Annotated[
        str, typer.Option(help="form: aim, commands, ramulator, program, graph or plan", metavar="KIND")
    ] = ...,  # type: ignore[assignment]
    operator: Annotated[
        str, typer.Option("--op", help="one operator, such as qkv_proj; by default all of a decode step")
    ] = "",
    hardware: Annotated[
        str,
        typer.Option(
            help="device: a name or the path of a .yaml file", show_default=f"{HARDWARE}, for aim {HARDWARE}-compat"
        ),
    ] = "",
    context_length: Context = 4096,
    batch: Batch = 1,
    devices: Devices = "1",
    weights: Weights = "bf16",
    kv: Kv = "bf16",
    speculative: Speculative = 1,
    mapping: Annotated[str, typer.Option(help="schedules: hand, overlapped or tuned")] = MAPPING,
    run: Annotated[Path | None, typer.Option(help="instead of a model: the folder of a finished run")] = None,
    point: Annotated[int | None, typer.Option(help="point of the run; by default its fastest", min=0)] = None,
    out: Annotated[Path | None, typer.Option(help="write to this file, gzipped if it ends in .gz")] = None,
    dump: Annotated[Path | None, typer.Option(help="write every stage to a new folder, with timings")] = None,
    limit: Annotated[int, typer.Option(help="most commands of --emit commands", min=1)] = MOST_COMMANDS,
    json: Annotated[bool, typer.Option("--json", help="print the figures as JSON; needs --out")] = False,
) -> None:
    """Compile a model's decode step, or one operator of it, and write it as text that other tools read.

    explore compile llama --op o_proj --emit aim --out o_proj.trace
    """
    from autotune.chosen_design import MAPPINGS, settings_of_run
    from autotune.compile_dump import require_empty, write_dump
    from autotune.compile_forms import Kind, graph_form, prepared
    from autotune.compiled import require_known
    from autotune.imported import import_in_stages
    from autotune.run_settings import RunSettings

    kind = Kind(require_among(emit, tuple(Kind), "--emit"))
    require_among(mapping, tuple(MAPPINGS), "--mapping")
    given = (hardware, context_length, batch, devices, weights, kv, speculative, mapping)
    _require_model_or_run(model, run, point, given != ("", 4096, 1, "1", "bf16", "bf16", 1, MAPPING))
    _require_target(out, json)
    if dump is not None:
        require_empty(dump)
    if run is not None:
        settings = settings_of_run(run)
    else:
        settings = RunSettings(
            model=model,
            hardware=hardware or (f"{HARDWARE}-compat" if kind is Kind.AIM else HARDWARE),
            batch=batch,
            context=context_length,
            devices=devices,
            weights=weights,
            kv=kv,
            speculative=speculative,
        )
    require_known(settings, aim=kind is Kind.AIM)
    imported = import_in_stages(settings)
    if kind is Kind.GRAPH and dump is None:
        form, title = graph_form(imported, operator), imported.name
    else:
        compiled = _compiled(settings, imported, kind, mapping, run, point, whole=not operator)
        form, title = prepared(kind, imported, compiled, operator, limit), compiled.title
        if dump is not None:
            files = write_dump(dump, imported, compiled, operator)
            typer.echo(f"{dump}: {len(files)} files", err=True)
    written = _write(form, out)
    for remark in written.remarks:
        typer.echo(remark, err=True)
    if json:
        _print_json(kind, title, operator, out, written)


def _compiled(
    settings: "RunSettings",
    imported: "Imported",
    kind: "Kind",
    mapping: str,
    run: Path | None,
    point: int | None,
    *,
    whole: bool,
) -> "Compiled":
    from autotune.compile_forms import Kind
    from autotune.compiled import compiled_mapping, compiled_point, for_aim_traces, point_for_aim_traces

    if run is not None:
        compiled = compiled_point(settings, imported, run, point)
        return point_for_aim_traces(compiled) if kind is Kind.AIM else compiled
    if kind is Kind.AIM:
        return for_aim_traces(settings, imported, mapping, whole=whole)
    return compiled_mapping(settings, imported, mapping, whole=whole)


def _write(form: "Form", out: Path | None) -> "Written":
    import os
    import sys

    from configs.errors import unwritable
    from simulator.text_file import opened_for_writing

    if out is None:
        try:
            written = form(sys.stdout)
            sys.stdout.flush()
        except BrokenPipeError:
            # Who reads has seen enough, as head does.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(DONE) from None
        return written
    try:
        with opened_for_writing(out) as target:
            return form(target)
    except OSError as error:
        raise unwritable(f"--out {out}", error) from error


def _require_model_or_run(model: str, run: Path | None, point: int | None, other_than_defaults: bool) -> None:
    from configs.errors import UserError

    if (run is None) == (not model):
        raise UserError(
            where="explore compile",
            expected="a model or --run",
            found="neither" if run is None else "both",
            way_out="give one of them",
        )
    if run is None and point is not None:
        raise UserError(
            where=f"--point {point}", expected="the --run it is a point of", found="none", way_out="give --run FOLDER"
        )
    if run is not None and other_than_defaults:
        raise UserError(
            where="explore compile --run",
            expected="the run alone: it has its own hardware, scenario and schedules",
            found="one of --hardware, --context, --batch, --devices, --weights, --kv, --speculative, --mapping",
            way_out="leave it out, or give a model instead of the run",
        )


def _require_target(out: Path | None, json: bool) -> None:
    from configs.errors import UserError

    if json and out is None:
        raise UserError(
            where="--json",
            expected="--out FILE, so that the form does not go where the figures go",
            found="none",
            way_out="name a file, such as --out compiled.txt",
        )
    if out is not None and not out.absolute().parent.is_dir():
        raise UserError(
            where=f"--out {out}",
            expected="a file in a folder that exists",
            found=f"no folder {out.parent}",
            way_out="make the folder first",
        )


def _print_json(kind: "Kind", title: str, operator: str, out: Path | None, written: "Written") -> None:
    import json

    typer.echo(json.dumps({"emit": kind, "title": title, "op": operator, "out": str(out), **written.facts}))
