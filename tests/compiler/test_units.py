"""What other units change in programs and timing: second row buffers, several vectors a multiply, wide columns."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from compiler.aim.block import placement
from compiler.aim.step_trace import traced_phases
from compiler.attention import AttentionShape
from compiler.attention_lowering import AttentionLowering
from compiler.geometry import vectors_together
from compiler.legality import all_reasons
from compiler.linear import LinearShape
from compiler.lowering import System, embedding_phase, lower_task
from compiler.patch.program import edits_between, patch_programs
from compiler.schedule import AttentionSchedule, LinearSchedule, LoopOrder, Schedule, pool_shape
from compiler.workload import EmbeddingShape
from configs.device import Device
from configs.errors import UserError
from configs.number_format import NumberFormat
from configs.refresh import Refresh, RefreshPolicy
from simulator.channel import NO_EVENTS, IllegalProgram, fresh_state
from simulator.engine import Engine
from simulator.isa import Affine, Command, Kind, Program, walk
from simulator.program_code import flatten
from simulator.reference_engine import LogEntry, run_reference
from simulator.step import PimPhase, Step, TaskPhases
from simulator.timeline import StepSimulator
from tests.unit_devices import BASE, unit_device

LATCHED = unit_device(2, refresh=Refresh(policy=RefreshPolicy.NONE))
SHAPE = LinearShape("linear", (512 * 16,), 1024, 1)


def program_of(shape: LinearShape | AttentionShape, schedule: Schedule, device: Device) -> Program:
    phase = next(item for item in lower_task(shape, {shape.name: schedule}, System(device, 1)) if _is_pim(item))
    assert isinstance(phase, PimPhase)
    return phase.program


def _is_pim(phase: object) -> bool:
    return isinstance(phase, PimPhase)


def kinds_of(program: Program) -> Counter[Kind]:
    return Counter(command.kind for command in walk(program))


def logged(program: Program, device: Device) -> list[LogEntry]:
    log: list[LogEntry] = []
    events = np.zeros(1000, dtype=np.int64)
    run_reference(program, device, fresh_state(device), events, log)
    return log


def test_a_latched_row_takes_its_multiplies_and_one_latch_in_steady_state() -> None:
    log = logged(program_of(SHAPE, LinearSchedule(), LATCHED), LATCHED)
    latches = [entry.cycle for entry in log if entry.kind is Kind.LATCH16]
    assert len(latches) == 16
    # Before the last rows, sums are read.
    assert [after - before for before, after in pairwise(latches[:12])] == [64 * 2 + 8] * 11


def test_rows_are_opened_in_the_middle_of_the_multiplies_before() -> None:
    log = logged(program_of(SHAPE, LinearSchedule(), LATCHED), LATCHED)
    order = [entry.kind for entry in log if entry.kind in (Kind.ACT16, Kind.LATCH16, Kind.MACL16)]
    first = order.index(Kind.LATCH16)
    visit = [Kind.LATCH16, *[Kind.MACL16] * 32, Kind.ACT16, *[Kind.MACL16] * 32]
    assert order[first : first + 2 * len(visit)] == 2 * visit


@pytest.mark.parametrize("preactivate", [True, False])
@pytest.mark.parametrize("order", LoopOrder)
def test_every_row_is_opened_and_latched_once_and_none_is_left_open(order: LoopOrder, preactivate: bool) -> None:
    shape = replace(SHAPE, inputs=2000, vectors=2)
    schedule = LinearSchedule(segment_columns=16, reuse=2, registers=8, order=order, preactivate=preactivate)
    found = kinds_of(program_of(shape, schedule, LATCHED))
    plain = kinds_of(program_of(shape, schedule, BASE))
    assert found[Kind.LATCH16] == found[Kind.ACT16] == plain[Kind.ACT16]
    assert found[Kind.MACL16] == plain[Kind.MAC16]
    assert not found[Kind.MAC16] + found[Kind.PREA]


def test_a_latched_operator_is_faster_and_never_slower_than_an_open_one() -> None:
    for columns, preactivate in ((64, True), (64, False), (8, True)):
        schedule = LinearSchedule(segment_columns=columns, preactivate=preactivate)
        latched, plain = (latency(SHAPE, schedule, device) for device in (unit_device(2), BASE))
        assert latched < plain


def latency(shape: LinearShape, schedule: LinearSchedule, device: Device) -> int:
    phases = lower_task(shape, {shape.name: schedule}, System(device, 1))
    return StepSimulator(device).run(Step((TaskPhases(shape.name, phases),), (0,), ((),))).latency_cycles


@pytest.mark.parametrize("row_buffers", [1, 2])
def test_four_vectors_a_multiply_take_a_quarter_of_the_multiplies(row_buffers: int) -> None:
    shape, schedule = replace(SHAPE, vectors=4), LinearSchedule(segment_columns=16, reuse=4)
    kind = Kind.MACL16 if row_buffers == 2 else Kind.MAC16
    one, four = (program_of(shape, schedule, unit_device(row_buffers, vectors)) for vectors in (1, 4))
    assert (one.vectors_per_multiply, four.vectors_per_multiply) == (1, 4)
    assert kinds_of(one)[kind] == 4 * kinds_of(four)[kind]
    assert {command.data for command in walk(four) if command.kind is kind} == {16}
    others = [{name: count for name, count in kinds_of(item).items() if name is not kind} for item in (one, four)]
    assert others[0] == others[1]


def test_a_multiply_serves_the_most_vectors_that_divide_the_reuse() -> None:
    found = {(reuse, most): int(vectors_together(reuse, most)) for reuse in (1, 3, 4, 6, 8) for most in (1, 2, 4, 8)}
    assert all(reuse % together == 0 and together <= most for (reuse, most), together in found.items())
    assert (found[4, 8], found[6, 4], found[3, 2], found[8, 4]) == (4, 3, 1, 4)


def test_a_column_of_several_accesses_makes_rows_no_shorter() -> None:
    narrow, wide = pool_shape(BASE, 1), pool_shape(unit_device(column_accesses=4), 1)
    assert (wide.columns, wide.column_accesses, wide.buffer_columns) == (16, 4, narrow.buffer_columns)
    program = program_of(SHAPE, LinearSchedule(), unit_device(column_accesses=4))
    assert program.accesses_per_column == 4
    assert program.body == program_of(SHAPE, LinearSchedule(), BASE).body


def test_keys_and_embeddings_move_whole_wide_columns() -> None:
    device = unit_device(column_accesses=4)
    shape = AttentionShape("attention", 1, 4, 4, 128, 100)
    schedule = AttentionSchedule(context_segment_columns=8)
    append = next(item for item in _attention_phases(shape, schedule, device) if item.name.endswith("k append"))
    assert kinds_of(append.program)[Kind.WR] == 2
    system = System(device, 1)
    phase = embedding_phase(EmbeddingShape("embedding", 1000, 4096, 1), system)
    assert kinds_of(phase.program)[Kind.RD] == 2
    assert phase.up_bytes == (4096 * 2,)


def _attention_phases(shape: AttentionShape, schedule: AttentionSchedule, device: Device) -> list[PimPhase]:
    system = System(device, 1)
    lowering = AttentionLowering(shape, schedule, system.pool, 1, system.host)
    return [phase for phase in lowering.append_phases() if isinstance(phase, PimPhase)]


def test_scales_in_rows_and_kernels_of_open_rows_are_illegal_with_second_row_buffers() -> None:
    pool = pool_shape(LATCHED, 1)
    scaled = replace(SHAPE, weights=NumberFormat.MXFP4)
    assert all_reasons(scaled, LinearSchedule(), pool) == (
        "linear: its scales lie in rows, and units that multiply from second row buffers take none from there",
    )
    by_hand = LinearSchedule(kernel="cent", order=LoopOrder.SPILL, preactivate=False)
    assert all_reasons(SHAPE, by_hand, pool) == (
        "linear: it multiplies from open rows, and units from second row buffers",
    )
    assert not all_reasons(SHAPE, by_hand, pool_shape(BASE, 1))
    assert not all_reasons(SHAPE, LinearSchedule(), pool)


@pytest.mark.parametrize(
    ("device", "kind"), [(BASE, Kind.LATCH16), (BASE, Kind.MACL16), (LATCHED, Kind.MAC16), (LATCHED, Kind.SCALE16)]
)
def test_units_multiply_from_one_place_only(device: Device, kind: Kind) -> None:
    program = Program((Command(Kind.ACT16), Command(kind)))
    with pytest.raises(IllegalProgram, match=f"found {kind}"):
        run_reference(program, device, fresh_state(device), NO_EVENTS)
    with pytest.raises(IllegalProgram, match=f"found {kind}"):
        Engine(device).run(flatten(program), fresh_state(device), NO_EVENTS)


@pytest.mark.parametrize(
    ("device", "found"),
    [
        (unit_device(2), "second row buffers"),
        (unit_device(vectors=2), "2 at a time"),
        (unit_device(column_accesses=2), "2 multiplies of a column"),
    ],
)
def test_aim_traces_of_other_units_are_refused(device: Device, found: str) -> None:
    phases = lower_task(
        replace(SHAPE, vectors=2), {"linear": LinearSchedule(reuse=2, segment_columns=16)}, System(device, 1)
    )
    with pytest.raises(UserError, match=found):
        list(traced_phases((TaskPhases("linear", phases),), 32))
    with pytest.raises(UserError, match="as AiM instructions have it"):
        placement(device, 8)


def test_a_patch_replaces_programs_whose_multiplies_serve_other_vectors() -> None:
    body = (Command(Kind.MAC16, row=Affine(1)),)
    old, new = ({"score": Program(body, vectors_per_multiply=count)} for count in (1, 2))
    assert patch_programs(old, edits_between(old, new)) == new
