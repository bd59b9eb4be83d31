"""The bound over all schedules: nothing beats it, lowered or written by hand, and the best come near it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from autotune.layout import clean, layout_of
from autotune.sampling import stratified
from compiler.attention import AttentionShape
from compiler.closed_form import SystemCosts
from compiler.device_table import device_table
from compiler.legality import reasons, rules
from compiler.linear import LinearShape
from compiler.lower_bound import LowerBound, attention_lower_bound, linear_lower_bound
from compiler.lowering import System, lower_task
from compiler.schedule import LinearSchedule, LoopOrder, Place
from compiler.workload import StoredFormats
from configs.device import Device, load_device
from configs.knobs import base_knobs
from configs.number_format import NumberFormat
from configs.refresh import Refresh, RefreshPolicy
from experiments.linear_bounds import best_found
from simulator.isa import Affine, Command, Kind, Program, walk
from simulator.laws.device import impossibilities, scaled_device
from simulator.step import PimPhase, Step, TaskPhases
from simulator.timeline import StepSimulator
from tests.small_workloads import small_problem

BASE = load_device("gddr6-aim")
REFRESH = [Refresh(), Refresh(policy=RefreshPolicy.NONE), Refresh(temperature_c=95), Refresh(postponed=4)]


def bound_of(
    shape: LinearShape | AttentionShape, device: Device, devices: int = 1, since: int | None = None
) -> LowerBound:
    assert device.host is not None
    assert device.link is not None
    table = device_table((device,), devices)
    costs = SystemCosts(device.host, device.link, device.cycle_ps, devices)
    if isinstance(shape, LinearShape):
        return linear_lower_bound(shape, table, costs, since)
    return attention_lower_bound(shape, table, costs)


NARROW = StoredFormats(NumberFormat.MXFP4, NumberFormat.INT4)
PROBLEMS = {
    "llama": {},
    "llama, batch 3": {"batch": 3},
    "mixtral, batch 4": {"family": "mixtral", "batch": 4},
    "int8 and fp8": {"formats": StoredFormats(NumberFormat.INT8, NumberFormat.FP8), "context": 4000},
    "mxfp4 and int4, 3 queries": {"formats": NARROW, "context": 4000, "queries": 3},
}


@pytest.mark.parametrize("settings", PROBLEMS.values(), ids=PROBLEMS)
def test_no_task_of_a_step_beats_the_bound_of_its_device(settings):
    problem = small_problem(**settings)
    designs = stratified(problem, layout_of(problem), np.random.default_rng(7), 60, clean(problem, problem.baselines()))
    for design in designs[:: max(1, len(designs) // 10)]:
        system, schedules = problem.scenario.system(design), problem.space.schedules(design)
        for shape, measured in zip(problem.space.schedulables, problem.evaluate(design).tasks, strict=True):
            bound = bound_of(shape, system.device, system.devices)
            on_units = schedules[shape.name].place is Place.PIM
            own = bound.pim_cycles if on_units else bound.host_cycles
            assert measured.cycles >= own[0], (shape, schedules[shape.name])
            assert measured.cycles >= bound.cycles[0]


def random_device(random: Random) -> Device:
    while True:
        lanes = random.choice((8, 16, 32))
        knobs = replace(
            base_knobs(BASE),
            channels=random.choice((8, 16, 32)),
            banks_per_channel=random.choice((8, 16, 32)),
            row_bytes=random.choice((1024, 2048, 4096)),
            lanes=lanes,
            column_bytes=2 * lanes,
            global_buffer_bytes=random.choice((512, 1024, 2048, 4096)),
        )
        if not impossibilities(BASE, knobs):
            device = scaled_device(BASE, knobs)
            return device.model_copy(update={"refresh": random.choice(REFRESH)})


def random_linear(random: Random) -> LinearShape:
    outputs, inputs = (2 ** random.uniform(low, 12.5) for low in (4, 5))
    return LinearShape("linear", (int(outputs),), int(inputs), random.choice((1, 1, 1, 2, 4, 6)))


def random_schedule(random: Random, shape: LinearShape, system: System) -> LinearSchedule:
    while True:
        schedule = LinearSchedule(
            reduction_split=random.choice((1, 1, 1, 2, 4, 8)),
            segment_columns=random.choice((64, 64, 128, 32, 16, 8)),
            reuse=random.choice([value for value in (1, 2, 3, 4, 6) if shape.vectors % value == 0]),
            registers=random.choice((32, 32, 16, 8)),
            order=random.choice(tuple(LoopOrder)),
            preactivate=random.random() < 0.7,
        )
        if not reasons(shape.name, schedule.place, rules(shape, schedule, system.pool)):
            return schedule


@pytest.mark.parametrize("seed", range(12))
def test_no_linear_operator_alone_beats_the_bound_that_knows_its_refreshes(seed):
    random = Random(seed)
    device = random_device(random)
    simulator, system = StepSimulator(device), System(device, random.choice((1, 1, 2)))
    for _ in range(12):
        shape = random_linear(random)
        schedule = random_schedule(random, shape, system)
        phases = lower_task(shape, {shape.name: schedule}, system)
        cycles = simulator.run(Step((TaskPhases(shape.name, phases),), (0,), ((),))).latency_cycles
        simulator.forget()
        known, unknown = (bound_of(shape, device, system.devices, since).pim_cycles[0] for since in (0, None))
        assert cycles >= known, (shape, schedule)
        assert cycles >= unknown, (shape, schedule)


def test_bounds_of_many_devices_are_those_of_each():
    random = Random(3)
    devices = [random_device(random).model_copy(update={"refresh": Refresh()}) for _ in range(6)]
    table, costs = device_table(devices, 1), SystemCosts(BASE.host, BASE.link, BASE.cycle_ps, 1)
    shape = LinearShape("linear", (3000, 500), 2100, 2)
    attention = AttentionShape("attention", 2, 8, 2, 128, 1000)
    for since in (0, None):
        together = linear_lower_bound(shape, table, costs, since).pim_cycles
        np.testing.assert_allclose(together, [bound_of(shape, item, since=since).pim_cycles[0] for item in devices])
    together = attention_lower_bound(attention, table, costs).cycles
    np.testing.assert_allclose(together, [bound_of(attention, item).cycles[0] for item in devices])


class HandWritten:
    """A program for one channel of the base device, command by command; waits and signals are numbered as they come."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.down: list[int] = []
        self.up: list[int] = []

    def add(self, kind: Kind, **operands: int) -> None:
        self.commands.append(Command(kind, **{name: Affine(value) for name, value in operands.items()}))

    def mode(self) -> None:
        self.add(Kind.TMOD)

    def start(self, registers: Iterable[int]) -> None:
        for register in registers:
            self.add(Kind.WRMAC16, register=register)

    def write(self, columns: Sequence[int], piece: int = 8) -> None:
        """Write input columns to the buffer, each to its number modulo the buffer's size, a piece of them at a time."""
        for start in range(0, len(columns), piece):
            self.add(Kind.WAIT, event=len(self.down))
            part = columns[start : start + piece]
            self.down.append(32 * len(part))
            for column in part:
                self.add(Kind.WRGB, buffer=column % 64, data=column)

    def row(self, row: int, cells: Iterable[tuple[int, int]]) -> None:
        """Multiply the cells (output, column) of an open row."""
        for place, (output, column) in enumerate(cells):
            self.add(Kind.MAC16, row=row, column=place, buffer=column % 64, register=output)

    def switch(self, row: int) -> None:
        self.add(Kind.PREA)
        self.add(Kind.ACT16, row=row)

    def read(self, outputs: Sequence[int]) -> None:
        for output in outputs:
            self.add(Kind.RDMAC16, register=output, data=output)
        self.add(Kind.SIGNAL, event=len(self.up))
        self.up.append(len(outputs) * 16 * 2 * 32)

    def cycles(self, outputs: int, columns: int, device: Device = BASE) -> int:
        """Simulate it, after a look at whether every product is there before its output is read."""
        program = Program(tuple(self.commands))
        buffer: dict[int, int] = {}
        sums: dict[int, set[int]] = {}
        done: dict[int, set[int]] = {}
        for command in walk(program):
            match command.kind:
                case Kind.WRGB:
                    buffer[command.buffer] = command.data
                case Kind.WRMAC16:
                    sums[command.register] = set()
                case Kind.MAC16:
                    assert buffer[command.buffer] not in sums[command.register]
                    sums[command.register].add(buffer[command.buffer])
                case Kind.RDMAC16:
                    done[command.data] = set(sums[command.register])
        assert done == {output: set(range(columns)) for output in range(outputs)}
        phase = PimPhase("hand", "hand", program, tuple(self.down), tuple(self.up), 32)
        return StepSimulator(device).run(Step((TaskPhases("hand", (phase,)),), (0,), ((),))).latency_cycles


