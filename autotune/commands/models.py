"""`explore models`: the models that come with the project, and what of the installed transformers is covered."""

from typing import Annotated

import typer


def models_command(
    types: Annotated[list[str] | None, typer.Argument(help="with --coverage: only these types of transformers")] = None,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="import every decoder-only type of the installed transformers, and tell")
    ] = False,
    steps: Annotated[int, typer.Option(help="decode steps compared with eager transformers", min=1)] = 72,
    workers: Annotated[int, typer.Option(help="processes", min=1)] = 1,
    out: Annotated[str, typer.Option(help="write the table to this Markdown file, too")] = "",
    json: Annotated[bool, typer.Option("--json", help="print one JSON object for each type")] = False,
) -> None:
    """List the built-in models and their aliases, or the types of transformers that import."""
    if coverage:
        _cover(tuple(types or ()), steps, workers, out, json)
        return
    if types:
        from configs.errors import UserError

        raise UserError(
            where="models", expected="types with --coverage only", found=" ".join(types), way_out="add --coverage"
        )
    from configs.model_config import ALIASES, built_in_models

    for name in built_in_models():
        aliases = [alias for alias, target in ALIASES.items() if target == name]
        typer.echo(f"{name}{'  (' + ', '.join(aliases) + ')' if aliases else ''}")


def _cover(types: tuple[str, ...], steps: int, workers: int, out: str, as_json: bool) -> None:
    import json
    from pathlib import Path

    from configs.errors import UserError

    try:
        from compiler.huggingface.coverage import as_record, cover_each, coverage_table, known_types
    except ImportError as error:
        raise UserError(
            where="--coverage", expected="transformers", found=str(error), way_out="pip install 'pim-explore[hf]'"
        ) from error
    if out and not Path(out).resolve().parent.is_dir():
        raise UserError(where="--out", expected="a file in a folder that exists", found=out, way_out="make the folder")
    rows = []
    wanted = known_types(types)
    for row in cover_each(wanted, steps, workers):
        rows.append(row)
        state = "covered" if row.covered else row.why or "imports, but is not exact"
        typer.echo(f"{len(rows)}/{len(wanted)} {row.model_type}: {state}", err=True)
        if as_json:
            typer.echo(json.dumps(as_record(row)))
    table = coverage_table(rows)
    if out:
        Path(out).write_text(table, encoding="utf-8")
    if not as_json:
        typer.echo(table)
