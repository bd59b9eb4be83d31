"""Devices with other units than the base device: two row buffers a bank, several vectors a multiply, wide columns."""

from math import ceil
from random import Random

from configs.device import Device, load_device
from configs.refresh import Refresh, RefreshPolicy
from tests.engine_devices import changed

BASE = load_device("gddr6-aim")
REFRESH = (Refresh(), Refresh(policy=RefreshPolicy.NONE), Refresh(temperature_c=95), Refresh(postponed=4))


def unit_device(
    row_buffers: int = 1, vectors: int = 1, column_accesses: int = 1, *, refresh: Refresh | None = None, **sizes: int
) -> Device:
    """Return the base device with such units; `sizes` are others of the organisation, of the unit, or timing."""
    parts = {
        name: {key: value for key, value in sizes.items() if key in known}
        for name, known in (("organisation", BASE.organisation.model_dump()), ("unit", BASE.unit.model_dump()))
    }
    organisation, unit = parts["organisation"], BASE.unit.model_dump() | parts["unit"]
    column_bytes = unit["lanes"] * unit["value_bytes"] * column_accesses
    banks = BASE.organisation.banks_per_group * organisation.get("bank_groups", BASE.organisation.bank_groups)
    bursts = {"nBL": column_bytes, "nBLGB": unit["lanes"] * unit["value_bytes"], "nBLREG": banks * unit["value_bytes"]}
    timing = {name: BASE.timing["nBL"] * ceil(size / BASE.organisation.burst_bytes) for name, size in bursts.items()}
    timing |= {key: value for key, value in sizes.items() if key in BASE.timing}
    organisation |= {"row_buffers": row_buffers, "column_bytes": column_bytes}
    device = changed(BASE, timing, organisation)
    wanted = BASE.unit.model_copy(update=unit | {"vectors_per_multiply": vectors})
    return device.model_copy(update={"processing_unit": wanted, "refresh": refresh or BASE.refresh})


def random_unit_device(random: Random) -> Device:
    """Return a device with units of any kind, other sizes, and perhaps slower rows, slow units or a slow link."""
    groups, slow = random.choice((2, 4, 8)), random.choice((0, 0, 36))
    assert BASE.link is not None
    link = BASE.link.model_copy(update={"bandwidth_gb_per_s": random.choice((0.5, 4.0, 63.0, 63.0, 2000.0))})
    per_bank = (Refresh(policy=RefreshPolicy.PER_BANK),) if groups < 8 else ()
    device = unit_device(
        random.choice((1, 2, 2)),
        random.choice((1, 1, 2, 4, 8)),
        random.choice((1, 1, 2, 4)),
        refresh=random.choice((*REFRESH, *per_bank)),
        channels=random.choice((8, 16, 32)),
        bank_groups=groups,
        row_bytes=random.choice((1024, 2048, 4096)),
        lanes=random.choice((8, 16, 32)),
        accumulators=random.choice((8, 16, 32, 64)),
        global_buffer_bytes=random.choice((1024, 2048, 4096)),
        nLTMAC=random.choice((0, 1, 8, 8, 30)),
        nCCDMAC=random.choice((2, 2, 3, 4, 40, 200)),
        nMODCH=random.choice((BASE.timing["nMODCH"], 1)),
        nACTALL=random.choice((89, 89, 177)),
        nRAS=BASE.timing["nRAS"] + slow,
        nRC=BASE.timing["nRC"] + slow,
    )
    return device.model_copy(update={"link": link})
