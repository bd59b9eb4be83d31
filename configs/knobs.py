"""The hardware knobs: what a search may change on a base device, each declared once with values, unit and meaning."""

from dataclasses import dataclass, fields

from configs.device import Device


@dataclass(frozen=True, slots=True)
class HardwareKnobs:
    """One choice of every knob; capacity per device stays that of the base device, rows per bank follow."""

    channels: int
    banks_per_channel: int
    row_bytes: int
    lanes: int
    global_buffer_bytes: int


@dataclass(frozen=True, slots=True)
class KnobDeclaration:
    """What a knob is: the values a search draws from, its unit, and what it changes."""

    name: str
    values: tuple[int, ...]
    unit: str
    meaning: str


HARDWARE_KNOBS = (
    KnobDeclaration("channels", (8, 16, 32, 64), "", "channels of a device; each adds an interface and its units"),
    KnobDeclaration("banks_per_channel", (8, 16, 32, 64), "", "banks, and units, driven by one all-bank command"),
    KnobDeclaration("row_bytes", (1024, 2048, 4096, 8192), "B", "row buffer of a bank: bytes opened by one activate"),
    KnobDeclaration("lanes", (8, 16, 32, 64), "", "multipliers of a unit; the column access delivers as many values"),
    KnobDeclaration("global_buffer_bytes", (1024, 2048, 4096, 8192), "B", "input vector kept beside the units"),
)


def base_knobs(device: Device) -> HardwareKnobs:
    """Return the knob values a device has as described."""
    organisation = device.organisation
    return HardwareKnobs(
        channels=organisation.channels,
        banks_per_channel=organisation.banks,
        row_bytes=organisation.row_bytes,
        lanes=device.unit.lanes,
        global_buffer_bytes=device.unit.global_buffer_bytes,
    )


def knob_values(knobs: HardwareKnobs) -> tuple[tuple[str, int], ...]:
    """Return (name, value) pairs in declaration order."""
    return tuple((field.name, getattr(knobs, field.name)) for field in fields(knobs))
