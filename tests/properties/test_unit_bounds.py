"""Closed forms, and the bound over all schedules, on devices with other units: bounds hold and counts are exact."""

from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest

from compiler.attention import AttentionShape
from compiler.closed_form import SystemCosts, TaskForm, attention_form, linear_form
from compiler.device_table import DeviceTable, device_table
from compiler.legality import reasons, rules
from compiler.linear import LinearShape
from compiler.lower_bound import attention_lower_bound, linear_lower_bound
from compiler.lowering import System, lower_task
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder, Schedule
from configs.number_format import NumberFormat
from simulator.isa import CODE_OF, Affine, Command, Kind, Program
from simulator.step import PimPhase, Step, TaskPhases
from simulator.timeline import StepReport, StepSimulator
from tests.unit_devices import REFRESH, random_unit_device, unit_device

DEVICES, TASKS_PER_DEVICE = 30, 8
Shape = LinearShape | AttentionShape


def costs_of(system: System) -> SystemCosts:
    device = system.device
    assert device.link is not None
    return SystemCosts(system.host, device.link, device.cycle_ps, system.devices)


def random_task(random: Random, system: System) -> tuple[Shape, Schedule]:
    while True:
        shape, schedule = (random_linear if random.random() < 0.7 else random_attention)(random)
        if not reasons("task", schedule.place, rules(shape, schedule, system.pool)):
            return shape, schedule


def random_linear(random: Random) -> tuple[LinearShape, LinearSchedule]:
    outputs, inputs = (int(2 ** random.uniform(low, 12.5)) for low in (4, 5))
    vectors = random.choice((1, 1, 2, 4, 6, 8))
    stored = random.choice((NumberFormat.BF16, NumberFormat.BF16, NumberFormat.INT8, NumberFormat.MXFP4))
    schedule = LinearSchedule(
        reduction_split=random.choice((1, 1, 1, 2, 4, 8)),
        segment_columns=random.choice((64, 64, 128, 32, 16, 8, 4)),
        reuse=random.choice([value for value in (1, 2, 3, 4, 6, 8) if vectors % value == 0]),
        registers=random.choice((32, 32, 16, 8)),
        order=random.choice(tuple(LoopOrder)),
        preactivate=random.random() < 0.6,
    )
    return LinearShape("task", (outputs,), inputs, vectors, weights=stored), schedule


def random_attention(random: Random) -> tuple[AttentionShape, AttentionSchedule]:
    group, heads = random.choice((1, 2, 4)), random.choice((1, 2, 8))
    schedule = AttentionSchedule(
        token_split=random.choice((1, 2, 4, 8)),
        token_blocks=random.choice((1, 1, 2, 4)),
        score_reuse=random.choice((1, 2, 4)),
        context_segment_columns=random.choice((4, 8, 16, 32)),
        context_reuse=random.choice((1, 2, 4)),
        registers=random.choice((8, 16, 32)),
        preactivate=random.random() < 0.6,
    )
    cache = random.choice((NumberFormat.BF16, NumberFormat.INT8, NumberFormat.FP8))
    tokens = random.randint(5, 3000)
    return AttentionShape("task", 1, group * heads, heads, random.choice((64, 80, 128)), tokens, cache=cache), schedule


def simulated(shape: Shape, schedule: Schedule, system: System, simulator: StepSimulator) -> StepReport:
    phases = lower_task(shape, {"task": schedule}, system)
    report = simulator.run(Step((TaskPhases("task", phases),), (0,), ((),)))
    simulator.forget()
    return report


def form_of(shape: Shape, schedule: Schedule, table: DeviceTable, costs: SystemCosts) -> TaskForm:
    knobs = [item.name for item in fields(schedule) if item.name != "kernel"]
    arrays = replace(schedule, **{name: np.array([getattr(schedule, name)]) for name in knobs})
    if isinstance(shape, LinearShape):
        assert isinstance(arrays, LinearSchedule)
        return linear_form(shape, arrays, table, costs)
    assert isinstance(arrays, AttentionSchedule)
    return attention_form(shape, arrays, table, costs)


@pytest.mark.parametrize("seed", range(DEVICES))
def test_no_schedule_on_any_unit_beats_a_bound_and_its_counts_are_exact(seed: int) -> None:
    random = Random(seed)
    device = random_unit_device(random)
    system, simulator = System(device, random.choice((1, 1, 2))), StepSimulator(device)
    table, costs = device_table((device,), system.devices), costs_of(system)
    for _ in range(TASKS_PER_DEVICE):
        shape, schedule = random_task(random, system)
        report, form = simulated(shape, schedule, system, simulator), form_of(shape, schedule, table, costs)
        assert report.latency_cycles >= form.bound[0], (shape, schedule)
        if isinstance(shape, LinearShape):
            bounds = [linear_lower_bound(shape, table, costs, since) for since in (0, None)]
        else:
            bounds = [attention_lower_bound(shape, table, costs)]
        assert all(report.latency_cycles >= bound.pim_cycles[0] for bound in bounds), (shape, schedule)
        kinds = {Kind.LATCH16, Kind.MACL16, Kind.MAC16, Kind.SCALE16, Kind.WRGB, Kind.WRMAC16, Kind.RDMAC16, Kind.TMOD}
        if isinstance(shape, LinearShape):
            # Refreshes close rows and open them again.
            kinds |= set() if device.refresh else {Kind.ACT16, Kind.PREA}
            for kind in kinds:
                assert report.counts[CODE_OF[kind]] == pytest.approx(form.commands[0, CODE_OF[kind]], rel=1e-9), kind


