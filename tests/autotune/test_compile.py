"""`explore compile`: does every form parse back to what was compiled, and is a mistake one clear error?"""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from autotune.chosen_design import settings_of_run
from autotune.cli import app
from autotune.compile_dump import TIMINGS_FILE, write_dump
from autotune.compile_forms import Kind, prepared
from autotune.compiled import compiled_mapping, compiled_point, for_aim_traces, known_operators, point_for_aim_traces
from autotune.imported import import_in_stages
from autotune.run_settings import RunSettings, save_settings
from autotune.tables import write_tables
from compiler.graph_text import parse_graph
from compiler.memory.planner import plan_of
from compiler.memory.text import parse_plan
from compiler.passes import PASSES
from compiler.verify import verify
from configs.device import load_device
from configs.errors import UserError
from simulator.access_trace import parse_accesses
from simulator.aim.replay import replay
from simulator.command_table import read_commands
from simulator.isa import KINDS
from simulator.step import PimPhase
from simulator.step_text import parse_step
from simulator.timeline import StepSimulator
from tests.autotune.finished_runs import finished_run
from tests.small_workloads import SIZES
from tests.tiny_models import raw_config

CONTEXT = 700


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "small.json"
    path.write_text(json.dumps(raw_config("llama", **SIZES)), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def settings(model):
    return RunSettings(model=model, context=CONTEXT)


@pytest.fixture(scope="module")
def imported(settings):
    return import_in_stages(settings)


@pytest.fixture(scope="module")
def compiled(settings, imported):
    return compiled_mapping(settings, imported, "overlapped", whole=True)


@pytest.fixture
def compile_to(model, tmp_path):
    """Run the command to a file; return the file and the figures."""

    def run(*arguments, name="out.txt"):
        path = tmp_path / name
        common = ("compile", model, "--context", str(CONTEXT), "--out", str(path), "--json")
        result = CliRunner().invoke(app, [*common, *arguments], catch_exceptions=False)
        assert result.exit_code == 0
        return path, json.loads(result.stdout)

    return run


def test_graph_parses_back_to_the_graph_after_all_passes(compile_to, imported):
    path, figures = compile_to("--emit", "graph")
    assert parse_graph(path.read_text()) == imported.graph
    assert figures["operators"] == len(imported.graph.ops)


def test_graph_of_one_operator_is_a_valid_graph(compile_to):
    path, _ = compile_to("--emit", "graph", "--op", "qkv_proj")
    graph = parse_graph(path.read_text())
    verify(graph)
    assert [len(op.results) for op in graph.ops] == [3]


def test_program_parses_back_to_the_step_with_its_latency(compile_to, compiled):
    path, _ = compile_to("--emit", "program")
    step = parse_step(path.read_text())
    assert step == compiled.step()
    simulator = StepSimulator(compiled.system.device)
    assert simulator.run(step).latency_cycles == simulator.run(compiled.step()).latency_cycles
    assert "# twice" not in path.read_text()
    assert "# 2 times in a decode step\ntask qkv_proj" in path.read_text()


def test_plan_parses_back_to_the_plan(compile_to, compiled, imported):
    path, figures = compile_to("--emit", "plan")
    plan = plan_of(compiled.workload, compiled.schedules, compiled.system, model=imported.config)
    # The name of a model is that of its file.
    assert parse_plan(path.read_text()) == plan
    assert figures["regions"] == len(plan.regions)


class _Issues:
    """Keeps cycle and kind of everything a fresh simulation issues."""

    def __init__(self):
        self.issues = []

    def served(self, job):
        pass

    def finished(self, task_index, ready, end, moved):
        pass

    def executed(self, phase, report, log):
        names = (str(KINDS[code]) for code in log.kind.tolist())
        self.issues += zip(log.cycle.tolist(), names, strict=True)


@pytest.mark.parametrize("operator", ["", "o_proj"])
def test_commands_are_those_of_a_fresh_simulation(compile_to, compiled, operator):
    path, figures = compile_to("--emit", "commands", "--op", operator, name="commands.csv.gz")
    rows = list(read_commands(path))
    fresh = _Issues()
    step = compiled.step_of(operator) if operator else compiled.step()
    report = StepSimulator(compiled.system.device).run(step, observer=fresh)
    assert [(row.cycle, row.cmd) for row in rows] == fresh.issues
    assert figures["commands"] == len(rows) == report.commands_simulated
    assert figures["controller_commands"] == report.own_commands
    assert figures["latency_cycles"] == report.latency_cycles


def test_commands_beyond_the_limit_are_refused_before_anything_is_simulated(imported, compiled):
    with pytest.raises(UserError, match=r"at most 100 commands.*--op"):
        prepared(Kind.COMMANDS, imported, compiled, "", 100)


def test_a_table_of_commands_is_a_stream_that_replays(compile_to, compiled, tmp_path):
    path, _ = compile_to("--emit", "commands", "--op", "o_proj", name="commands.csv")
    again = tmp_path / "again.csv"
    arguments = ["replay", str(path), "--hardware", "gddr6-aim", "--commands", str(again)]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code == 0
    with path.open() as first, again.open() as second:
        pairs = list(zip(csv.DictReader(first), csv.DictReader(second), strict=True))
    assert all(a["cmd"] == b["cmd"] for a, b in pairs)
    # Without waiting for the link, and from cycle 1 on, nothing is later.
    assert all(int(b["cycle"]) <= int(a["cycle"]) + 1 for a, b in pairs)


def test_ordinary_accesses_parse_back_and_the_rest_is_counted(compile_to, compiled):
    path, figures = compile_to("--emit", "ramulator", "--op", "kv_append")
    accesses = parse_accesses(path.read_text(), compiled.system.device.organisation)
    assert {access.operation for access in accesses} == {"ST"}
    assert figures["accesses"] == len(accesses)
    programs = [phase.program for phase in compiled.step_of("kv_append").tasks[0].phases]
    assert len(programs) == 1
    assert figures["left_out"] == {"ACT": 1, "PRE": 1}


def test_an_operator_of_the_units_alone_has_no_ordinary_access(imported, compiled):
    with pytest.raises(UserError, match="MAC16"):
        prepared(Kind.RAMULATOR, imported, compiled, "o_proj", 1)


@pytest.mark.parametrize("operator", ["", "o_proj"])
def test_an_aim_trace_replays_with_the_cycles_that_were_told(compile_to, operator):
    path, figures = compile_to("--emit", "aim", "--op", operator, name="out.trace")
    result = replay(path, load_device("gddr6-aim-compat"))
    assert (result.cycles, result.ignored_lines) == (figures["aim_cycles"], 0)
    assert figures["engine_cycles"] == pytest.approx(result.cycles, rel=0.1)


def test_aim_traces_say_only_values_of_16_bit(settings):
    narrow = replace(settings, weights="int8", hardware="gddr6-aim-compat")
    with pytest.raises(UserError, match=r"expected int8.*found bf16"):
        for_aim_traces(narrow, import_in_stages(narrow), "hand", whole=True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--emit", "verilog"], "aim, commands, ramulator, program, graph, plan"),
        (["--emit", "program", "--mapping", "best"], "hand, overlapped"),
        (["--emit", "program", "--json"], "--out FILE"),
        (["--emit", "program", "--point", "3"], "--run"),
        (["--emit", "program", "--op", "q_proj"], "qkv_proj"),
        (["--emit", "graph", "--op", "q_proj"], "qkv_proj"),
        (["--emit", "plan", "--op", "qkv_proj"], "leave --op out"),
        (["--emit", "aim", "--op", "rms_norm"], "host alone"),
        (["--emit", "aim", "--hardware", "gddr6-aim"], "-compat"),
        (["--emit", "program", "--hardware", "gddr6-aim-compat"], "host, link"),
        (["--emit", "program", "--out", "missing/file"], "no folder missing"),
        (["--emit", "program", "--run", "runs/x"], "found both"),
    ],
)
def test_a_mistake_is_one_clear_error(model, arguments, expected):
    result = CliRunner().invoke(app, ["compile", model, "--context", str(CONTEXT), *arguments])
    assert isinstance(result.exception, UserError)
    assert expected in str(result.exception)
    assert not result.stdout


