"""Random corners of the grid of hardware knobs, as arrays, and the outputs of the laws there by name."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from configs.device import load_device
from configs.knobs import HARDWARE_KNOBS, HardwareKnobs, KnobDeclaration, base_knobs
from configs.laws import LawCase
from simulator.laws.area import area_mm2
from simulator.laws.build import build_of
from simulator.laws.figures import device_figures
from simulator.laws.rules import broken, refresh_refusals, shape_refusals

BASE = load_device("gddr6-aim")
OWN = base_knobs(BASE)
TIMING = (
    *("nRCDRD", "nRCDRDMAC", "nRCDWR", "nRAS", "nRP", "nRC", "nCL", "nRRDS", "nFAW", "nACTALL", "nCCDMAC"),
    *("nBL", "nBLGB", "nBLREG", "nRFC", "nRFCpb", "nRMW", "nLTMAC", "nRRDL"),
)


def drawn(count: int, seed: int) -> HardwareKnobs:
    """Draw every knob uniformly."""
    rng = np.random.default_rng(seed)
    return HardwareKnobs(*(np.array(knob.values)[rng.integers(0, len(knob.values), count)] for knob in HARDWARE_KNOBS))


def buildable(knobs: HardwareKnobs) -> NDArray[np.bool_]:
    """Return which devices no rule refuses: bool[n]."""
    count = len(knobs.channels)
    with np.errstate(divide="ignore", invalid="ignore"):
        fine = ~broken(shape_refusals(BASE, knobs), count)
    names = [field.name for field in fields(HardwareKnobs)]
    usable = HardwareKnobs(*(np.where(fine, getattr(knobs, name), getattr(OWN, name)) for name in names))
    return fine & ~broken(refresh_refusals(BASE, usable, device_figures(BASE, usable)), count)


def taken(knobs: HardwareKnobs, chosen: NDArray[np.bool_]) -> HardwareKnobs:
    """Return the chosen devices."""
    return HardwareKnobs(*(getattr(knobs, field.name)[chosen] for field in fields(HardwareKnobs)))


def neighbours(knob: KnobDeclaration, count: int, seed: int) -> list[tuple[HardwareKnobs, HardwareKnobs]]:
    """Return buildable devices with one value of a knob, and the same with the next value; one pair per step."""
    everything, pairs = drawn(count, seed), []
    for before, after in zip(knob.values, knob.values[1:], strict=False):
        one, other = (replace(everything, **{knob.name: np.full(count, value)}) for value in (before, after))
        both = buildable(one) & buildable(other)
        pairs.append((taken(one, both), taken(other, both)))
    return pairs


def outputs(knobs: HardwareKnobs, case: LawCase = "nominal") -> Mapping[str, NDArray[np.float64]]:
    """Return what the laws say: cycles by name, energy of one bank or unit, mm², and what is built."""
    figures, built = device_figures(BASE, knobs, case), build_of(BASE, knobs)
    found: dict[str, Any] = {name: figures.timing[name] for name in TIMING}
    found |= {
        "refresh interval": figures.refresh_interval_cycles,
        "row energy": figures.energy["activate_precharge_pj"] / built.gang,
        "column energy": figures.energy["column_read_pj"],
        "multiply energy": figures.energy["all_bank_mac_pj"] / built.parallel,
        "buffer energy": figures.energy["global_buffer_access_pj"],
        "row move energy": figures.energy["row_move_pj"] / built.gang,
        "standby": figures.energy["standby_active_mw"],
        "link energy": figures.energy["link_pj_per_bit"],
        "link bandwidth": figures.link["bandwidth_gb_per_s"],
        "link latency": figures.link["latency_ns"],
        "dispatcher rate": figures.dispatcher["instructions_per_cycle"],
        "loop depth": figures.dispatcher["sequencer_loop_depth"],
        "row buffers": figures.organisation.row_buffers,
        "vectors": figures.unit.vectors_per_multiply,
        "accumulators": figures.unit.accumulators,
        "buffer bytes": figures.unit.global_buffer_bytes,
        "parallel banks": built.parallel,
        "gang": built.gang,
        "capacity": knobs.channels * built.banks * built.rows * knobs.row_bytes,
        "area": area_mm2(BASE, knobs, case),
    }
    count = len(knobs.channels)
    return {name: np.broadcast_to(np.asarray(values, dtype=np.float64), (count,)) for name, values in found.items()}
