"""The memory plan of large models: where everything is, how caches grow, what still fits, how long loading takes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from autotune.hand_mapping import hand_mapping, overlapped_mapping
from compiler.attention import AttentionShape
from compiler.attention_lowering import AttentionLowering
from compiler.frontend import import_model
from compiler.linear import LinearShape, linear_phases
from compiler.lowering import System
from compiler.memory.cache import with_room
from compiler.memory.capacity import capacity_plan
from compiler.memory.check import verify_plan
from compiler.memory.loading import row_writes
from compiler.memory.plan import Held, MemoryPlan, Place, home, page_rows
from compiler.memory.planner import plan_of
from compiler.memory.rooms import CACHES, Tensor, attention_rooms
from compiler.memory.text import parse_plan, print_plan
from compiler.passes import run_passes
from compiler.schedule import AttentionSchedule
from compiler.schedule import Place as Processor
from compiler.tasks import tasks_of
from compiler.workload import Workload, workload_of
from configs.device import load_device
from configs.errors import UserError
from configs.model_config import load_model_config
from simulator.engine import Engine
from simulator.isa import ACTIVATES, Kind, Program, command_count, walk
from simulator.program_code import flatten
from simulator.reference_engine import run_reference
from tests.small_workloads import small_workload
from tests.tiny_models import built_in_graph

AIM = load_device("gddr6-aim")
# Devices and layers: a whole model, and the first layers of two that need several devices.
WHOLE = {"llama-3.1-8b": (1, 32), "mixtral-8x7b": (2, 8), "llama-3.1-70b": (4, 20)}


@cache
def whole(name: str) -> tuple[Workload, System, dict, MemoryPlan]:
    devices, layers = WHOLE[name]
    model = replace(load_model_config(name), layers=layers)
    graph = built_in_graph(name) if layers == 32 else import_model(model, 1, 4096)
    workload = workload_of(tasks_of(run_passes(graph)), name, 1, 4096)
    system = System(AIM, devices)
    schedules = overlapped_mapping(workload.schedulables, system)
    return workload, system, schedules, plan_of(workload, schedules, system, model=model)


LONG = 5000


@cache
def small(batch: int = 1, mapping=overlapped_mapping) -> tuple[Workload, System, dict, MemoryPlan]:
    """Two channels share a KV head, so that several pages lie between the context and the longest."""
    workload, system = small_workload(batch=batch), System(AIM, 1)
    schedules = mapping(workload.schedulables, system)
    schedules["attention"] = replace(schedules["attention"], token_split=2)
    return workload, system, schedules, plan_of(workload, schedules, system, LONG)


def attention_of(workload: Workload) -> AttentionShape:
    return next(shape for shape in workload.schedulables if isinstance(shape, AttentionShape))


def region(plan: MemoryPlan, name: str):
    return next(item for item in plan.regions if item.name == name)


@pytest.mark.parametrize("name", WHOLE)
def test_every_tensor_of_a_whole_model_has_rows_of_its_own(name):
    _, system, _, plan = whole(name)
    verify_plan(plan)
    assert len({item.name for item in plan.regions}) == len(plan.regions)
    taken = np.zeros(system.pool.rows, dtype=int)
    for item in plan.regions:
        taken[item.first_row : item.end_row] += 1
    assert taken.max() == 1
    assert taken.sum() == plan.rows_used


@pytest.mark.parametrize("name", WHOLE)
def test_without_growth_the_rows_are_those_of_the_capacity_plan(name):
    workload, system, schedules, _ = whole(name)
    plan = plan_of(workload, schedules, system, workload.context)
    capacity = capacity_plan(workload, schedules, system)
    assert plan.rows_used == capacity.rows_needed
    for kind in capacity.regions:
        own = [item for item in plan.regions if item.operator == kind.name]
        assert sum(item.room.rows for item in own) == kind.copies * kind.rows
        assert sum(item.room.size.stored for item in own) == kind.copies * kind.tensor_bytes


def test_llama_at_4096_tokens_is_what_arithmetic_says():
    plan = whole("llama-3.1-8b")[-1]
    assert plan.growth_bytes_per_token == 2 * 32 * 8 * 128 * 2
    assert plan.growth_rows_per_token == 32 * (1 / 512 + 2 / 1024)
    assert (plan.scenario.maximum_context, plan.scenario.largest_context, plan.scenario.largest_batch) == (
        8192,
        8192,
        2,
    )
    assert (plan.rows_used, plan.rows_free) == (16342, 42)
    # Four matrices a layer, K and V, the head and the embedding table.
    assert len(plan.regions) == 32 * 6 + 2


def test_each_expert_of_each_layer_has_a_region():
    plan = whole("mixtral-8x7b")[-1]
    copies = [item.copy for item in plan.regions if item.operator == "experts_down"]
    assert copies == [(layer, expert) for layer in range(8) for expert in range(8)]


def test_channels_of_a_pool_are_channels_of_all_devices():
    plan = whole("llama-3.1-70b")[-1]
    for item in (region(plan, "o_proj[3].weight"), region(plan, "attention[3].key")):
        homes = {home(plan, item, channel) for channel in range(plan.system.pool_channels)}
        assert homes == {(device, channel) for device in range(4) for channel in range(32)}


@pytest.mark.parametrize("name", WHOLE)
def test_the_largest_context_fits_and_one_token_more_does_not(name):
    workload, system, schedules, plan = whole(name)
    largest = plan.scenario.largest_context
    plan_of(workload, schedules, system, largest)
    with pytest.raises(UserError, match=f"{largest} tokens fit"):
        plan_of(workload, schedules, system, largest + 1)


def test_the_largest_batch_fits_and_one_sequence_more_does_not():
    workload, system, schedules, plan = small(mapping=hand_mapping)
    largest = plan.scenario.largest_batch
    for batch, fits in ((largest, True), (largest + 1, False)):
        shapes = tuple(
            replace(shape, batch=batch) if isinstance(shape, AttentionShape) else shape for shape in workload.shapes
        )
        assert capacity_plan(replace(workload, shapes=shapes), schedules, system).fits is fits


def test_a_context_shorter_than_the_present_one_is_refused():
    workload, system, schedules, _ = small()
    with pytest.raises(UserError, match="at least the context of 700 tokens"):
        plan_of(workload, schedules, system, 699)


def test_a_design_without_room_is_told_how_many_rows_it_needs():
    workload, _, schedules, _ = small()
    tight = AIM.model_copy(update={"organisation": AIM.organisation.model_copy(update={"rows": 20})})
    with pytest.raises(UserError, match=r"20 rows of every bank to be enough for 700 tokens, found .* needed"):
        plan_of(workload, schedules, System(tight, 1))


def test_a_sliding_window_does_not_grow():
    config = load_model_config("mistral-7b")
    workload, system, schedules, _ = small()
    plan = plan_of(workload, schedules, system, model=replace(config, sliding_window=700))
    assert plan.scenario.largest_context is None
    assert plan.scenario.maximum_context == config.maximum_context
    assert {pages.used for pages in plan.pages} == {pages.reserved for pages in plan.pages}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("mapping", [hand_mapping, overlapped_mapping])
def test_programs_open_rows_of_their_own_regions_only(batch, mapping):
    workload, system, schedules, plan = small(batch, mapping)
    shape = replace(attention_of(workload), tokens=LONG, capacity=LONG)
    key, value = region(plan, "attention[1].key"), region(plan, "attention[1].value")
    schedule = schedules[shape.name]
    lowering = AttentionLowering(shape, schedule, system.pool, 1, system.host, key.first_row)
    programs = (lowering.key_append(), lowering.score_program(), lowering.value_append(), lowering.context_program())
    for program, own in zip(programs, (key, key, value, value), strict=True):
        rows = {issued.row for issued in walk(program) if issued.kind in ACTIVATES}
        assert rows <= set(range(own.first_row, own.end_row))
    for linear in (item for item in workload.schedulables if isinstance(item, LinearShape)):
        own = [item for item in plan.regions if item.operator == linear.name and item.copy == (0,)]
        phases = linear_phases(linear, schedules[linear.name], system.pool, 1, system.host, own[0].first_row)
        opened = [{i.row for i in walk(phase.program) if i.kind in ACTIVATES} for phase in phases]
        assert opened == [set(range(item.first_row, item.end_row)) for item in own]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("mapping", [hand_mapping, overlapped_mapping])
def test_the_first_token_of_a_page_is_written_into_the_page(batch, mapping):
    workload, system, schedules, plan = small(batch, mapping)
    shape, key = attention_of(workload), region(plan, "attention[0].key")
    for pages in plan.pages:
        own = region(plan, f"attention[0].{pages.size.tensor}")
        assert len(pages.next_contexts) > 1
        for number, context in enumerate(pages.next_contexts, start=pages.used):
            grown = replace(shape, tokens=context, capacity=LONG)
            lowering = AttentionLowering(grown, schedules[shape.name], system.pool, 1, system.host, key.first_row)
            program = lowering.key_append() if pages.size.tensor is Tensor.KEY else lowering.value_append()
            written = {issued.row for issued in walk(program) if issued.kind in (Kind.WR, Kind.WRA16)}
            units = range(pages.units_per_channel)
            assert written == {row for unit in units for row in page_rows(own, pages, unit, number)}


def test_pages_come_at_regular_contexts_up_to_the_maximum():
    key, value = whole("llama-3.1-8b")[-1].pages
    assert (key.used, key.reserved, value.used, value.reserved) == (8, 16, 4, 8)
    assert key.next_contexts == range(4097, 8193, 512)
    assert value.next_contexts == range(4097, 8193, 1024)


def test_what_the_host_runs_takes_no_rows_and_is_listed():
    workload, system, schedules, _ = small()
    hosted = {name: replace(schedule, place=Processor.HOST) for name, schedule in schedules.items()}
    plan = plan_of(workload, hosted, system)
    assert {item.operator for item in plan.regions} == {"embedding"}
    assert Held("attention", "cache", Place.HOST, 2 * attention_of(workload).kv_bytes) in plan.held
    assert plan.scenario.largest_context is None
    assert not plan.pages


def test_room_to_grow_changes_no_program_but_the_rows_of_v():
    workload, system, schedules, _ = small()
    shape = attention_of(workload)
    roomy = attention_of(with_room(workload, LONG))
    before, after = (
        AttentionLowering(item, schedules[shape.name], system.pool, 1, system.host) for item in (shape, roomy)
    )
    assert before.score_program() == after.score_program()
    assert command_count(before.context_program().body) == command_count(after.context_program().body)


def test_weights_load_at_the_speed_of_the_link_or_of_the_channels():
    plan = whole("llama-3.1-8b")[-1]
    weights = plan.loadings[0]
    assert weights.size == sum(item.room.size.stored for item in plan.regions if item.room.tensor not in CACHES)
    assert weights.link_ns == pytest.approx(weights.size / 63 + 150)
    rows = sum(item.room.rows for item in plan.regions if item.room.tensor not in CACHES)
    columns = rows * AIM.organisation.columns * AIM.organisation.banks
    # Two cycles a column on the bus; activates, precharges and refresh add less than a third.
    assert 2 * columns < weights.channel_cycles < 2.7 * columns
    assert weights.total_ns == max(weights.link_ns, weights.channel_ns)


def test_loading_a_few_rows_takes_what_the_reference_engine_says():
    program = Program(row_writes(AIM.organisation, 5, 40))
    assert sum(issued.kind is Kind.WR for issued in walk(program)) == 5 * 40 * 16
    engine, events = Engine(AIM), np.zeros(0, dtype=np.int64)
    fast = engine.run(flatten(program), engine.fresh_state(), events)
    assert fast.completed == run_reference(program, AIM, engine.fresh_state(), events).completed


def test_values_one_by_one_are_the_slow_way_into_the_arrays():
    by_name = {item.name: item for item in whole("llama-3.1-8b")[-1].loadings}
    one_by_one = by_name["attention.prefill_value_by_token"]
    gathered = by_name["attention.prefill_value_gathered"]
    assert one_by_one.size == gathered.size
    assert one_by_one.channel_ns > one_by_one.link_ns > gathered.channel_ns


@pytest.mark.parametrize("name", WHOLE)
def test_the_text_of_a_whole_plan_parses_back_to_the_same_plan(name):
    plan = whole(name)[-1]
    assert parse_plan(print_plan(plan)) == plan


def test_the_report_names_waste_growth_and_limits():
    report = [line for line in print_plan(whole("llama-3.1-8b")[-1]).splitlines() if line.startswith("#")]
    text = "\n".join(report)
    for part in (
        "rows     16342 of 16384 of every bank taken, 42 free",
        "padding of lm_head: channels 0 B, slots 2.00 MiB, rows 0 B",
        "growth   131072 B and 0.125 rows of every bank per token",
        "the next at context 4097, then every 512 up to 7681",
        "largest  context 8192, or batch 2",
        "bound by the link",
    ):
        assert part in text


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def test_overlapping_regions_are_refused_by_both_names():
    plan = small()[-1]
    first, second = plan.regions[:2]
    moved = replace(plan, regions=(first, replace(second, first_row=first.end_row - 1), *plan.regions[2:]))
    with pytest.raises(UserError, match=r"qkv_proj\[0\].weight and qkv_proj\[1\].weight.*in both") as caught:
        parse_plan(print_plan(moved), "plan.txt")
    assert caught.value.where.startswith("plan.txt")


def test_a_region_outside_the_banks_is_refused():
    plan = small()[-1]
    last = replace(plan.regions[-1], first_row=plan.system.rows - 1)
    with pytest.raises(UserError, match=r"embedding\[0\].table: expected one or more of the rows 0 to 16383"):
        verify_plan(replace(plan, regions=(*plan.regions[:-1], last)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scenario (1)", "scenario (2)", r"plan.txt:\d+, batch: expected an integer|plan.txt:\d+: expected 6 cells"),
        ("system (1)", "systems (1)", r"plan.txt:\d+: expected `system \(COUNT\)`"),
        ("link_ns", "link_us", r"plan.txt:\d+: expected the columns what bytes link_ns"),
        (" 32x1 ", " 32by1 ", r"plan.txt:\d+, split: expected GROUPSxPARTS, found '32by1'"),
        (" weight ", " weights ", r"plan.txt:\d+, tensor: expected one of weight, key, value, table"),
        (" controller ", " device ", r"plan.txt:\d+, place: expected one of controller, host, found 'device'"),
        ("  32  ", "  3.2  ", r"plan.txt:\d+.*: expected an integer, found '3.2'"),
    ],
)
def test_text_that_breaks_the_grammar_is_refused_with_its_line(old, new, message):
    text = print_plan(small()[-1])
    with pytest.raises(UserError, match=message):
        parse_plan(changed(text, old, new), "plan.txt")


def test_lost_and_added_lines_are_noticed():
    lines = print_plan(small()[-1]).splitlines()
    with pytest.raises(UserError, match="as many lines as regions counts, found the end of the text"):
        parse_plan("\n".join(lines[:-1]))
    with pytest.raises(UserError, match=rf":{len(lines) + 1}: expected no more lines than counted"):
        parse_plan("\n".join([*lines, lines[-1]]))


def test_tokens_verified_together_do_not_change_what_a_page_holds() -> None:
    system = System(load_device("gddr6-aim"), 1)
    one, four = (small_workload(queries=queries) for queries in (1, 4))
    plans = [plan_of(item, hand_mapping(item.schedulables, system), system) for item in (one, four)]
    assert [page.token_bytes for page in plans[0].pages] == [page.token_bytes for page in plans[1].pages]


def test_parts_of_fewer_tokens_than_are_decoded_together_have_the_rooms_of_any_cache():
    pool, organisation = System(AIM, 1).pool, AIM.organisation
    schedule = AttentionSchedule(token_split=16)
    shape = AttentionShape("attention", 1, 4, 2, 64, 20)
    several = replace(shape, queries=3)
    assert attention_rooms(several, schedule, pool, organisation) == attention_rooms(
        shape, schedule, pool, organisation
    )
