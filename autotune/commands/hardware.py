"""`explore hardware`: the devices that come with the project, and the knobs a search may turn."""

from dataclasses import asdict
from json import dumps
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 160


def hardware_command(
    json: Annotated[bool, typer.Option("--json", help="print devices and knobs as JSON")] = False,
) -> None:
    """List the built-in devices and the hardware knobs with what their laws move."""
    from configs.device import built_in_devices, load_device
    from configs.knobs import HARDWARE_KNOBS

    titles = {name: load_device(name).title for name in built_in_devices()}
    if json:
        print(dumps({"devices": titles, "knobs": [asdict(knob) for knob in HARDWARE_KNOBS]}))
        return
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, PLAIN_WIDTH)
    devices = Table("device", "what it is", title="Devices")
    for name, title in titles.items():
        devices.add_row(name, title)
    headings = ("knob", "values", "unit", "meaning", "moves", "not modelled")
    knobs = Table(*headings, title="Hardware knobs (fix or range with --set; --set hardware=base fixes all others)")
    for knob in HARDWARE_KNOBS:
        values = ", ".join(str(value) for value in knob.values)
        knobs.add_row(knob.name, values, knob.unit, knob.meaning, knob.laws, knob.not_modelled)
    console.print(devices)
    console.print(knobs)
