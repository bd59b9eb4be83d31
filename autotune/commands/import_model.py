"""`explore import`: capture a model's decode step and tell what it computes and moves."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from compiler.tasks import Task
    from compiler.traffic import Traffic


def import_command(
    model: Annotated[str, typer.Argument(help="built-in model, alias, or path of a config.json")],
    batch: Annotated[int, typer.Option(help="sequences that decode together", min=1)] = 1,
    context_length: Annotated[int, typer.Option("--context", help="tokens in the KV cache", min=1)] = 4096,
    emit: Annotated[str, typer.Option(help="graph: print the graph as text instead")] = "",
    json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Import a model and print its operators, parameters, and bytes per token."""
    from configs.errors import UserError
    from configs.model_config import load_model_config

    if emit not in ("", "graph"):
        raise UserError(where="--emit", expected="graph", found=repr(emit), way_out="leave it out for the figures")
    config = load_model_config(model)
    from compiler.frontend import import_model
    from compiler.graph_text import print_graph
    from compiler.passes import run_passes
    from compiler.tasks import tasks_of
    from compiler.traffic import traffic_of

    graph = run_passes(import_model(config, batch, context_length))
    if emit == "graph":
        typer.echo(print_graph(graph))
        return
    traffic = traffic_of(graph)
    tasks = tasks_of(graph).tasks
    if json:
        _print_json(config.name, traffic, tasks)
    else:
        _print_table(f"{config.name}, batch {batch}, context {context_length}", traffic, tasks)


def _print_json(name: str, traffic: "Traffic", tasks: "tuple[Task, ...]") -> None:
    import json
    from dataclasses import asdict

    kinds = [{"task": task.name, "kind": str(task.kind), "multiplicity": task.multiplicity} for task in tasks]
    typer.echo(json.dumps({"model": name, **asdict(traffic), "tasks": kinds}))


def _print_table(title: str, traffic: "Traffic", tasks: "tuple[Task, ...]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("task", "operator", "times", title=title)
    table.columns[2].justify = "right"
    for task in tasks:
        table.add_row(task.name, str(task.kind), str(task.multiplicity))
    console = Console(highlight=False)
    console.print(table)
    gb, gib = 1e9, 2**30
    console.print(f"parameters               {traffic.parameters:,}")
    console.print(f"weights held             {traffic.weight_capacity_bytes / gib:.2f} GiB")
    console.print(f"weight traffic           {traffic.weight_bytes_per_token / gb:.2f} GB per token")
    console.print(f"KV cache read            {traffic.kv_read_bytes_per_token / gib:.4g} GiB per token and sequence")
    console.print(f"KV cache written         {traffic.kv_written_bytes_per_token:,} B per token")
    console.print(f"matrix operations        {traffic.flops_per_token / 1e9:.2f} GFLOP per token")
