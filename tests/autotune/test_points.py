"""The folder of a point: its device loads back, its programs parse, its memory plan is the one evaluated."""

import numpy as np
import pandas as pd

from autotune.finished import written_points
from autotune.points import PLAN_FILE, write_points
from compiler.memory.plan import MemoryPlan
from compiler.memory.text import parse_plan, print_plan
from configs.device import load_device
from simulator.isa import ACTIVATES, walk
from simulator.program_text import parse_program
from tests.autotune.finished_runs import finished_run


def test_devices_load_back_equal(tmp_path):
    run = finished_run(tmp_path)
    for folder, point in zip(write_points(run), written_points(run), strict=True):
        system = run.problem.scenario.system(np.array(run.evaluations[point].codes))
        assert load_device(str(folder / "device.yaml")) == system.device


def test_programs_and_schedules_are_text(tmp_path):
    run = finished_run(tmp_path)
    for folder in write_points(run):
        assert parse_program((folder / "programs.txt").read_text()).body
        listed = (folder / "schedules.txt").read_text().splitlines()
        assert [line.split(":")[0] for line in listed] == list(run.problem.tasks)


def test_memory_plans_add_up_to_the_rows_of_the_evaluation(tmp_path):
    run = finished_run(tmp_path)
    for folder, point in zip(write_points(run), written_points(run), strict=True):
        plan = pd.read_csv(folder / "capacity.csv")
        on_device = plan[plan["memory"] == "device"]
        assert on_device["rows_total"].sum() == dict(run.evaluations[point].details)["rows_used_per_bank"]
        ends = (on_device["first_row"] + on_device["rows_total"]).tolist()
        assert on_device["first_row"].tolist()[1:] == ends[:-1]


def stored_plan(folder) -> MemoryPlan:
    return parse_plan((folder / PLAN_FILE).read_text(), PLAN_FILE)


def test_the_memory_plan_of_a_point_reads_back_and_keeps_room_to_grow(tmp_path):
    run = finished_run(tmp_path)
    for folder, point in zip(write_points(run), written_points(run), strict=True):
        plan, details = stored_plan(folder), dict(run.evaluations[point].details)
        assert print_plan(plan) == (folder / PLAN_FILE).read_text()
        assert plan.scenario.maximum_context >= plan.scenario.context == run.problem.scenario.workload.context
        assert details["rows_used_per_bank"] <= plan.rows_used <= details["rows_available_per_bank"]
        assert plan.system.rows == details["rows_available_per_bank"]


def test_programs_of_a_point_open_rows_of_the_plan_only(tmp_path):
    for folder in write_points(finished_run(tmp_path)):
        largest = {}
        for region in stored_plan(folder).regions:
            own = (region.operator, region.copy)
            largest[own] = largest.get(own, 0) + region.room.rows
        program = parse_program((folder / "programs.txt").read_text())
        assert max(issued.row for issued in walk(program) if issued.kind in ACTIVATES) < max(largest.values())