def test_rows_of_slow_units_count_no_more_than_they_take_on_the_way_to_the_first_signal() -> None:
    """Behind a slow link the bound is the way to the first results, then the link's time of all of them."""
    device = unit_device(nCCDMAC=182)
    assert device.link is not None
    device = device.model_copy(update={"link": device.link.model_copy(update={"bandwidth_gb_per_s": 2.0})})
    system = System(device, 1)
    outputs = 5 * device.organisation.banks * device.organisation.channels
    shape, schedule = LinearShape("task", (outputs,), 256, 1), LinearSchedule(registers=32, segment_columns=16)
    report = simulated(shape, schedule, system, StepSimulator(device))
    bound = form_of(shape, schedule, device_table((device,), 1), costs_of(system)).bound[0]
    assert 0.98 * report.latency_cycles <= bound <= report.latency_cycles


def test_forms_of_many_devices_are_those_of_each() -> None:
    random = Random(4)
    devices = [random_unit_device(random).model_copy(update={"refresh": REFRESH[0]}) for _ in range(8)]
    assert len({device.organisation.row_buffers for device in devices}) == 2
    linear = LinearShape("task", (3000,), 2100, 4), LinearSchedule(reuse=4, registers=8, segment_columns=8)
    attention = AttentionShape("task", 2, 8, 2, 128, 1000), AttentionSchedule(score_reuse=2, context_segment_columns=8)
    system = System(devices[0], 1)
    costs, table = costs_of(system), device_table(devices, 1)
    for shape, schedule in (linear, attention):
        knobs = [item.name for item in fields(schedule) if item.name != "kernel"]
        arrays = {name: np.full(len(devices), getattr(schedule, name)) for name in knobs}
        form = linear_form if isinstance(shape, LinearShape) else attention_form
        bound = linear_lower_bound if isinstance(shape, LinearShape) else attention_lower_bound
        together = form(shape, replace(schedule, **arrays), table, costs)
        lowest = bound(shape, table, costs).pim_cycles
        for index, device in enumerate(devices):
            alone = form_of(shape, schedule, device_table((device,), 1), costs)
            assert together.bound[index] == alone.bound[0]
            np.testing.assert_array_equal(together.commands[index], alone.commands[0])
            assert lowest[index] == pytest.approx(bound(shape, device_table((device,), 1), costs).pim_cycles[0])


@pytest.mark.parametrize(("row_buffers", "share"), [(1, 0.95), (2, 0.93)])
def test_closed_forms_come_near_what_long_kernels_take(row_buffers: int, share: float) -> None:
    device = unit_device(row_buffers)
    system, simulator = System(device, 1), StepSimulator(device)
    shape, schedule = LinearShape("task", (4096,), 4096, 1), LinearSchedule()
    cycles = simulated(shape, schedule, system, simulator).latency_cycles
    form = form_of(shape, schedule, device_table((device,), 1), costs_of(system))
    assert share * cycles <= form.bound[0] <= cycles


def latched_rows(outputs: int, columns: int) -> tuple[Command, ...]:
    """Return the shortest program for 64 columns of an output in a row, all inputs in the buffer for one output."""
    commands: list[Command] = [Command(Kind.ACT16), Command(Kind.TMOD)]
    rows = [(output, first) for first in range(0, columns, 64) for output in range(outputs)]
    commands += [Command(Kind.WRMAC16, register=Affine(register)) for register in range(outputs)]
    for number, (output, first) in enumerate(rows):
        row = Affine(number)
        if output == 0:
            commands += [] if first == 0 else [Command(Kind.TMOD)]
            commands += [Command(Kind.WRGB, buffer=Affine(place), data=Affine(first + place)) for place in range(64)]
            commands.append(Command(Kind.TMOD))
        commands.append(Command(Kind.LATCH16, row=row))
        for place in range(64):
            operands = {"column": Affine(place), "buffer": Affine(place), "register": Affine(output)}
            commands.append(Command(Kind.MACL16, row=row, **operands))
            if place == 20 and number + 1 < len(rows):
                commands.append(Command(Kind.ACT16, row=row.plus(1)))
    reads = [Command(Kind.RDMAC16, register=Affine(output), data=Affine(output)) for output in range(outputs)]
    return (*commands, Command(Kind.TMOD), *reads, Command(Kind.SIGNAL), Command(Kind.TMOD))


@pytest.mark.parametrize("refresh", REFRESH, ids=["all banks", "none", "hot", "postponed"])
@pytest.mark.parametrize(("outputs", "columns"), [(8, 64), (8, 256), (4, 256), (32, 128)])
def test_latched_rows_by_hand_come_near_the_bound_and_do_not_beat_it(
    outputs: int, columns: int, refresh: object
) -> None:
    device = unit_device(2).model_copy(update={"refresh": refresh})
    program = Program(latched_rows(outputs, columns))
    phase = PimPhase("task", "task", program, (), (outputs * 16 * 2 * 32,), 32)
    cycles = StepSimulator(device).run(Step((TaskPhases("task", (phase,)),), (0,), ((),))).latency_cycles
    shape, system = LinearShape("task", (512 * outputs,), 16 * columns, 1), System(device, 1)
    bound = linear_lower_bound(shape, device_table((device,), 1), costs_of(system), 0)
    # No input has to be waited for: the way of the first one over the link is not part of these cycles.
    link = costs_of(system)
    assert bound.pim_cycles[0] - link.latency - link.transfer(32) <= cycles
    assert bound.pim_cycles[0] >= 0.75 * cycles
