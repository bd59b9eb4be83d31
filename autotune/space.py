"""The knobs of a decode problem: hardware knobs, then the schedule of every scheduled operator, as vectors of codes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from autotune.problem import HARDWARE_GROUP, Codes, Knob
from compiler.attention import AttentionShape
from compiler.legality import unit_values
from compiler.linear import LinearShape
from compiler.schedule import GENERATED, AttentionSchedule, LinearSchedule, LoopOrder, Place, Schedule
from compiler.workload import Schedulable
from configs.device import Device
from configs.knobs import HARDWARE_KNOBS, HardwareKnobs, KnobDeclaration, base_knobs

SPLITS = (1, 2, 4, 8, 16, 32, 64)
REGISTERS = (32, 16, 8)
SEGMENT_COLUMNS = (64, 128, 32, 16, 8)
TOKEN_BLOCKS = (1, 2, 4, 8)
MOST_REUSE = 16
YES_NO = (1, 0)
NO_RESTRICTIONS: Mapping[str, tuple[int | str, ...]] = MappingProxyType({})
WHOLE_HARDWARE = HARDWARE_GROUP  # the name under which a restriction speaks of all hardware knobs


@dataclass(frozen=True, slots=True)
class Space:
    """All knobs of a problem; a design is one code per knob, in this order."""

    knobs: tuple[Knob, ...]
    schedulables: tuple[Schedulable, ...]

    def columns(self, group: str) -> list[int]:
        """Return the positions of a group's knobs."""
        return [index for index, knob in enumerate(self.knobs) if knob.group == group]

    def schedule_arrays(self, shape: Schedulable, codes: Codes) -> Any:
        """Return the schedule record of a task with one array entry per design (int[n, k])."""
        values = {self.knobs[index].name: self._values(index, codes) for index in self.columns(shape.name)}
        record = LinearSchedule if isinstance(shape, LinearShape) else AttentionSchedule
        return record(**values)

    def schedule(self, shape: Schedulable, codes: Codes) -> Schedule:
        """Return the schedule of a task in one design (int[k])."""
        chosen: dict[str, Any] = {
            self.knobs[i].name: self.knobs[i].values[int(codes[i])] for i in self.columns(shape.name)
        }
        chosen["place"] = Place(chosen["place"])
        chosen["preactivate"] = bool(chosen["preactivate"])
        if isinstance(shape, AttentionShape):
            return AttentionSchedule(**chosen)
        chosen["order"] = LoopOrder(chosen["order"])
        chosen["merged"] = bool(chosen["merged"])
        return LinearSchedule(**chosen)

    def schedules(self, codes: Codes) -> dict[str, Schedule]:
        """Return the schedules of all tasks of one design."""
        return {shape.name: self.schedule(shape, codes) for shape in self.schedulables}

    def hardware(self, codes: Codes) -> HardwareKnobs:
        """Return the hardware knobs of one design."""
        return HardwareKnobs(*(self.knobs[i].values[int(codes[i])] for i in self.columns(HARDWARE_GROUP)))

    def hardware_arrays(self, codes: Codes) -> HardwareKnobs:
        """Return the hardware knobs of many designs (int[n, k]), each with one array entry per design."""
        return HardwareKnobs(*(self._values(index, codes) for index in self.columns(HARDWARE_GROUP)))

    def encode(self, hardware: HardwareKnobs, schedules: Mapping[str, Schedule]) -> Codes | None:
        """Return the codes of a design (int[k]); None when it lies outside the space."""
        if any(isinstance(item, LinearSchedule) and item.kernel != GENERATED for item in schedules.values()):
            return None
        codes = []
        for knob in self.knobs:
            record: Any = hardware if knob.group == HARDWARE_GROUP else schedules[knob.group]
            value = getattr(record, knob.name)
            value = int(value) if isinstance(value, bool) else value
            if value not in knob.values:
                return None
            codes.append(knob.values.index(value))
        return np.array(codes, dtype=np.int64)

    def _values(self, index: int, codes: Codes) -> Any:
        return np.array(self.knobs[index].values)[codes[:, index]]


