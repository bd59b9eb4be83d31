"""HBM-PIM under the commands: tables that programs cannot run on are refused, mappings are legal and in the space."""

import pytest

from autotune.decode_problem import DecodeProblem
from autotune.hand_mapping import HAND_MAPPINGS
from autotune.scenario import complete_device, make_scenario, require_formats, require_programs
from autotune.tuning import tuned_mapping
from compiler.attention import AttentionShape
from compiler.legality import all_reasons
from compiler.lowering import System, lower_task
from compiler.schedule import Place
from compiler.workload import StoredFormats
from configs.device import load_device
from configs.errors import UserError
from configs.knobs import base_knobs
from configs.number_format import NumberFormat
from simulator.step import Step, TaskPhases
from simulator.timeline import StepSimulator
from tests.engine_devices import changed
from tests.small_workloads import small_workload

DEVICE = load_device("hbm-pim")
SMALL = {"channels": 4, "rows": 2048}


def _without(device, kind):
    """Return the device with no row of a kind."""
    kept = tuple(row for row in device.constraints if kind not in (*row.preceding, *row.following))
    return device.model_copy(update={"constraints": kept})


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (changed(DEVICE, {}, {"ranks": 2}), "2 parts of a channel that PREA closes one by one"),
        (changed(DEVICE, {}, {"pseudo_channels": 4}), "4 parts of a channel"),
        (_without(DEVICE, "ST8"), "ST8 among the constraints"),
        (changed(DEVICE, {"nREFI": 460}, {}), "a refresh every 460 cycles that takes 460 with its rows"),
    ],
)
def test_tables_that_no_program_can_run_on_are_refused_with_amounts(device, expected):
    with pytest.raises(UserError) as raised:
        require_programs(device)
    assert expected in str(raised.value)
    assert "configs/hardware/hbm-pim.yaml" in str(raised.value)


def test_a_format_that_no_unit_with_microkernels_can_have_is_not_to_be_added():
    narrow = small_workload(formats=StoredFormats(NumberFormat.INT8))
    with pytest.raises(UserError, match=r"expected int8.*; give another format with --weights or --kv$"):
        require_formats(narrow, DEVICE)


@pytest.mark.parametrize("mapping", HAND_MAPPINGS)
def test_programs_run_where_refreshes_leave_just_enough_room(mapping):
    device = changed(DEVICE, {"nREFI": 461}, SMALL)
    require_programs(device)
    system, shapes = System(device, 1), small_workload().schedulables
    for shape in shapes:
        phases = lower_task(shape, HAND_MAPPINGS[mapping](shapes, system), system)
        step = Step((TaskPhases(shape.name, phases),), (0,), ((),))
        assert StepSimulator(device).run(step).latency_cycles > 0


@pytest.mark.parametrize(
    ("name", "expected"), [("hbm-pim-compat", "hbm-pim"), ("hbm-pim", "hbm-pim"), ("hbm2", "gddr6-aim")]
)
def test_a_device_that_lacks_nothing_is_told_by_family(name, expected):
    assert complete_device(load_device(name)) == expected


@pytest.mark.parametrize("mapping", HAND_MAPPINGS)
@pytest.mark.parametrize("head_dim", [16, 64, 128])
def test_hand_written_attention_is_legal_whatever_room_short_keys_leave(mapping, head_dim):
    system = System(DEVICE, 1)
    shape = AttentionShape("attention", 1, 8, 2, head_dim, 700)
    schedule = HAND_MAPPINGS[mapping]([shape], system)["attention"]
    assert all_reasons(shape, schedule, system.pool) == ()


def test_tuned_schedules_lie_in_the_space_those_of_the_host_too():
    device = changed(DEVICE, {}, SMALL)
    problem = DecodeProblem(make_scenario(small_workload(), device, devices=1))
    tuned = tuned_mapping(problem.space.schedulables, System(device, 1))
    assert any(schedule.place is Place.HOST for schedule in tuned.values())
    assert problem.space.encode(base_knobs(device), tuned) is not None
