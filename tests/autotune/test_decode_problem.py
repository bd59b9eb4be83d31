"""The product's search problem: baselines, legality with reasons, canonical forms, exact and repeatable evaluation."""

import numpy as np
import pytest

from autotune.layout import layout_of
from autotune.run_settings import parse_restrictions
from autotune.scenario import make_scenario
from compiler.memory.capacity import stored_bytes
from compiler.schedule import LinearSchedule, Place
from configs.device import load_device
from configs.errors import UserError
from tests.small_workloads import small_problem, small_workload

PROBLEM = small_problem()


def _uniform(count, seed=0):
    rng = np.random.default_rng(seed)
    sizes = layout_of(PROBLEM).sizes
    return rng.integers(0, sizes, size=(count, len(sizes)))


def test_hand_mapping_is_the_first_baseline_and_legal():
    baselines = PROBLEM.baselines()
    schedule = PROBLEM.space.schedules(baselines[0])["gate_up_proj"]
    assert isinstance(schedule, LinearSchedule)
    assert not schedule.merged
    assert not schedule.preactivate
    assert PROBLEM.legal(baselines).all()


def test_overlapped_mapping_is_faster_than_the_hand_mapping():
    hand, overlapped = (PROBLEM.evaluate(codes) for codes in PROBLEM.baselines()[:2])
    assert overlapped.latency_ns < hand.latency_ns


def test_a_design_is_illegal_exactly_when_it_has_reasons():
    designs = _uniform(400)
    legal = PROBLEM.legal(designs)
    assert 0 < legal.sum() < len(designs)
    for design, fine in zip(designs, legal, strict=True):
        assert bool(PROBLEM.reasons(design)) != fine


def test_reasons_name_task_and_amounts():
    texts = {reason for design in _uniform(300) for reason in PROBLEM.reasons(design)}
    assert any("global buffer, the device has" in text and text.split(":")[0].endswith("_proj") for text in texts)


def test_canonical_designs_are_stable_and_cost_the_same():
    designs = _uniform(2000, seed=2)
    designs = designs[PROBLEM.legal(designs)]
    canonical = PROBLEM.canonical(designs)
    changed = (canonical != designs).any(axis=1)
    assert (PROBLEM.canonical(canonical) == canonical).all()
    for before, after in zip(designs[changed][:15], canonical[changed][:15], strict=True):
        assert PROBLEM.evaluate(before).metrics == PROBLEM.evaluate(after).metrics


def test_evaluating_twice_gives_the_same_figures():
    design = PROBLEM.baselines()[1]
    assert PROBLEM.evaluate(design) == small_problem().evaluate(design)


def test_schedule_on_the_host_moves_time_from_channel_to_host():
    design = PROBLEM.baselines()[1].copy()
    column = next(i for i in PROBLEM.space.columns("lm_head") if PROBLEM.knobs[i].name == "place")
    design[column] = PROBLEM.knobs[column].values.index(str(Place.HOST))
    host, units = PROBLEM.evaluate(design), PROBLEM.evaluate(PROBLEM.baselines()[1])
    assert dict(host.details)["host_busy_share"] > dict(units.details)["host_busy_share"]
    assert dict(host.details)["rows_used_per_bank"] < dict(units.details)["rows_used_per_bank"]


def test_every_detail_has_its_unit_in_its_name_or_is_a_count():
    counts = ("rows_used_per_bank", "rows_available_per_bank", "refreshes_per_channel", "commands_simulated")
    dimensionless = ("mac_duty", "_share", "_factor", "instructions_per_token", "program_instructions_stored")
    for name, _ in PROBLEM.evaluate(PROBLEM.baselines()[0]).details:
        units = ("_pj", "_w", "_ns", "_mm2", "tokens_per_s", "bytes_per_device", "bytes_per_token")
        assert name in counts or name.endswith((*units, *dimensionless)), name


def test_batch_of_experts_reports_the_spread_of_routing():
    evaluation = small_problem("mixtral", 4).evaluate(small_problem("mixtral", 4).baselines()[0])
    details = dict(evaluation.details)
    assert details["latency_slowest_routing_ns"] >= evaluation.latency_ns
    assert details["latency_skewed_routing_ns"] > 0


def test_restrictions_fix_and_range_knobs():
    parsed = parse_restrictions(("channels=16..32", "*.order=reload", "o_proj.registers=8,16"), PROBLEM.knobs)
    assert parsed == {"channels": (16, 32), "*.order": ("reload",), "o_proj.registers": (8, 16)}


@pytest.mark.parametrize("text", ["chanels=32", "channels", "channels=7", "channels=a..b", "*.order=fast"])
def test_bad_restriction_is_a_users_mistake(text):
    with pytest.raises(UserError, match="--set"):
        parse_restrictions((text,), PROBLEM.knobs)


def test_scenario_that_does_not_fit_is_refused_with_amounts():
    base = load_device("gddr6-aim")
    small = base.model_copy(update={"organisation": base.organisation.model_copy(update={"rows": 1})})
    with pytest.raises(UserError, match=r"GiB.*--devices \d+ or --devices auto"):
        make_scenario(small_workload(), small, devices=1)


def test_automatic_device_count_makes_room():
    base = load_device("gddr6-aim")
    small = base.model_copy(update={"organisation": base.organisation.model_copy(update={"rows": 1})})
    fixed = {"row_bytes": (2048,), "channels": (32,), "banks_per_channel": (16,)}
    scenario = make_scenario(small_workload(), small, devices=None, restrictions=fixed)
    assert scenario.devices * small.organisation.capacity_bytes >= stored_bytes(scenario.workload)
    assert (scenario.devices - 1) * small.organisation.capacity_bytes < stored_bytes(scenario.workload)
