"""When a command has completed: cycles from its issue until its data are where they belong.

A column access completes with the last beat of its burst; everything else counts as complete one cycle after issue,
a refresh when its banks can be used again. Timing names are the device's own.
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
}


def completion_latencies(device: Device) -> tuple[int, ...]:
    """Return the cycles from issue to completion of each command code, at least 1.

    nBLREG and nBLGB fall back on nBL; any other name a table lacks belongs to a command the device does not have.
    """
    burst = device.timing.get("nBL", 2)
    known = {"nBLREG": burst, "nBLGB": burst} | device.timing
    return tuple(max(1, sum(known.get(name, 0) for name in _LATENCY.get(kind, ()))) for kind in KINDS)