def output_rows(outputs: int, columns: int, early: Sequence[int]) -> HandWritten:
    """64 columns of one output in a row; the buffer full at a time; `early` sums are read before the last row."""
    hand = HandWritten()
    rows = [(output, first) for first in range(0, columns, 64) for output in range(outputs)]
    hand.add(Kind.ACT16, row=0)
    hand.mode()
    hand.start(range(outputs))
    for row, (output, first) in enumerate(rows):
        if output == 0:
            hand.write(range(first, first + 64))
            hand.mode()
        hand.row(row, [(output, column) for column in range(first, first + 64)])
        if row + 1 < len(rows):
            hand.switch(row + 1)
        if row + 2 == len(rows):
            hand.mode()
            hand.read(early)
            hand.mode()
        if output == outputs - 1:
            hand.mode()
    hand.read([output for output in range(outputs) if output not in early])
    return hand


def column_rows(outputs: int, columns: int, visits: Sequence[int]) -> HandWritten:
    """Few columns of all outputs in a row; before some rows the buffer takes what fits, with all rows closed."""
    hand = HandWritten()
    in_a_row = 64 // outputs
    hand.add(Kind.ACT16, row=0)
    hand.mode()
    hand.start(range(outputs))
    hand.write(range(64))
    hand.mode()
    written = 64
    for row in range(columns // in_a_row):
        done = row * in_a_row
        if row in visits:
            hand.add(Kind.PREA)
            hand.mode()
            hand.write(range(written, min(done + 64, columns)), piece=64)
            written = min(done + 64, columns)
            hand.mode()
            hand.add(Kind.ACT16, row=row)
        elif row:
            hand.switch(row)
        cells = [(output, column) for output in range(outputs) for column in range(done, done + in_a_row)]
        hand.row(row, cells)
    hand.mode()
    hand.read(range(outputs))
    return hand


@pytest.mark.parametrize(("outputs", "columns"), [(8, 64), (8, 128), (8, 256), (4, 256), (16, 256)])
def test_programs_written_by_hand_come_near_the_bound_and_do_not_beat_it(outputs, columns):
    shape = LinearShape("hand", (512 * outputs,), 16 * columns, 1)
    hand = output_rows(outputs, columns, range(outputs - 1))
    for refresh in (Refresh(policy=RefreshPolicy.NONE), Refresh()):
        device = BASE.model_copy(update={"refresh": refresh})
        cycles, bound = hand.cycles(outputs, columns, device), bound_of(shape, device, since=0).pim_cycles[0]
        assert 0.9 * cycles <= bound <= cycles


def test_programs_that_write_inputs_while_refresh_has_the_rows_closed_do_not_beat_the_bound():
    bound = bound_of(LinearShape("hand", (512 * 16,), 16 * 128, 1), BASE, since=0).pim_cycles[0]
    visits = [(first, second) for first in (12, 13, 14, 15) for second in range(first + 9, first + 17)]
    best = min(column_rows(16, 128, item).cycles(16, 128) for item in visits)
    assert 0.9 * best <= bound <= best


@pytest.mark.parametrize(
    ("outputs", "inputs", "share"),
    [
        (4096, 1024, 0.9),
        (1024, 4096, 0.9),
        (512, 8192, 0.9),
        (4096, 4096, 0.95),
        (16384, 1024, 0.95),
        (8192, 4096, 0.95),
    ],
)
def test_the_best_schedules_of_linear_operators_reach_the_bound(outputs, inputs, share):
    found = best_found(LinearShape("linear", (outputs,), inputs, 1), StepSimulator(BASE), simulated=30)
    assert share <= found.of_bound <= 1
    assert found.of_rows < found.of_bound


def test_the_bound_names_what_binds():
    def binding(outputs: int, inputs: int, gb_per_s: float) -> str:
        link = BASE.link.model_copy(update={"bandwidth_gb_per_s": gb_per_s})
        return bound_of(LinearShape("matrix", (outputs,), inputs, 1), BASE.model_copy(update={"link": link})).binding()

    assert binding(4096, 4096, 63.0) == "channel"
    assert binding(65536, 64, 8.0) == "link up"
    assert binding(16, 65536, 32.0) == "link down"
    assert binding(16, 65536, 1.0) == "place on the host"


@pytest.mark.parametrize(
    ("devices", "link_gb_per_s", "shape", "split"),
    [
        (3, 4.0, ((512,), 98304), 3),
        (5, 8.0, ((64,), 81920), 5),
        (3, 16.0, ((64,), 12288), 3),
        (6, 8.0, ((96,), 9216), 6),
    ],
)
def test_no_split_beats_the_bound_whatever_divides_the_channels(devices, link_gb_per_s, shape, split):
    link = BASE.link.model_copy(update={"bandwidth_gb_per_s": link_gb_per_s})
    device = BASE.model_copy(update={"link": link})
    linear = LinearShape("slow link", *shape, 1)
    simulator, system = StepSimulator(device), System(device, devices)
    for order in LoopOrder:
        for preactivate in (True, False):
            schedule = LinearSchedule(reduction_split=split, order=order, preactivate=preactivate)
            assert not reasons("slow link", Place.PIM, rules(linear, schedule, system.pool))
            phases = lower_task(linear, {"slow link": schedule}, system)
            report = simulator.run(Step((TaskPhases("slow link", phases),), (0,), ((),)))
            assert report.latency_cycles >= bound_of(linear, device, devices, 0).pim_cycles[0]
