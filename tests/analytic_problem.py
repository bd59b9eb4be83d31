"""A PIM-shaped search problem in closed form: small enough to enumerate, or large enough to time the search.

Cycles are a roofline times overheads of the schedule, with a little roughness that no model can learn. Illegal designs
overflow the buffer or the accumulators, as real ones do.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autotune.problem import AREA, CAPACITY, DEVICES, DIES, TOKENS, Codes, Evaluation, Knob, TaskMeasurement

Floats = NDArray[np.float64]
BANKS = 16
SEGMENT_BYTES = 256
ROUGHNESS = 0.04


@dataclass(frozen=True, slots=True)
class AnalyticTask:
    """One task: its multiply-accumulates, the DRAM rows it reads and how often it occurs in a step."""

    name: str
    kind: str
    macs: int
    rows: int
    multiplicity: int


@dataclass(frozen=True, slots=True)
class AnalyticProblem:
    """The hardware knobs, the tasks with equal schedule knobs each, and the designs evaluated first."""

    hardware: tuple[Knob, ...]
    specs: tuple[AnalyticTask, ...]
    schedule: tuple[tuple[str, tuple[int | str, ...]], ...]
    first: tuple[tuple[int, ...], ...] = ()
    watch: Callable[[Codes], None] | None = field(default=None, compare=False)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        tasks = (Knob(name, spec.name, v) for spec in self.specs for name, v in self.schedule)
        return (*self.hardware, *tasks)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)

    def kind(self, task: str) -> str:
        return next(spec.kind for spec in self.specs if spec.name == task)

    def legal(self, codes: Codes) -> NDArray[np.bool_]:
        fits = np.ones(len(codes), dtype=np.bool_)
        for spec in self.specs:
            fits &= self._needed_bytes(codes, spec) <= self._hardware(codes, "buffer_bytes", 2048)
            fits &= self._needed_accumulators(codes, spec) <= self._hardware(codes, "accumulators", 4)
        return fits

    def reasons(self, codes: Codes) -> tuple[str, ...]:
        one = codes[None, :]
        buffer_bytes = self._hardware(one, "buffer_bytes", 2048)[0]
        accumulators = self._hardware(one, "accumulators", 4)[0]
        found = []
        for spec in self.specs:
            needed_bytes, needed = self._needed_bytes(one, spec)[0], self._needed_accumulators(one, spec)[0]
            if needed_bytes > buffer_bytes:
                found.append(f"{spec.name} needs {needed_bytes:.0f} B of buffer, the device has {buffer_bytes:.0f} B")
            if needed > accumulators:
                found.append(f"{spec.name} needs {needed:.0f} accumulators, the device has {accumulators:.0f}")
        return tuple(found)

    def canonical(self, codes: Codes) -> Codes:
        """A tile of one row has nothing to double-buffer."""
        result = codes.copy()
        for spec in self.specs:
            tile, buffering = self._column(spec.name, "tile_rows"), self._column(spec.name, "double_buffer")
            result[result[:, tile] == 0, buffering] = 0
        return result

    def feature_names(self, kind: str) -> tuple[str, ...]:
        return ("macs", "rows", "channels", "lanes", "buffer", "accumulators", "tile", "split", "spill", "double")

    def features(self, codes: Codes, task: str) -> Floats:
        spec = next(spec for spec in self.specs if spec.name == task)
        hardware = [self._hardware(codes, n, d) for n, d in (("channels", 16), ("lanes", 16), ("buffer_bytes", 2048))]
        columns = (
            np.full(len(codes), float(spec.macs)),
            np.full(len(codes), float(spec.rows)),
            *hardware,
            self._hardware(codes, "accumulators", 4),
            self._schedule(codes, spec, "tile_rows"),
            self._schedule(codes, spec, "split"),
            codes[:, self._column(spec.name, "order")].astype(np.float64),
            codes[:, self._column(spec.name, "double_buffer")].astype(np.float64),
        )
        return np.stack(columns, axis=1)

    def bound_cycles(self, codes: Codes) -> Floats:
        banks = self._hardware(codes, "channels", 16) * BANKS
        units = banks / self._hardware(codes, "banks_per_unit", 1)
        lanes = self._hardware(codes, "lanes", 16)
        bounds = [np.maximum(spec.macs / (units * lanes), 40 * spec.rows / banks) for spec in self.specs]
        rounded: Floats = np.ceil(np.stack(bounds, axis=1))
        return rounded

    def metrics(self, codes: Codes, cycles: Floats) -> Floats:
        multiplicity = np.array([spec.multiplicity for spec in self.specs], dtype=np.float64)
        channels, lanes = self._hardware(codes, "channels", 16), self._hardware(codes, "lanes", 16)
        units = channels * BANKS / self._hardware(codes, "banks_per_unit", 1)
        buffer_bytes, accumulators = (
            self._hardware(codes, "buffer_bytes", 2048),
            self._hardware(codes, "accumulators", 4),
        )
        clock_ghz = self._hardware(codes, "clock_mhz", 1000) / 1000
        latency_ns = cycles @ multiplicity / clock_ghz
        activations = sum(
            spec.multiplicity * spec.rows * (1 + 1 / self._schedule(codes, spec, "tile_rows")) for spec in self.specs
        )
        macs = sum(spec.multiplicity * spec.macs for spec in self.specs)
        standby_mw = channels * (20 + 0.3 * lanes + 0.002 * buffer_bytes) * clock_ghz
        energy_pj = macs * (1 + 0.1 * clock_ghz) + 900 * activations + standby_mw * latency_ns
        area_mm2 = (
            channels * 4 + units * (0.02 * lanes + 0.01 * accumulators) * clock_ghz + channels * buffer_bytes / 2e3
        )
        return np.stack([latency_ns, energy_pj, area_mm2], axis=1)

    def facts(self, codes: Codes) -> dict[str, Floats]:
        """One device of one die and one GiB; the area takes no cycles."""
        area = self.metrics(codes, self.bound_cycles(codes))[:, 2]
        one = np.ones(len(codes))
        return {TOKENS: one, DEVICES: one, DIES: one, CAPACITY: one, AREA: area}

    def baselines(self) -> Codes:
        return np.array(self.first, dtype=np.int64).reshape(len(self.first), len(self.knobs))

    def true_cycles(self, codes: Codes) -> Floats:
        """What `evaluate` finds, vectorised: the roofline times reload, spill and imbalance overheads and roughness."""
        factors = [self._overhead(codes, spec) * self._roughness(codes, spec) for spec in self.specs]
        return np.ceil(self.bound_cycles(codes) * np.stack(factors, axis=1))

    def true_metrics(self, codes: Codes) -> Floats:
        """The exact metrics of many designs, for exact fronts."""
        return self.metrics(codes, self.true_cycles(codes))

    def evaluate(self, codes: Codes) -> Evaluation:
        if self.watch is not None:
            self.watch(codes)
        if not self.legal(codes[None, :])[0]:
            raise AssertionError(f"an illegal design was evaluated: {self.reasons(codes)}")
        cycles, bounds = self.true_cycles(codes[None, :])[0], self.bound_cycles(codes[None, :])[0]
        latency_ns, energy_pj, area_mm2 = self.metrics(codes[None, :], cycles[None, :])[0].tolist()
        measured = tuple(
            TaskMeasurement(spec.name, spec.kind, spec.multiplicity, int(cycle), int(bound))
            for spec, cycle, bound in zip(self.specs, cycles, bounds, strict=True)
        )
        return Evaluation(tuple(codes.tolist()), latency_ns, energy_pj, area_mm2, measured, (("commands", 1.0),))

    def _overhead(self, codes: Codes, spec: AnalyticTask) -> Floats:
        tile, split = self._schedule(codes, spec, "tile_rows"), self._schedule(codes, spec, "split")
        spills = codes[:, self._column(spec.name, "order")] == 1
        hidden = codes[:, self._column(spec.name, "double_buffer")] == 1
        lanes = self._hardware(codes, "lanes", 16)
        reload = np.where(spills, 0.1, 0.9) / tile * np.where(hidden, 0.5, 1.0)
        spill = np.where(spills, 0.03 * split, 0.0)
        best_split = np.log2(np.maximum(spec.rows / (BANKS * self._hardware(codes, "channels", 16)), 1)) / 2
        imbalance = 0.15 * np.abs(np.log2(split) - np.minimum(best_split, 3)) * np.sqrt(lanes / 16)
        overhead: Floats = 1 + reload + spill + imbalance
        return overhead

    def _roughness(self, codes: Codes, spec: AnalyticTask) -> Floats:
        groups = np.array([knob.group in ("hardware", spec.name) for knob in self.knobs])
        weights = np.arange(1, groups.sum() + 1, dtype=np.float64) * 12.9898
        noise = np.sin(codes[:, groups] @ weights + spec.macs) * 43758.5453
        roughness: Floats = 1 + ROUGHNESS * (noise - np.floor(noise))
        return roughness

    def _needed_bytes(self, codes: Codes, spec: AnalyticTask) -> Floats:
        buffers = 1 + codes[:, self._column(spec.name, "double_buffer")]
        needed: Floats = self._schedule(codes, spec, "tile_rows") * SEGMENT_BYTES * buffers
        return needed

    def _needed_accumulators(self, codes: Codes, spec: AnalyticTask) -> Floats:
        reloads = codes[:, self._column(spec.name, "order")] == 0
        return np.where(reloads, self._schedule(codes, spec, "split") / 2, 1.0).astype(np.float64)

    def _hardware(self, codes: Codes, name: str, default: float) -> Floats:
        for column, knob in enumerate(self.hardware):
            if knob.name == name:
                return np.array(knob.values, dtype=np.float64)[codes[:, column]]
        return np.full(len(codes), float(default))

    def _schedule(self, codes: Codes, spec: AnalyticTask, name: str) -> Floats:
        values = dict(self.schedule)[name]
        return np.array(values, dtype=np.float64)[codes[:, self._column(spec.name, name)]]

    def _column(self, task: str, name: str) -> int:
        names = [option for option, _ in self.schedule]
        return len(self.hardware) + self.tasks.index(task) * len(names) + names.index(name)


def small_problem(watch: Callable[[Codes], None] | None = None) -> AnalyticProblem:
    """A problem of 20,736 designs (fewer are legal and distinct) whose front can be enumerated."""
    hardware = (
        Knob("channels", "hardware", (8, 16, 32, 64)),
        Knob("lanes", "hardware", (8, 16, 32)),
        Knob("buffer_bytes", "hardware", (512, 1024, 2048), "B"),
    )
    schedule = (
        ("tile_rows", (1, 2, 4)),
        ("split", (1, 4)),
        ("order", ("reload", "spill")),
        ("double_buffer", ("off", "on")),
    )
    specs = (
        AnalyticTask("attention", "attention", 1 << 22, 3000, 8),
        AnalyticTask("ffn", "linear", 1 << 25, 9000, 8),
    )
    return AnalyticProblem(hardware, specs, schedule, ((1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0),), watch)


def tiny_problem(watch: Callable[[Codes], None] | None = None) -> AnalyticProblem:
    """A problem of at most 32 designs, to be enumerated whole."""
    hardware = (Knob("channels", "hardware", (8, 16)), Knob("buffer_bytes", "hardware", (256, 512), "B"))
    schedule = (
        ("tile_rows", (1, 2)),
        ("split", (4,)),
        ("order", ("reload", "spill")),
        ("double_buffer", ("off", "on")),
    )
    specs = (AnalyticTask("ffn", "linear", 1 << 25, 9000, 8),)
    return AnalyticProblem(hardware, specs, schedule, ((0, 0, 0, 0, 0, 0),), watch)


def infeasible_problem() -> AnalyticProblem:
    """A problem whose only buffer is smaller than the smallest tile."""
    hardware = (Knob("channels", "hardware", (8, 16)), Knob("buffer_bytes", "hardware", (64, 128), "B"))
    schedule = (
        ("tile_rows", (1, 2)),
        ("split", (4,)),
        ("order", ("reload", "spill")),
        ("double_buffer", ("off", "on")),
    )
    return AnalyticProblem(hardware, (AnalyticTask("ffn", "linear", 1 << 25, 9000, 8),), schedule)


def large_problem() -> AnalyticProblem:
    """A problem of 26 knobs and five tasks, of which about one random design in four is legal."""
    hardware = (
        Knob("channels", "hardware", (8, 16, 32, 64)),
        Knob("lanes", "hardware", (4, 8, 16, 32)),
        Knob("buffer_bytes", "hardware", (512, 1024, 2048, 4096), "B"),
        Knob("accumulators", "hardware", (1, 2, 4)),
        Knob("banks_per_unit", "hardware", (1, 2, 4)),
        Knob("clock_mhz", "hardware", (800, 1000, 1300), "MHz"),
    )
    schedule = (
        ("tile_rows", (1, 2, 4, 8)),
        ("split", (1, 2, 4, 8)),
        ("order", ("reload", "spill")),
        ("double_buffer", ("off", "on")),
    )
    specs = (
        AnalyticTask("qkv", "linear", 1 << 23, 4000, 32),
        AnalyticTask("attention", "attention", 1 << 22, 3000, 32),
        AnalyticTask("output", "linear", 1 << 22, 2500, 32),
        AnalyticTask("ffn", "linear", 1 << 25, 9000, 32),
        AnalyticTask("head", "head", 1 << 27, 50000, 1),
    )
    first = ((1, 2, 2, 2, 0, 1) + (0, 0, 0, 0) * len(specs),)
    return AnalyticProblem(hardware, specs, schedule, first)
