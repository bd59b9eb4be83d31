"""When a command has completed: cycles from its issue until its data are where they belong.

A column access completes with the last beat of its burst, for which it keeps the data bus, and a refresh when its banks
can be used again; everything else counts as complete once it has left the command bus. Latencies count from the last
tick of a command. Timing names are the device's own.
"""

from configs.device import Device
from simulator.isa import KINDS, Kind

_LATENCY: dict[Kind, tuple[str, ...]] = {
    Kind.RD: ("nCL", "nBL"),
    Kind.RDA: ("nCL", "nBL"),
    Kind.RDMAC16: ("nCLREG", "nBLREG"),
    Kind.RDAF16: ("nCLREG", "nBLREG"),
    Kind.WR: ("nCWL", "nBL"),
    Kind.WRA: ("nCWL", "nBL"),
    Kind.WRA16: ("nCWL", "nBLREG"),
    Kind.WRGB: ("nCWLGB", "nBLGB"),
    Kind.WRMAC16: ("nCWLREG", "nBLREG"),
    Kind.REFab: ("nRFC",),
    Kind.REFpb: ("nRFCpb",),
    Kind.RFMab: ("nRFMab",),
    Kind.RFMpb: ("nRFMpb",),
    Kind.WR8: ("nCWL", "nBL"),
    Kind.ST8: ("nCWL", "nBL"),
}


def completion_latencies(device: Device) -> tuple[int, ...]:
    """Return the cycles from issue to completion of each command code, at least 1.

    nBLREG and nBLGB fall back on nBL; any other name a table lacks belongs to a command the device does not have.
    """
    known, ticks = _known(device), device.command_ticks
    return tuple(
        max(1, ticks.get(kind, 1) - 1 + sum(known.get(name, 0) for name in _names(kind)) * device.ticks_per_clock)
        for kind in KINDS
    )


def burst_cycles(device: Device) -> tuple[int, ...]:
    """Return the cycles that each command code keeps the data bus, 0 for those that move nothing over it."""
    known = _known(device)
    ticks = device.ticks_per_clock
    return tuple(known.get(names[1], 0) * ticks if len(names) > 1 else 0 for names in map(_names, KINDS))


def _names(kind: Kind) -> tuple[str, ...]:
    return _LATENCY.get(kind, ())


def _known(device: Device) -> dict[str, int]:
    burst = device.timing.get("nBL", 2)
    return {"nBLREG": burst, "nBLGB": burst} | device.timing
