"""`explore baseline`: a hand-tuned published mapping of a transformer block against ours, as figures and as traces."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.commands.options import require_among

DEVICE = "gddr6-aim-compat"
MAPPINGS = ("cent",)
FORMATS = ("aim",)


def baseline_command(
    model: Annotated[str, typer.Option(help="built-in model, alias, or path of a config.json")],
    mapping: Annotated[str, typer.Option(help="the published mapping: cent")] = "cent",
    context_length: Annotated[
        int, typer.Option("--context", help="tokens in the KV cache, the newest included", min=1)
    ] = 1024,
    channels: Annotated[int, typer.Option(help="channels of one block; a device holds as many as fit", min=1)] = 8,
    hardware: Annotated[str, typer.Option(help="AiM device without refresh")] = DEVICE,
    lanes: Annotated[
        int,
        typer.Option(
            help="PCIe lanes of one device; 0 shares the host's 144 over the devices the model needs", min=0, max=144
        ),
    ] = 0,
    emit: Annotated[str, typer.Option(help="write traces: aim, for the public AiM simulator")] = "",
    of: Annotated[str, typer.Option(help="whose trace is written: cent, ours or both")] = "both",
    out: Annotated[
        Path | None,
        typer.Option(help=".trace or .trace.gz; by default named after model, channels and context, in this folder"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Replay CENT's mapping of one block and ours of the same block, and compare their cycles.

    explore baseline --mapping cent --model llama-2-7b --context 1024 --channels 8
    """
    require_among(mapping, MAPPINGS, "--mapping")
    require_among(of, ("cent", "ours", "both"), "--of")
    if emit or out is not None:
        require_among(emit, FORMATS, "--emit")
    from autotune.baseline_block import compare_block
    from autotune.baseline_report import Which, json_fields, print_comparison, write_traces
    from configs.device import load_device
    from configs.model_config import load_model_config

    device, config = load_device(hardware), load_model_config(model)
    found = compare_block(config, context_length, device, channels, lanes)
    title = f"{config.name} at context {context_length} on {device.name}"
    traces = {}
    if emit:
        target = out or Path(f"{config.name}_c{channels}_s{context_length}.trace")
        traces = write_traces(found, device, Which(of), target)
    if json:
        _print_json({"model": config.name, "hardware": device.name, **json_fields(found), "traces": traces})
        return
    print_comparison(found, title)
    for name, path in traces.items():
        print(f"{name}: {path}")


def _print_json(content: dict[str, object]) -> None:
    import json

    print(json.dumps(content))
