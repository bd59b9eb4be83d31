"""One device from a base device and knobs; at its own values a base device comes out unchanged."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from configs.device import Device
from configs.errors import UserError
from configs.knobs import HardwareKnobs, base_knobs, format_class, knob_values
from configs.laws import LawCase
from configs.refresh import Refresh, RefreshPolicy
from configs.structure import Structure, UnitFormats
from simulator.laws.build import build_of
from simulator.laws.figures import device_figures
from simulator.laws.rules import refresh_refusals, shape_refusals, texts


def scaled_device(base: Device, knobs: HardwareKnobs, case: LawCase = "nominal") -> Device:
    """Return the base device with these knob values; raises UserError, with amounts, for an impossible device."""
    if knobs == base_knobs(base):
        return base
    if base.energy is None or base.power is None or base.link is None or base.dispatcher is None:
        raise UserError(
            where=f"--hardware {base.name}",
            expected="a device with energy, power, link and dispatcher sections, which scaling laws need",
            found="a device without them",
            way_out="use gddr6-aim, or fix all hardware knobs to the device's own values",
        )
    for reason in impossibilities(base, knobs):
        raise UserError(
            where="hardware knobs", expected="a device that can be built", found=reason, way_out="change it"
        )
    figures = device_figures(base, knobs, case)
    own = base_knobs(base)
    changed = [f"{name}={value}" for name, value in knob_values(knobs) if value != getattr(own, name)]
    link = base.link.model_copy(update=_plain(figures.link))
    if knobs.host_link != base.structure.host_link:
        link = link.model_copy(update={"name": knobs.host_link})
    return base.model_copy(
        update={
            "name": f"{base.name}@{','.join(changed)}" + ("" if case == "nominal" else f" ({case})"),
            "organisation": base.organisation.model_copy(update=_plain(figures.organisation)),
            "structure": _structure(base, knobs),
            "processing_unit": base.unit.model_copy(update=_plain(figures.unit) | {"formats": _formats(base, knobs)}),
            "timing": _plain(figures.timing),
            "refresh": _refresh(base, knobs),
            "energy": base.energy.model_copy(update=_plain(figures.energy)),
            "link": link,
            "dispatcher": base.dispatcher.model_copy(update=_plain(figures.dispatcher)),
        }
    )


def impossibilities(base: Device, knobs: HardwareKnobs) -> tuple[str, ...]:
    """Return why a device cannot be built or is outside the laws' range, with amounts."""
    found = tuple(texts(shape_refusals(base, knobs)))
    if found or base.energy is None:
        return found
    return tuple(texts(refresh_refusals(base, knobs, device_figures(base, knobs))))


def _plain(figures: Any) -> dict[str, Any]:
    """Return figures of one device as Python scalars by name."""
    named = figures if isinstance(figures, Mapping) else asdict(figures)
    return {name: np.asarray(value).item() for name, value in named.items()}


def _structure(base: Device, knobs: HardwareKnobs) -> Structure:
    return Structure(
        gang=int(build_of(base, knobs).gang),
        **{name: getattr(knobs, name) for name in Structure.model_fields if name != "gang"},
    )


def _formats(base: Device, knobs: HardwareKnobs) -> tuple[Any, ...]:
    classes = tuple(UnitFormats)
    widest = classes.index(UnitFormats(knobs.unit_formats))
    return tuple(item for item in base.unit.formats if classes.index(format_class(item)) <= widest)


def _refresh(base: Device, knobs: HardwareKnobs) -> Refresh:
    own = base.refresh
    same = str(own.policy) == knobs.refresh_policy
    temperature = own.temperature_c if int(own.temperature_c) == knobs.temperature_c else knobs.temperature_c
    return Refresh(
        policy=RefreshPolicy(knobs.refresh_policy), postponed=own.postponed if same else 0, temperature_c=temperature
    )
