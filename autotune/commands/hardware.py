"""`explore hardware`: the devices that come with the project, and the knobs a search may turn."""

from rich.console import Console
from rich.table import Table


def hardware_command() -> None:
    """List the built-in devices and the hardware knobs."""
    from configs.device import built_in_devices, load_device
    from configs.knobs import HARDWARE_KNOBS

    console = Console()
    devices = Table("device", "what it is", title="Devices")
    for name in built_in_devices():
        devices.add_row(name, load_device(name).title)
    knobs = Table("knob", "values", "unit", "meaning", title="Hardware knobs (restrict with --set)")
    for knob in HARDWARE_KNOBS:
        knobs.add_row(knob.name, ", ".join(str(value) for value in knob.values), knob.unit, knob.meaning)
    console.print(devices)
    console.print(knobs)