def test_a_design_that_does_not_fit_is_refused_whole_but_not_operator_by_operator(settings, imported):
    device = load_device("gddr6-aim")
    few = device.organisation.model_copy(update={"rows": 4})
    small = device.model_copy(update={"organisation": few})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autotune.compiled.load_device", lambda name: small)
        with pytest.raises(UserError, match="--devices"):
            compiled_mapping(settings, imported, "overlapped", whole=True)
        assert compiled_mapping(settings, imported, "overlapped", whole=False).step_of("o_proj").sequence == (0,)


def test_dump_has_a_file_for_every_pass_in_order_and_times(imported, compiled, tmp_path):
    files = write_dump(tmp_path / "dump", imported, compiled, "")
    names = [path.name for path in files]
    passes = [rewrite.__name__ for rewrite in PASSES]
    assert names[: 1 + len(passes)] == [
        f"{number:03}_{name}.graph" for number, name in enumerate(["captured", *passes])
    ]
    assert [name[4:] for name in names[1 + len(passes) : -1]] == [
        "tasks.txt",
        "schedules.txt",
        "programs.txt",
        "plan.txt",
    ]
    graphs = [parse_graph(path.read_text()) for path in files[: 1 + len(passes)]]
    assert graphs == [graph for _, graph in imported.graphs]
    assert parse_step(files[-3].read_text()) == compiled.step()
    times = (tmp_path / "dump" / TIMINGS_FILE).read_text().splitlines()
    merging = next(line.split() for line in times if line.startswith("merge_shared_input_linears"))
    assert merging[2:] == [str(len(graphs[-2].ops)), str(len(graphs[-1].ops))]
    assert [line.split()[0] for line in times[-3:]] == ["lowering", "memory", "simulation"]
    with pytest.raises(UserError, match="holds files"):
        write_dump(tmp_path / "dump", imported, compiled, "")


