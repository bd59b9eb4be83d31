"""What the controllers need to know of a device: its timing table and the facts of the public AiM controller.

Nothing here is a cycle constant: gaps and completion latencies come from the device's timing values.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from configs.device import Device
from configs.errors import UserError
from configs.expression import evaluate
from simulator.addressing import LEVELS
from simulator.aim.trace_line import MASK_BITS
from simulator.isa import CODE_OF, KINDS, Kind, Scope, scope_of
from simulator.timing_table import TimingTable, timing_table

PLACES = (Scope.CHANNEL, Scope.BANK_GROUP, Scope.BANK)
"""The levels the public controller knows."""
UNCONSTRAINED = -1
QUEUE_LIMIT = 33
"""Entries a queue takes: the public controller nominally has 32 but tests size <= 32 before it adds one."""
WRITES_TO_START = 26
"""Write mode begins above 0.8 of the 32 nominal entries, 25.6 (public controller, high watermark)."""
WRITES_TO_STOP = 6
"""Write mode ends below 0.2 of the 32 nominal entries, 6.4, if reads wait (public controller, low watermark)."""

ROWS_IGNORED, ROW_OF_BANK, ROW_OF_ALL_BANKS = range(3)
_ONE_BANK = (Kind.RD, Kind.WR, Kind.MAC, Kind.RDCP, Kind.WRCP)
_ALL_BANKS = (Kind.MAC16, Kind.AF16, Kind.EWMUL16, Kind.WRA16)

LATENCIES: dict[Kind, str] = {
    Kind.RD: "nCL + nBL",
    Kind.WR: "nCWL + nBL",
    Kind.WRGB: "nCWLGB + nBL",
    Kind.WRMAC16: "nCWLREG + nBL",
    Kind.RDMAC16: "nCLREG + nBL",
    Kind.RDAF16: "nCLREG + nBL",
    Kind.WRA16: "nCWL + nBL + nRP",
}
"""Cycles from issue to completion (public AiM simulator); a command not named completes in the next cycle."""
SHORTEST_LATENCY = 1


class Rules(NamedTuple):
    """`gap[level, preceding, following]` in cycles; `scope`, `latency` and `rows` hold one entry a command."""

    gap: NDArray[np.int64]
    scope: NDArray[np.int64]
    latency: NDArray[np.int64]
    rows: NDArray[np.int64]
    bank_groups: int
    banks_per_group: int


def rules_of(device: Device) -> Rules:
    """Resolve a device's rules; raises UserError for one that AiM instruction traces cannot be replayed on."""
    organisation = device.organisation
    if device.family != "gddr6-aim":
        raise _unfit(device, f"family {device.family}")
    if device.refresh:
        raise _unfit(device, "one with refresh")
    if organisation.channels > MASK_BITS:
        raise _unfit(device, f"{organisation.channels} channels, more than a mask of {MASK_BITS} bits can name")
    missing = sorted({name for text in LATENCIES.values() for name in text.split(" + ")} - set(device.timing))
    if missing:
        raise _unfit(device, f"one without the timing values {', '.join(missing)}")
    table = timing_table(device)
    if any(rule.window > 1 for rule in table.rules):
        raise _unfit(device, "one with an activation window")
    return Rules(
        gap=_gaps(table),
        scope=np.array([PLACES.index(scope_of(kind)) for kind in KINDS], dtype=np.int64),
        latency=np.array([_latency(kind, device) for kind in KINDS], dtype=np.int64),
        rows=np.array([_rows(kind) for kind in KINDS], dtype=np.int64),
        bank_groups=organisation.bank_groups,
        banks_per_group=organisation.banks_per_group,
    )


def _gaps(table: TimingTable) -> NDArray[np.int64]:
    gap = np.full((len(PLACES), len(KINDS), len(KINDS)), UNCONSTRAINED, dtype=np.int64)
    for rule in table.rules:
        gap[PLACES.index(LEVELS[rule.level]), rule.preceding, rule.following] = rule.cycles
    return gap


def _latency(kind: Kind, device: Device) -> int:
    return evaluate(LATENCIES[kind], device.timing) if kind in LATENCIES else SHORTEST_LATENCY


def _rows(kind: Kind) -> int:
    if kind in _ONE_BANK:
        return ROW_OF_BANK
    return ROW_OF_ALL_BANKS if kind in _ALL_BANKS else ROWS_IGNORED


def _unfit(device: Device, found: str) -> UserError:
    return UserError(
        where=f"--hardware {device.name}",
        expected="a device of family gddr6-aim without refresh",
        found=found,
        way_out="instruction traces replay on -compat devices, such as gddr6-aim-compat",
    )


ACT, ACT16, PRE, PREA, TMOD = (CODE_OF[kind] for kind in (Kind.ACT, Kind.ACT16, Kind.PRE, Kind.PREA, Kind.TMOD))
RD, WRA16 = CODE_OF[Kind.RD], CODE_OF[Kind.WRA16]
