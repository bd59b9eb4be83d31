"""`explore import`: capture a model's decode step and tell what it computes and moves."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from compiler.graph import Graph
    from compiler.traffic import Traffic
    from compiler.unmatched import Unmatched


def import_command(
    model: Annotated[
        str, typer.Argument(help="built-in model, alias, config.json, checkpoint folder, or PACKAGE.MODULE:FACTORY")
    ],
    batch: Annotated[int, typer.Option(help="sequences that decode together", min=1)] = 1,
    context_length: Annotated[int, typer.Option("--context", help="tokens in the KV cache", min=1)] = 4096,
    emit: Annotated[str, typer.Option(help="graph: print the graph as text instead")] = "",
    json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Import a model and print its operators, parameters, and bytes per token."""
    from configs.errors import UserError

    if emit not in ("", "graph"):
        raise UserError(where="--emit", expected="graph", found=repr(emit), way_out="leave it out for the figures")
    from compiler.graph_text import print_graph
    from compiler.importing import import_named
    from compiler.traffic import traffic_of
    from compiler.unmatched import unmatched_of

    found = import_named(model, batch, context_length)
    if emit == "graph":
        typer.echo(print_graph(found.graph))
        return
    traffic, unmatched = traffic_of(found.graph), unmatched_of(found.graph, found.sources)
    if json:
        _print_json(found.name, found.graph, traffic, unmatched, _stored(model))
        return
    from rich.console import Console

    console = Console(highlight=False)
    _print_operators(console, f"{found.name}, batch {batch}, context {context_length}", found.graph)
    _print_traffic(console, traffic)
    _print_unmatched(console, unmatched)
    _print_stored(console, _stored(model))


def _print_json(name: str, graph: "Graph", traffic: "Traffic", unmatched: "tuple[Unmatched, ...]", stored: Any) -> None:
    import json
    from dataclasses import asdict

    from compiler.tasks import tasks_of

    kinds = [
        {"task": task.name, "kind": str(task.kind), "multiplicity": task.multiplicity} for task in tasks_of(graph).tasks
    ]
    content: dict[str, Any] = {"model": name, **asdict(traffic), "tasks": kinds}
    content["unmatched"] = [asdict(item) for item in unmatched]
    if stored is not None:
        content["stored"] = [asdict(row) for row in stored.rows]
    typer.echo(json.dumps(content))


def _print_operators(console: "Console", title: str, graph: "Graph") -> None:
    """Print the tasks by kind: named operators one by one, computations by what they are for."""
    from rich.table import Table

    from compiler.graph import OpKind
    from compiler.tasks import tasks_of

    table = Table("operator", "task", "tasks", "times", title=title)
    for column in table.columns[2:]:
        column.justify = "right"
    computations: dict[str, tuple[int, int]] = {}
    for task in tasks_of(graph).tasks:
        if task.kind is OpKind.COMPUTE:
            role = str(dict(task.attributes)["role"])
            kinds, times = computations.get(role, (0, 0))
            computations[role] = (kinds + 1, times + task.multiplicity)
        else:
            role = f": {dict(task.attributes)['role']}" if task.kind is OpKind.RECURRENCE else ""
            table.add_row(f"{task.kind}{role}", task.name, "1", str(task.multiplicity))
    for role, (kinds, times) in sorted(computations.items()):
        table.add_row("compute", role, str(kinds), str(times))
    console.print(table)


def _print_traffic(console: "Console", traffic: "Traffic") -> None:
    gb, gib = 1e9, 2**30
    console.print(f"parameters               {traffic.parameters:,}")
    console.print(f"weights held             {traffic.weight_capacity_bytes / gib:.2f} GiB")
    console.print(f"weight traffic           {traffic.weight_bytes_per_token / gb:.2f} GB per token")
    console.print(f"KV cache read            {traffic.kv_read_bytes_per_token / gib:.4g} GiB per token and sequence")
    console.print(f"KV cache written         {traffic.kv_written_bytes_per_token:,} B per token")
    console.print(f"matrix operations        {traffic.flops_per_token / 1e9:.2f} GFLOP per token")


def _print_unmatched(console: "Console", unmatched: "tuple[Unmatched, ...]") -> None:
    if not unmatched:
        return
    moved = sum(item.moved_bytes for item in unmatched)
    console.print(f"not understood           {len(unmatched)} operators that move {moved:,} B of weights or states")
    for item in unmatched:
        console.print(f"  %{item.op} ({item.calls}), {item.moved_bytes:,} B, from {item.source}", soft_wrap=True)


def _stored(model: str) -> Any:
    """Return what a checkpoint folder stores, by format; None where there are no tensors beside the configuration."""
    from pathlib import Path

    folder = Path(model)
    if not folder.is_dir() or not any(folder.glob("*.safetensors*")):
        return None
    from compiler.checkpoint.summary import stored_summary

    return stored_summary(folder)


def _print_stored(console: "Console", stored: Any) -> None:
    if stored is None:
        return
    for row in stored.rows:
        parts = row.parts
        console.print(
            f"stored as {row.stored:14} {row.tensors} tensors, {parts.values:,} B of values, "
            f"{parts.scales:,} B of scales, {parts.zero_points:,} B of zero points"
        )
    for note in stored.notes:
        console.print(f"  {note}", soft_wrap=True)
