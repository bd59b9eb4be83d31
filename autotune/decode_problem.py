"""The search problem of the product: devices and schedules for one decode step, in the terms of `autotune.problem`."""

from collections import OrderedDict
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune import system_energy
from autotune.causes import Cause, causes_of
from autotune.evaluation import SLOWDOWNS, evaluate_design
from autotune.hand_mapping import HAND_MAPPINGS
from autotune.problem import AREA, CAPACITY, DEVICES, DIES, HARDWARE_GROUP, TOKENS, Codes, Evaluation, Knob
from autotune.scenario import Scenario
from autotune.space import Space
from autotune.tuning import bounded_mapping
from compiler.attention import attention_geometry
from compiler.closed_form import SystemCosts, TaskForm, attention_form, host_occurrence_cycles, linear_form
from compiler.device_table import DeviceTable
from compiler.geometry import ceil_div
from compiler.legality import legal, reasons, rules
from compiler.linear import LinearShape, linear_geometry
from compiler.memory.capacity import copies_of
from compiler.memory.rooms import embedding_rows
from compiler.schedule import Place, pool_shape
from compiler.taken_rows import taken_rows
from compiler.workload import EmbeddingShape, HostShape, Schedulable
from configs.device import Device
from configs.knobs import HardwareKnobs, base_knobs, format_class
from configs.structure import PimLevel, UnitFormats
from costmodel.features import feature_names, features
from simulator.isa import KINDS
from simulator.timeline import StepSimulator

Floats = NDArray[np.float64]
PLACE, SEGMENT, ORDER = "place", "segment_columns", "order"
GIB = 2**30
FORMS_KEPT = 4
FORMATS = [str(item) for item in UnitFormats]


class KeptSimulators:
    """The simulators of the devices that were used last; each knows loops that it has walked before."""

    MOST = 8

    def __init__(self) -> None:
        """Keep none yet."""
        self._kept: OrderedDict[str, StepSimulator] = OrderedDict()

    @property
    def count(self) -> int:
        """How many are kept."""
        return len(self._kept)

    def of(self, device: Device) -> StepSimulator:
        """Return the simulator of a device, by its name."""
        if device.name not in self._kept:
            self._kept[device.name] = StepSimulator(device)
            if len(self._kept) > self.MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(device.name)
        return self._kept[device.name]


