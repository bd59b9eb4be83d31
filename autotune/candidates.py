"""The candidate devices of a scenario: what the hardware knobs of designs make of the base device, many at a time."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.problem import HARDWARE_GROUP, Codes
from autotune.space import Space
from compiler.device_table import DeviceTable, scaled_table
from configs.device import Device
from configs.knobs import HardwareKnobs, base_knobs
from configs.laws import LawCase
from simulator.laws.area import area_mm2
from simulator.laws.device import impossibilities, scaled_device
from simulator.laws.figures import device_figures
from simulator.laws.rules import broken, refresh_refusals, shape_refusals

Floats = NDArray[np.float64]
KEPT = 8


class CandidateDevices:
    """Devices by the codes of designs; keeps what was asked for last, as one batch is asked about many times."""

    def __init__(self, base: Device, space: Space, devices: int) -> None:
        """Take the base device, the space that codes refer to, and the devices of a system."""
        self.base, self.space, self.devices = base, space, devices
        self._columns = space.columns(HARDWARE_GROUP)
        self._kept: OrderedDict[tuple[str, bytes], Any] = OrderedDict()

    def buildable(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which designs have a device that can be built: bool[n]."""
        found: NDArray[np.bool_] = self._once("buildable", codes, self._buildable)
        return found

    def table(self, codes: Codes) -> DeviceTable:
        """Return the devices of designs; where one cannot be built, the base device stands in its place."""
        found: DeviceTable = self._once("table", codes, self._table)
        return found

    def area_mm2(self, codes: Codes, case: LawCase = "nominal") -> Floats:
        """Return mm² of all devices of a system: float[n]; NaN where the base device has no area section."""
        one = area_mm2(self.base, self._knobs(codes), case)
        if one is None:
            return np.full(len(codes), np.nan)
        return np.broadcast_to(np.asarray(one * self.devices, dtype=np.float64), (len(codes),))

    def device(self, codes: Codes, case: LawCase = "nominal") -> Device:
        """Return the device of one design (int[k]); raises UserError for one that cannot be built."""
        return scaled_device(self.base, self.space.hardware(codes), case)

    def reasons(self, codes: Codes) -> tuple[str, ...]:
        """Return why the device of one design cannot be built, with amounts."""
        return impossibilities(self.base, self.space.hardware(codes))

    def _knobs(self, codes: Codes) -> HardwareKnobs:
        """Return the knobs of designs as arrays; the base device's where a device cannot be built."""
        return _where(self.buildable(codes), self.space.hardware_arrays(codes), base_knobs(self.base))

    def _buildable(self, codes: Codes) -> NDArray[np.bool_]:
        knobs, count = self.space.hardware_arrays(codes), len(codes)
        with np.errstate(divide="ignore", invalid="ignore"):
            fine = ~broken(shape_refusals(self.base, knobs), count)
        usable = _where(fine, knobs, base_knobs(self.base))
        return fine & ~broken(refresh_refusals(self.base, usable, device_figures(self.base, usable)), count)

    def _table(self, codes: Codes) -> DeviceTable:
        figures = device_figures(self.base, self._knobs(codes))
        return scaled_table(self.base, figures, len(codes), self.devices)

    def _once(self, what: str, codes: Codes, compute: Callable[[Codes], Any]) -> Any:
        key = what, np.ascontiguousarray(codes[:, self._columns]).tobytes()
        if key not in self._kept:
            self._kept[key] = compute(codes)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def _where(chosen: NDArray[np.bool_], knobs: HardwareKnobs, other: HardwareKnobs) -> HardwareKnobs:
    if chosen.all():
        return knobs
    names = (field.name for field in fields(HardwareKnobs))
    return HardwareKnobs(*(np.where(chosen, getattr(knobs, name), getattr(other, name)) for name in names))
