"""Silicon area of the dies of one device, at low, nominal and high constants."""

from configs.device import Area, Case, Device
from simulator.scaling import PAGE_AREA_MM2, interpolate

GIB = 2**30


def dram_area_mm2(device: Device, base: Device, case: Case = "nominal") -> float | None:
    """Return mm² of all dies of one device; None where the device has no area section.

    The base's plain dies hold its own banks and channels; each bank or channel more (or fewer) than that adds (or
    saves) its periphery; units scale with lanes, the global buffer with its size.
    """
    if device.area is None or base.area is None:
        return None
    of = _case(base.area, case)
    organisation = device.organisation
    gib = organisation.capacity_bytes / GIB
    base_banks = base.organisation.channels * base.organisation.banks
    banks = organisation.channels * organisation.banks
    page = interpolate(PAGE_AREA_MM2, organisation.row_bytes) / interpolate(PAGE_AREA_MM2, base.organisation.row_bytes)
    return (
        gib * of["dram_mm2_per_gib"] * page
        + (banks - base_banks) * of["bank_periphery_mm2"]
        + (organisation.channels - base.organisation.channels) * of["channel_interface_mm2"]
        + banks * of["unit_mm2"] * device.unit.lanes / base.unit.lanes
        + organisation.channels * device.unit.global_buffer_bytes / 1024 * of["global_buffer_mm2_per_kib"]
    )


def _case(area: Area, case: Case) -> dict[str, float]:
    return {name: getattr(getattr(area, name), case) for name in Area.model_fields if name != "dies"}