class DecodeProblem:
    """Implements `autotune.problem.Problem` for one scenario."""

    def __init__(self, scenario: Scenario, simulators: KeptSimulators | None = None) -> None:
        """Keep the scenario; problems on the same devices may share their simulators."""
        self._scenario = scenario
        self._simulators = KeptSimulators() if simulators is None else simulators
        self._shapes = {shape.name: shape for shape in self.space.schedulables}
        self._forms: OrderedDict[tuple[str, bytes], TaskForm] = OrderedDict()
        hardware = self.space.columns(HARDWARE_GROUP)
        self._form_columns = {name: [*hardware, *self.space.columns(name)] for name in self._shapes}
        self._copies = copies_of(scenario.workload)
        stored = [str(format_class(shape.stored)) for shape in self.space.schedulables]
        self._needed_formats = max(stored, key=FORMATS.index, default=FORMATS[0])

    @property
    def scenario(self) -> Scenario:
        """What is fixed during a search."""
        return self._scenario

    @property
    def space(self) -> Space:
        """All knobs of the scenario."""
        return self._scenario.space

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """Hardware knobs, then those of every task's schedule."""
        return self.space.knobs

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the scheduled operators."""
        return tuple(self._shapes)

    @cached_property
    def occurrences(self) -> Floats:
        """How often each scheduled operator runs per step; experts as often as one is active, on average."""
        return np.array([self.scenario.occurrences(name) for name in self.tasks])

    def kind(self, task: str) -> str:
        """Return linear or attention."""
        return "linear" if isinstance(self._shapes[task], LinearShape) else "attention"

    def legal(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which designs have a buildable device, legal schedules, and room for everything."""
        fine = self.scenario.candidates.buildable(codes) & self._decodes(self.space.hardware_arrays(codes))
        table = self._table(codes)
        for shape in self.space.schedulables:
            schedule = self.space.schedule_arrays(shape, codes)
            fine &= legal(schedule.place, rules(shape, schedule, table.pool))
        possible = np.flatnonzero(fine)
        if len(possible):
            kept = codes[possible]
            fine[possible] = self.rows(kept) <= self._table(kept).pool.rows
        return fine

    def _decodes(self, knobs: HardwareKnobs) -> NDArray[np.bool_]:
        """Return whose units decode every format that the workload stores."""
        return np.isin(knobs.unit_formats, FORMATS[FORMATS.index(self._needed_formats) :])

    def rows(self, codes: Codes) -> Floats:
        """Return the rows of every bank that weights, embedding and KV cache take in each design."""
        table = self._table(codes)
        total = np.zeros(len(codes))
        for shape in self.space.schedulables:
            schedule = self.space.schedule_arrays(shape, codes)
            total += self._copies[shape.name] * taken_rows(shape, schedule, table.pool)
        for item in self.scenario.workload.shapes:
            if isinstance(item, EmbeddingShape):
                total += self._copies[item.name] * embedding_rows(item, table.pool)
        return total

    def reasons(self, codes: Codes) -> tuple[str, ...]:
        """Return why one design is illegal."""
        knobs, impossible = self.space.hardware(codes), self.scenario.candidates.reasons(codes)
        if impossible:
            return impossible
        if not self._decodes(knobs):
            return (f"units decode {knobs.unit_formats} formats, the scenario stores {self._needed_formats} ones",)
        pool = pool_shape(self.scenario.system(codes).device, self.scenario.devices)
        found: list[str] = []
        for shape in self.space.schedulables:
            schedule = self.space.schedule(shape, codes)
            found += reasons(shape.name, schedule.place, rules(shape, schedule, pool))
        if found:
            return tuple(found)
        needed = float(self.rows(codes[None, :])[0])
        if needed > pool.rows:
            found.append(f"capacity: needs {needed:.0f} rows of every bank, the device has {pool.rows}")
        return tuple(found)

    def canonical(self, codes: Codes) -> Codes:
        """Set knobs without effect to code 0: all but `place` on the host, order without groups, longer segments."""
        result = self._canonical_hardware(codes)
        pool = self._table(codes).pool
        for shape in self.space.schedulables:
            columns = {self.knobs[i].name: i for i in self.space.columns(shape.name)}
            schedule = self.space.schedule_arrays(shape, codes)
            if isinstance(shape, LinearShape):
                self._canonical_linear(shape, schedule, pool, columns, result)
            on_host = schedule.place == Place.HOST
            for name, column in columns.items():
                if name != PLACE:
                    result[on_host, column] = 0
        return result

    def _canonical_hardware(self, codes: Codes) -> Codes:
        """Set hardware knobs without effect to the base device's value: what only units at banks have."""
        result, knobs = codes.copy(), self.space.hardware_arrays(codes)
        elsewhere = knobs.pim_level != str(PimLevel.BANK)
        for name in ("banks_per_unit", "command_banks"):
            column = next(i for i in self.space.columns(HARDWARE_GROUP) if self.knobs[i].name == name)
            values, own = self.knobs[column].values, getattr(base_knobs(self.scenario.base), name)
            result[elsewhere, column] = values.index(own) if own in values else 0
        return result

    def _canonical_linear(
        self, shape: LinearShape, schedule: Any, pool: Any, columns: dict[str, int], result: Codes
    ) -> None:
        values = np.array(self.knobs[columns[SEGMENT]].values)
        total = ceil_div(ceil_div(shape.inputs, schedule.reduction_split), pool.lanes)
        longest = schedule.segment_columns >= total
        enough = np.where(values[None, :] >= total[:, None], values[None, :], values.max() + 1)
        shortest = np.where(enough.min(axis=1) > values.max(), schedule.segment_columns, enough.min(axis=1))
        codes_of = {int(value): code for code, value in enumerate(values)}
        chosen = np.array([codes_of[int(value)] for value in shortest], dtype=np.int64)
        result[longest, columns[SEGMENT]] = chosen[longest]
        sizes = linear_geometry(shape, max(shape.parts) if len(shape.parts) > 1 else shape.outputs, schedule, pool)
        whole = linear_geometry(shape, shape.outputs, schedule, pool)
        groups = np.where(schedule.merged, whole.groups, sizes.groups)
        result[(groups == 1) | (sizes.segments == 1), columns[ORDER]] = 0

    def feature_names(self, kind: str) -> tuple[str, ...]:
        """Return the names of the features of a kind."""
        return feature_names(kind)

    def features(self, codes: Codes, task: str) -> Floats:
        """Return the features of one task under each design."""
        shape, table = self._shapes[task], self._table(codes)
        return features(shape, self.space.schedule_arrays(shape, codes), table, self._form(shape, codes, table))

    def bound_cycles(self, codes: Codes) -> Floats:
        """Return the lower bound of one occurrence of each task with the design's own schedule."""
        table = self._table(codes)
        return np.stack([self._form(shape, codes, table).bound for shape in self.space.schedulables], axis=1)

    def commands(self, codes: Codes) -> Floats:
        """Return the commands of all scheduled operators over all channels: float[n, kinds]."""
        table = self._table(codes)
        forms = (self._form(shape, codes, table).commands for shape in self.space.schedulables)
        total = np.zeros((len(codes), len(KINDS)))
        for count, form in zip(self.occurrences, forms, strict=True):
            total += count * form
        return total

    def metrics(self, codes: Codes, cycles: Floats) -> Floats:
        """Return latency, energy and area; energy follows from commands, bytes and latency."""
        scenario, table = self.scenario, self._table(codes)
        latency_cycles = cycles @ self.occurrences + self._fixed_cycles(table)
        energy = np.zeros(len(codes))
        active_cycles = np.zeros(len(codes))
        moved = np.zeros(len(codes))
        for shape, count in zip(self.space.schedulables, self.occurrences, strict=True):
            form = self._form(shape, codes, table)
            energy += count * (form.commands * table.command_pj).sum(axis=1)
            active_cycles += count * form.parts["channel"] * self._active_channels(shape, codes, table)
            moved += count * (form.parts["down"] + form.parts["up"])
        energy += system_energy.refresh_pj(table, latency_cycles)
        energy += system_energy.standby_pj(scenario, table, latency_cycles, active_cycles)
        energy += system_energy.link_pj(scenario, table, system_energy.transfer_bytes(scenario, table, moved))
        latency_ns = latency_cycles * scenario.base.cycle_ps / 1000
        area = scenario.candidates.area_mm2(codes)
        return np.stack([latency_ns, energy, area], axis=1)

    def facts(self, codes: Codes) -> dict[str, Floats]:
        """Return what is known of each design without cycles: tokens of a step, devices, dies, capacity, area."""
        scenario = self.scenario
        area = scenario.base.area
        fixed = {
            TOKENS: scenario.workload.batch,
            DEVICES: scenario.devices,
            DIES: scenario.devices * (area.dies if area is not None else 1),
        }
        facts = {name: np.full(len(codes), float(value)) for name, value in fixed.items()}
        pool = self._table(codes).pool
        row_bytes = pool.row_accesses * pool.lanes * scenario.base.unit.value_bytes
        facts[CAPACITY] = pool.channels * pool.banks * pool.rows * row_bytes / GIB
        return facts | {AREA: scenario.candidates.area_mm2(codes)}

    def cause_cycles(self, codes: Codes) -> dict[Cause, Floats]:
        """Return where the lower bound of a step's latency comes from: cycles by cause, float[n] each."""
        table = self._table(codes)
        total = {cause: np.zeros(len(codes)) for cause in Cause}
        for shape, count in zip(self.space.schedulables, self.occurrences, strict=True):
            for cause, cycles in causes_of(self._form(shape, codes, table), table).items():
                total[cause] += count * cycles
        total[Cause.HOST] += self._fixed_cycles(table)
        return total

    def baselines(self) -> Codes:
        """Return the hand mapping, its overlapped form and the least lower bounds on the base device, where legal."""
        codes = list(self.named_baselines().values())
        return np.array(codes, dtype=np.int64).reshape(len(codes), len(self.knobs))

    def named_baselines(self) -> dict[str, Codes]:
        """Return the baselines (int[k] each) that the space holds, by the name of their mapping."""
        system, shapes = self.scenario.system_of_base, self.space.schedulables
        found = {}
        for name, mapping in (HAND_MAPPINGS | {"bounded": bounded_mapping}).items():
            schedules = mapping(shapes, system)
            codes = None
            if len(schedules) == len(shapes):
                codes = self.space.encode(base_knobs(self.scenario.base), schedules)
            if codes is not None:
                found[name] = codes
        return found

    def evaluate(self, codes: Codes) -> Evaluation:
        """Lower and simulate one legal design."""
        system = self.scenario.system(codes)
        simulator = self._simulators.of(system.device)
        bounds = self.bound_cycles(codes[None, :])[0]
        schedules, floors = self.space.schedules(codes), self.latency_floors(codes)
        return evaluate_design(self.scenario, codes, schedules, simulator, bounds, floors)

    def latency_floors(self, codes: Codes) -> Floats:
        """Return the lower bounds of a design's latency in cycles when the host paces its transfers by `SLOWDOWNS`."""
        designs = np.tile(codes, (len(SLOWDOWNS), 1))
        table = self._table(designs)
        costs = self.scenario.costs(table).paced(np.array(SLOWDOWNS))
        fewest = (self.scenario.occurrences(name, min) for name in self.tasks)
        total = self._fixed_cycles(table)
        for shape, count in zip(self.space.schedulables, fewest, strict=True):
            total = total + count * self._new_form(shape, designs, table, costs).bound
        return total

    def _table(self, codes: Codes) -> DeviceTable:
        return self.scenario.candidates.table(codes)

    def _form(self, shape: Schedulable, codes: Codes, table: DeviceTable) -> TaskForm:
        """Return the closed form of a task; kept, as legality, bounds, features and metrics ask for the same."""
        columns = self._form_columns[shape.name]
        key = shape.name, np.ascontiguousarray(codes[:, columns]).tobytes()
        if key not in self._forms:
            self._forms[key] = self._new_form(shape, codes, table, self.scenario.costs(table))
            if len(self._forms) > FORMS_KEPT * len(self._shapes):
                self._forms.popitem(last=False)
        self._forms.move_to_end(key)
        return self._forms[key]

    def _new_form(self, shape: Schedulable, codes: Codes, table: DeviceTable, costs: SystemCosts) -> TaskForm:
        schedule = self.space.schedule_arrays(shape, codes)
        if isinstance(shape, LinearShape):
            return linear_form(shape, schedule, table, costs)
        return attention_form(shape, schedule, table, costs)

    def _active_channels(self, shape: Schedulable, codes: Codes, table: DeviceTable) -> Floats:
        if isinstance(shape, LinearShape):
            return np.asarray(table.pool.channels, dtype=np.float64)
        sizes = attention_geometry(shape, self.space.schedule_arrays(shape, codes), table.pool)
        return np.asarray(sizes.active_channels, dtype=np.float64)

    def _fixed_cycles(self, table: DeviceTable) -> Floats:
        """Cycles of what no schedule changes: host operators, and each embedding's two trips over the link."""
        workload, costs = self.scenario.workload, self.scenario.costs(table)
        total: Floats = 2.0 * costs.latency * workload.lookups
        for shape, multiplicity in zip(workload.shapes, workload.multiplicities, strict=True):
            if isinstance(shape, HostShape):
                products = shape.matrix_operations
                each = host_occurrence_cycles(shape.moved_bytes, shape.operations, costs, products)
                total += multiplicity * each
        return total