def space_of(
    schedulables: tuple[Schedulable, ...], restrictions: Mapping[str, tuple[int | str, ...]], base: Device
) -> Space:
    """Return the space of these tasks on devices made of a base device.

    A restriction replaces the values of a knob, named by its label; that of `hardware` keeps every hardware knob that
    has none of its own at the base device's value. Knobs that the device does not name stay at its values, too, and
    schedules take the values that its units do.
    """
    free = base.knobs or tuple(item.name for item in HARDWARE_KNOBS)
    fixed = WHOLE_HARDWARE in restrictions
    hardware = [_hardware_knob(item, base, fixed or item.name not in free) for item in HARDWARE_KNOBS]
    schedules = schedule_space(schedulables, base, restrictions).knobs
    return Space((*(_restricted(knob, restrictions) for knob in hardware), *schedules), schedulables)


def schedule_space(
    schedulables: tuple[Schedulable, ...],
    device: Device,
    restrictions: Mapping[str, tuple[int | str, ...]] = NO_RESTRICTIONS,
) -> Space:
    """Return the space of these tasks on a given device: their schedules alone, with the values that its units take."""
    restrictions = unit_values(device) | dict(restrictions)
    knobs: list[Knob] = []
    for shape in schedulables:
        knobs += _linear_knobs(shape) if isinstance(shape, LinearShape) else _attention_knobs(shape)
    return Space(tuple(_restricted(knob, restrictions) for knob in knobs), schedulables)


def _hardware_knob(declared: KnobDeclaration, base: Device, fixed: bool) -> Knob:
    """Return a hardware knob with the declared values, the base device's among them, or that one alone."""
    own = getattr(base_knobs(base), declared.name)
    values = declared.values
    if own not in values:
        values = tuple(sorted((*values, own))) if isinstance(own, int) else (*values, own)
    return Knob(declared.name, HARDWARE_GROUP, (own,) if fixed else values, declared.unit)


def _restricted(knob: Knob, restrictions: Mapping[str, tuple[int | str, ...]]) -> Knob:
    """Replace a knob's values; `*.order` restricts that knob of every task, and a name of its own goes first."""
    values = restrictions.get(knob.label, restrictions.get(f"*.{knob.name}", knob.values))
    return replace(knob, values=tuple(values))


def _linear_knobs(shape: LinearShape) -> list[Knob]:
    def knob(name: str, values: tuple[int | str, ...]) -> Knob:
        return Knob(name, shape.name, values)

    return [
        _place_knob(shape),
        knob("reduction_split", SPLITS),
        knob("segment_columns", SEGMENT_COLUMNS),
        knob("reuse", _divisors(shape.vectors)),
        knob("registers", REGISTERS),
        knob("order", (str(LoopOrder.RELOAD), str(LoopOrder.SPILL))),
        knob("merged", YES_NO if len(shape.parts) > 1 else (1,)),
        knob("preactivate", YES_NO),
    ]


def _attention_knobs(shape: AttentionShape) -> list[Knob]:
    def knob(name: str, values: tuple[int | str, ...]) -> Knob:
        return Knob(name, shape.name, values)

    return [
        _place_knob(shape),
        knob("token_split", SPLITS),
        knob("token_blocks", TOKEN_BLOCKS),
        knob("score_reuse", _divisors(shape.group)),
        knob("context_segment_columns", SEGMENT_COLUMNS),
        knob("context_reuse", _divisors(shape.group)),
        knob("registers", REGISTERS),
        knob("preactivate", YES_NO),
    ]


def _place_knob(shape: Schedulable) -> Knob:
    return Knob("place", shape.name, (str(Place.PIM), str(Place.HOST)), seldom=(str(Place.HOST),))


def _divisors(number: int) -> tuple[int, ...]:
    return tuple(value for value in range(1, min(number, MOST_REUSE) + 1) if number % value == 0)
