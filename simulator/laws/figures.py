"""All figures of the devices that knobs make, by section of a device file: one device, or arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from configs.device import Device
from configs.knobs import DISPATCHER_CYCLES, OWN_LINK, HardwareKnobs, base_knobs
from configs.laws import LawCase, LawConstants, law_constants
from configs.refresh import HOT_C
from simulator.laws.build import bank_group_shape, build_of
from simulator.laws.energy import scaled_energy
from simulator.laws.timing import scaled_timing


@dataclass(frozen=True, slots=True)
class OrganisationFigures:
    """What knobs change of `configs.device.Organisation`."""

    channels: Any
    bank_groups: Any
    banks_per_group: Any
    rows: Any
    row_bytes: Any
    column_bytes: Any
    row_buffers: Any

    @property
    def banks(self) -> Any:
        """Banks of one channel."""
        return self.bank_groups * self.banks_per_group

    @property
    def columns(self) -> Any:
        """Column accesses in one row."""
        return self.row_bytes // self.column_bytes


@dataclass(frozen=True, slots=True)
class UnitFigures:
    """What knobs change of `configs.device.ProcessingUnit`, and what none does: bytes of a value, microkernel words."""

    lanes: Any
    accumulators: Any
    global_buffer_bytes: Any
    vectors_per_multiply: Any
    value_bytes: int
    microkernel_words: int


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """Figures as in the sections of a device file, by name where a closed form asks for them by name.

    `refresh_interval_cycles` is the time in which every bank is due for one refresh.
    """

    organisation: OrganisationFigures
    unit: UnitFigures
    timing: Mapping[str, Any]
    energy: Mapping[str, Any]
    link: Mapping[str, Any]
    dispatcher: Mapping[str, Any]
    refresh_policy: Any
    refresh_interval_cycles: Any


def device_figures(base: Device, knobs: HardwareKnobs, case: LawCase = "nominal") -> DeviceFigures:
    """Return the figures that knobs change; meaningful only where `simulator.laws.rules` finds nothing.

    Raises ValueError for a base device without the sections that laws need.
    """
    if base.energy is None or base.power is None or base.link is None or base.dispatcher is None:
        raise ValueError(f"{base.name} lacks one of the sections energy, power, link and dispatcher, which laws need")
    constants, built = law_constants(), build_of(base, knobs)
    energy = dict(scaled_energy(base, base.energy, knobs, constants, case))
    energy["link_pj_per_bit"] = _of_link("pj_per_bit", base.energy.link_pj_per_bit, knobs, constants)
    groups, per_group = bank_group_shape(built, knobs)
    timing = scaled_timing(base, knobs, energy["all_bank_mac_pj"], constants, case)
    return DeviceFigures(
        organisation=OrganisationFigures(
            channels=knobs.channels,
            bank_groups=groups,
            banks_per_group=per_group,
            rows=built.rows,
            row_bytes=knobs.row_bytes * built.gang,
            column_bytes=knobs.column_bytes,
            row_buffers=knobs.row_buffers,
        ),
        unit=UnitFigures(
            lanes=knobs.lanes,
            accumulators=knobs.accumulators,
            global_buffer_bytes=knobs.global_buffer_bytes,
            vectors_per_multiply=knobs.vectors_per_multiply,
            value_bytes=base.unit.value_bytes,
            microkernel_words=base.unit.microkernel_words,
        ),
        timing=timing,
        energy=energy,
        link={
            "bandwidth_gb_per_s": _of_link("bandwidth_gb_per_s", base.link.bandwidth_gb_per_s, knobs, constants),
            "latency_ns": _of_link("latency_ns", base.link.latency_ns, knobs, constants),
        },
        dispatcher={
            "instructions_per_cycle": _rate(base, knobs),
            "sequencer_loop_depth": knobs.sequencer_loop_depth,
        },
        refresh_policy=knobs.refresh_policy,
        refresh_interval_cycles=timing["nREFI"] * base.ticks_per_clock // np.where(knobs.temperature_c > HOT_C, 2, 1),
    )


def _rate(base: Device, knobs: HardwareKnobs) -> Any:
    """Return instructions per cycle; the base device's own where the knob says what it has."""
    assert base.dispatcher is not None
    own = base_knobs(base).instructions_per_64_cycles
    return np.where(
        knobs.instructions_per_64_cycles == own,
        base.dispatcher.instructions_per_cycle,
        knobs.instructions_per_64_cycles / DISPATCHER_CYCLES,
    )


def _of_link(figure: str, own: float, knobs: HardwareKnobs, constants: LawConstants) -> Any:
    """Return a figure of the link that each device has."""
    value: Any = own
    for name, link in constants.links.items():
        channels = knobs.channels if link.per_channel and figure == "bandwidth_gb_per_s" else 1
        value = np.where(np.asarray(knobs.host_link) == name, getattr(link, figure) * channels, value)
    return np.where(np.asarray(knobs.host_link) == OWN_LINK, own, value)
