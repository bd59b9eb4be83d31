"""The candidate devices of a scenario: what the hardware knobs of designs make of the base device, many at a time."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from autotune.layout import keys
from autotune.problem import HARDWARE_GROUP, Codes
from autotune.space import Space
from compiler.device_rows import DeviceRows
from compiler.device_table import DeviceTable, scaled_table
from configs.device import Device
from configs.knobs import HardwareKnobs, base_knobs
from configs.laws import LawCase
from simulator.laws.area import area_mm2
from simulator.laws.device import impossibilities, scaled_device
from simulator.laws.figures import device_figures
from simulator.laws.rules import broken, refresh_refusals, shape_refusals

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
MOST_KEPT = 1 << 15
BATCHES_KEPT = 8


@dataclass(frozen=True, slots=True)
class _Batch:
    """The devices of designs: which can be built, their figures, and mm² of one; the base device where none can."""

    buildable: Bools
    table: DeviceTable
    area_mm2: Floats


class CandidateDevices:
    """Devices by the codes of designs; keeps those that it was asked for, as most designs share theirs with others."""

    def __init__(self, base: Device, space: Space, devices: int) -> None:
        """Take the base device, the space that codes refer to, and the devices of a system."""
        self.base, self.space, self.devices = base, space, devices
        self._columns = space.columns(HARDWARE_GROUP)
        self._batches: OrderedDict[bytes, _Batch] = OrderedDict()
        self._numbers: dict[bytes, int] = {}
        self._rows: DeviceRows | None = None
        self._buildable, self._area_mm2 = np.zeros(0, dtype=np.bool_), np.zeros(0)

    def buildable(self, codes: Codes) -> Bools:
        """Return which designs have a device that can be built: bool[n]."""
        return self._batch(codes).buildable

    def table(self, codes: Codes) -> DeviceTable:
        """Return the devices of designs; where one cannot be built, the base device stands in its place."""
        return self._batch(codes).table

    def area_mm2(self, codes: Codes, case: LawCase = "nominal") -> Floats:
        """Return mm² of all devices of a system: float[n]; NaN where the base device has no area section."""
        if case == "nominal":
            return self._batch(codes).area_mm2 * self.devices
        knobs = _where(self.buildable(codes), self.space.hardware_arrays(codes), base_knobs(self.base))
        return self._area_of_one(knobs, len(codes), case) * self.devices

    def device(self, codes: Codes, case: LawCase = "nominal") -> Device:
        """Return the device of one design (int[k]); raises UserError for one that cannot be built."""
        return scaled_device(self.base, self.space.hardware(codes), case)

    def reasons(self, codes: Codes) -> tuple[str, ...]:
        """Return why the device of one design cannot be built, with amounts."""
        return impossibilities(self.base, self.space.hardware(codes))

    def _batch(self, codes: Codes) -> _Batch:
        """Return the devices of designs; those of the last batches are kept, as each is asked for many times."""
        hardware = np.ascontiguousarray(codes[:, self._columns])
        key = hardware.tobytes()
        if key not in self._batches:
            self._batches[key] = self._found(hardware, codes)
            if len(self._batches) > BATCHES_KEPT:
                self._batches.popitem(last=False)
        self._batches.move_to_end(key)
        return self._batches[key]

    def _found(self, hardware: Codes, codes: Codes) -> _Batch:
        """Look up the devices of designs, computing those that are new."""
        names = keys(hardware)
        new = {name: row for row, name in enumerate(names) if name not in self._numbers}
        if self._rows is None or len(self._numbers) + len(new) > MOST_KEPT:
            new = {name: row for row, name in enumerate(names)}
            self._numbers, self._rows = {}, None
            self._buildable, self._area_mm2 = self._buildable[:0], self._area_mm2[:0]
        if new or self._rows is None:
            self._learn(new, codes[list(new.values())])
        assert self._rows is not None
        rows = np.array([self._numbers[name] for name in names], dtype=np.int64)
        return _Batch(self._buildable[rows], self._rows.take(rows), self._area_mm2[rows])

    def _learn(self, names: Iterable[bytes], codes: Codes) -> None:
        """Compute and keep the devices of designs of distinct hardware."""
        knobs, count = self.space.hardware_arrays(codes), len(codes)
        with np.errstate(divide="ignore", invalid="ignore"):
            fine = ~broken(shape_refusals(self.base, knobs), count)
        usable = _where(fine, knobs, base_knobs(self.base))
        figures = device_figures(self.base, usable)
        refused = broken(refresh_refusals(self.base, usable, figures), count)
        if refused.any():
            usable = _where(~refused, usable, base_knobs(self.base))
            figures = device_figures(self.base, usable)
        table = scaled_table(self.base, figures, count, self.devices)
        if self._rows is None:
            self._rows = DeviceRows(table)
        else:
            self._rows.add(table)
        self._numbers |= {name: len(self._numbers) + place for place, name in enumerate(names)}
        self._buildable = np.concatenate([self._buildable, fine & ~refused])
        self._area_mm2 = np.concatenate([self._area_mm2, self._area_of_one(usable, count, "nominal")])

    def _area_of_one(self, knobs: HardwareKnobs, count: int, case: LawCase) -> Floats:
        one = area_mm2(self.base, knobs, case)
        return np.broadcast_to(np.asarray(np.nan if one is None else one, dtype=np.float64), (count,))


def _where(chosen: NDArray[np.bool_], knobs: HardwareKnobs, other: HardwareKnobs) -> HardwareKnobs:
    if chosen.all():
        return knobs
    names = (field.name for field in fields(HardwareKnobs))
    return HardwareKnobs(*(np.where(chosen, getattr(knobs, name), getattr(other, name)) for name in names))