def test_schedules_device_and_pacing_come_from_a_point_of_a_run(settings, imported, tmp_path):
    run = finished_run(tmp_path)
    write_tables(run)
    save_settings(tmp_path, settings, {})
    assert settings_of_run(tmp_path) == settings
    for point in (0, len(run.evaluations) - 1):
        compiled = compiled_point(settings, imported, tmp_path, point)
        codes = np.array(run.evaluations[point].codes)
        assert compiled.schedules == run.problem.space.schedules(codes)
        assert compiled.system.device == run.problem.scenario.system(codes).device
    plain = replace(compiled, system=replace(compiled.system, device=load_device("gddr6-aim")))
    traced = point_for_aim_traces(plain)
    assert traced.system.device.name == "gddr6-aim-compat"
    assert not any(schedule.preactivate for schedule in traced.schedules.values())
    channels = plain.system.device.organisation.model_copy(update={"channels": 8})
    fewer = plain.system.device.model_copy(update={"organisation": channels})
    with pytest.raises(UserError, match="another point"):
        point_for_aim_traces(replace(plain, system=replace(plain.system, device=fewer)))


def test_every_operator_of_a_model_has_a_program_or_is_the_hosts(compiled):
    for operator in known_operators(compiled.workload):
        step = compiled.step_of(operator)
        assert step.sequence == (0,)
        assert step.tasks[0].task == operator
        assert all(phase.program.body for phase in step.tasks[0].phases if isinstance(phase, PimPhase))
