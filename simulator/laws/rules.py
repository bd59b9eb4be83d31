"""Which devices can be built or lie inside the range of the laws, and why not, with amounts; ints or arrays."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.device import MOST_BANKS, MOST_ROWS, Device
from configs.knobs import OWN_LINK, HardwareKnobs
from configs.laws import law_constants
from configs.refresh import RefreshPolicy
from configs.structure import PimLevel
from simulator.laws.build import build_of
from simulator.laws.figures import DeviceFigures

SMALLEST_ROW_BYTES, LARGEST_ROW_BYTES = 1024, 8192


@dataclass(frozen=True, slots=True)
class Refusal:
    """Where devices are `broken`, the text says why; its {names} are the amounts."""

    broken: Any
    text: str
    amounts: dict[str, Any]


def shape_refusals(base: Device, knobs: HardwareKnobs) -> Iterator[Refusal]:
    """Yield why devices are no devices at all; the later ones mean something only where the earlier ones are not."""
    yield from _bank_refusals(base, knobs)
    yield from _width_refusals(base, knobs)
    yield from _size_refusals(base, knobs)
    if base.organisation.row_buffers == 1 and "nLTMAC" not in base.timing:
        yield Refusal(knobs.row_buffers > 1, "the base device's tables have no second row buffer", {})
    links = (OWN_LINK, *law_constants().links)
    yield Refusal(~np.isin(knobs.host_link, links), f"the link is none of {', '.join(links)}", {})


def _bank_refusals(base: Device, knobs: HardwareKnobs) -> Iterator[Refusal]:
    banks, groups = knobs.banks_per_channel, knobs.bank_groups
    working = np.maximum(banks - knobs.harvested_banks, 1)
    harvested, shared = knobs.harvested_banks, knobs.banks_per_unit
    yield Refusal(banks % groups != 0, "{banks} banks are not whole groups, of which there are {groups}", _of(knobs))
    yield Refusal(harvested >= banks, "{harvested} of {banks} banks are harvested", _of(knobs))
    at_group = knobs.pim_level == PimLevel.BANK_GROUP
    by_group = (knobs.pim_level == PimLevel.BANK) & (knobs.command_banks == "group")
    text = "{working} working banks are not whole groups, of which there are {groups}"
    yield Refusal((at_group | by_group) & (working % groups != 0), text, _of(knobs))
    at_bank = knobs.pim_level == PimLevel.BANK
    turns = np.where(knobs.command_banks == "group", groups, 1)
    text = "{working} working banks are no whole number of units of {shared} banks that a command drives"
    yield Refusal(at_bank & (working % np.minimum(shared * turns, banks * shared) != 0), text, _of(knobs))
    text = "a channel of {banks} banks is larger than tables go"
    yield Refusal(banks > MOST_BANKS, text, _of(knobs))


def _of(knobs: HardwareKnobs) -> dict[str, Any]:
    return {
        "banks": knobs.banks_per_channel,
        "groups": knobs.bank_groups,
        "harvested": knobs.harvested_banks,
        "working": knobs.banks_per_channel - knobs.harvested_banks,
        "shared": knobs.banks_per_unit,
    }


def _width_refusals(base: Device, knobs: HardwareKnobs) -> Iterator[Refusal]:
    entry = knobs.lanes * base.unit.value_bytes
    row, column, buffer = knobs.row_bytes, knobs.column_bytes, knobs.global_buffer_bytes
    amounts = {"row": row, "column": column, "entry": entry, "buffer": buffer, "lanes": knobs.lanes}
    amounts |= {"vectors": knobs.vectors_per_multiply, "accumulators": knobs.accumulators}
    text = f"rows of {{row}} B lie outside the sweep of {SMALLEST_ROW_BYTES}-{LARGEST_ROW_BYTES} B"
    yield Refusal((row < SMALLEST_ROW_BYTES) | (row > LARGEST_ROW_BYTES), text, amounts)
    yield Refusal(
        column % entry != 0, "a column of {column} B does not hold whole accesses of {lanes} lanes, {entry} B", amounts
    )
    yield Refusal(row % column != 0, "a row of {row} B does not hold whole columns of {column} B", amounts)
    burst = base.organisation.burst_bytes
    text = f"{{readout}} B of accumulators do not leave in a burst of {burst} B"
    yield Refusal(knobs.readout_bytes > burst, text, {"readout": knobs.readout_bytes})
    text = "a global buffer of {buffer} B does not hold whole inputs of {lanes} lanes, {entry} B"
    yield Refusal(buffer % entry != 0, text, amounts)
    text = "a global buffer of {buffer} B does not hold {vectors} vectors of {entry} B"
    yield Refusal(buffer < entry * knobs.vectors_per_multiply, text, amounts)
    text = "{accumulators} accumulators do not hold the sums of {vectors} vectors"
    yield Refusal(knobs.accumulators < knobs.vectors_per_multiply, text, amounts)


def _size_refusals(base: Device, knobs: HardwareKnobs) -> Iterator[Refusal]:
    built = build_of(base, knobs)
    working = base.organisation.banks * base.structure.gang
    whole = base.organisation.capacity_bytes * (working + base.structure.harvested_banks) // working
    bank = whole // (knobs.channels * knobs.banks_per_channel)
    amounts = {"bank": bank, "row": knobs.row_bytes, "rows": built.rows, "subarray": knobs.rows_per_subarray}
    text = "banks of {bank} B do not hold whole rows of {row} B"
    yield Refusal((bank % knobs.row_bytes != 0) | (built.rows < 1), text, amounts)
    longer = knobs.rows_per_subarray > base.structure.rows_per_subarray
    text = "a bank of {rows} rows holds no subarray of {subarray}"
    yield Refusal(longer & (built.rows < knobs.rows_per_subarray), text, amounts)
    yield Refusal(built.rows > MOST_ROWS, f"banks of {{rows}} rows are larger than tables go, {MOST_ROWS}", amounts)


def refresh_refusals(base: Device, knobs: HardwareKnobs, figures: DeviceFigures) -> Iterator[Refusal]:
    """Yield why commands find no room between refreshes."""
    named = {name for row in base.constraints for name in (*row.preceding, *row.following)}
    per_bank = knobs.refresh_policy == str(RefreshPolicy.PER_BANK)
    if "REFpb" not in named:
        yield Refusal(per_bank, "the base device's tables have no refresh of single banks", {})
        return
    gang = build_of(base, knobs).gang
    text = "{gang} banks are opened together: they cannot be refreshed one by one"
    yield Refusal(per_bank & (gang > 1), text, {"gang": gang})
    timing, banks = figures.timing, figures.organisation.banks
    spacing = np.maximum(timing["nRC"], timing["nACTALL"])
    latched = np.where(knobs.row_buffers > 1, timing["nRAS"] - timing["nRTP"], 0)
    opened = np.maximum(timing["nRCDRDMAC"], latched) + timing["nCCDMAC"]
    # The row of the refreshed bank is opened again by itself, and the next refresh waits behind that.
    again = np.maximum(timing["nRRDS"], timing["nRRDL"])
    in_turn = timing["nRTP"] + timing["nRP"] + again + timing["nRFCpb"] + opened
    needed = np.maximum(in_turn, spacing + timing["nRFCpb"])
    interval = figures.refresh_interval_cycles // banks
    text = (
        "{banks} banks refreshed one by one leave {interval} cycles between refreshes; to close, refresh and open one "
        "again and multiply on all takes {needed}"
    )
    yield Refusal(per_bank & (interval <= needed), text, {"banks": banks, "interval": interval, "needed": needed})
    rows = sum(timing[name] for name in ("nRFC", "nRP", "nRTP", "nRCDRDMAC"))
    needed = np.maximum(rows, spacing + timing["nRCDRDMAC"] + timing["nCCDMAC"])
    interval = figures.refresh_interval_cycles * (base.refresh.postponed + 1)
    text = "a refresh every {interval} cycles leaves no room to open all rows again and multiply, which takes {needed}"
    yield Refusal(~per_bank & (interval <= needed), text, {"interval": interval, "needed": needed})


def broken(refusals: Iterator[Refusal], count: int) -> NDArray[np.bool_]:
    """Return which of so many devices any refusal names: bool[count]."""
    found = np.zeros(count, dtype=np.bool_)
    with np.errstate(divide="ignore", invalid="ignore"):
        for refusal in refusals:
            found |= np.broadcast_to(np.asarray(refusal.broken, dtype=np.bool_), (count,))
    return found


def texts(refusals: Iterator[Refusal]) -> Iterator[str]:
    """Yield the texts of the refusals of one device."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = tuple(refusals)
    for refusal in found:
        if bool(np.all(refusal.broken)):
            yield refusal.text.format(**{name: _plain(value) for name, value in refusal.amounts.items()})


def _plain(value: Any) -> str:
    return f"{np.asarray(value).item():.0f}"
