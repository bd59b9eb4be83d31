"""The command line as a user meets it: help at once, one clear line for a mistake, exit codes."""

import io
import json
import re
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import pytest

from autotune.cli import main
from tests.tiny_models import raw_config


def _run(*arguments):
    """Run the command in this process, where what it imports is loaded."""
    out, errors = io.StringIO(), io.StringIO()
    command = mock.patch.object(sys, "argv", ["explore", *arguments])
    with redirect_stdout(out), redirect_stderr(errors), command, pytest.raises(SystemExit) as ended:
        main()
    return subprocess.CompletedProcess(arguments, ended.value.code or 0, out.getvalue(), errors.getvalue())


def _run_apart(*arguments):
    command = [sys.executable, "-m", "autotune.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


TINY = "the tiny model"  # where a test's model is imported before the mistake is found
LARGE = "a large model"  # one that no single device holds


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory):
    sizes = {"hidden_size": 128, "intermediate_size": 384, "vocab_size": 600, "max_position_embeddings": 512}
    return _written_model(tmp_path_factory.mktemp("model") / "tiny.json", sizes)


@pytest.fixture(scope="module")
def large_model(tmp_path_factory):
    sizes = {"hidden_size": 8192, "intermediate_size": 1 << 18, "num_attention_heads": 64, "num_key_value_heads": 8}
    return _written_model(tmp_path_factory.mktemp("model") / "large.json", sizes)


def _written_model(path, sizes):
    path.write_text(json.dumps(raw_config("llama", **sizes)), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def small_run(tiny_model, tmp_path_factory):
    """The folder of one small run over every knob, and what was printed; tests read it and leave it as it is."""
    out = tmp_path_factory.mktemp("runs") / "run"
    result = _run(*_small(tiny_model), "--out", str(out), "--json", "--workers", "2")
    assert result.returncode == 0, result.stderr
    return out, json.loads(result.stdout)


def _small(model):
    return ["--model", model, "--context", "300", "--budget", "12", "--quiet"]


def test_help_is_there_within_a_second():
    durations = []
    for _ in range(3):
        start = time.perf_counter()
        assert _run_apart("--help").returncode == 0
        durations.append(time.perf_counter() - start)
    assert min(durations) < 1.0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--model", "lama"], "did you mean"),
        (["--model", "missing.json"], "missing.json"),
        (["--model", "llama", "--hardware", "gddr7"], "gddr6-aim"),
        (["--model", TINY, "--context", "300", "--hardware", "gddr6-aim-compat"], "use gddr6-aim"),
        (["--model", "llama", "--devices", "none"], "--devices"),
        (["--model", TINY, "--context", "300", "--set", "banks=7"], "--set banks=7"),
        (["--model", "llama", "--budget", "0"], "--budget"),
        (["--model", LARGE, "--context", "60", "--budget", "20"], "--devices 2 or --devices auto"),
        (["--model", "llama", "--require", "aera_mm2 <= 6"], "did you mean area_mm2?"),
        (["--model", "llama", "--require", "area_mm2 = 6"], "the operator ="),
        (["--model", "llama", "--max", "area_mm2"], "NAME=VALUE"),
        (["--model", "llama", "--min", "area_mm2=much"], "a number above 0"),
        (["--model", "llama", "--objectives", "latency,costs"], "did you mean cost?"),
        (["--model", "llama", "--objectives", "latency"], "2 to 4"),
        (["--study", "missing.yaml"], "No such file"),
        (["--require", "area_mm2 <= 6"], "--model"),
        (["replay", "missing.trace"], "missing.trace"),
        (["import", "lama"], "did you mean"),
        (["--modell", "llama"], "No such option"),
        (["timeline"], "a run folder or --model"),
        (["timeline", "missing", "--model", "llama"], "found both"),
        (["timeline", "missing"], "no run.yaml"),
        (["sensitivity", "missing"], "no run.yaml"),
        (["sensitivity", ".", "--points", "0"], "--points"),
        (["timeline", "--model", "lama"], "did you mean"),
        (["timeline", "--model", "llama", "--detail", "some"], "none, first, all"),
        (["timeline", "--model", "llama", "--mapping", "best"], "hand, overlapped"),
        (["timeline", "--model", "llama", "--out", "trace.txt"], ".json.gz"),
    ],
)
def test_users_mistake_is_one_clear_line_and_exit_code_two(arguments, expected, tiny_model, large_model):
    models = {TINY: tiny_model, LARGE: large_model}
    result = _run(*(models.get(one, one) for one in arguments))
    assert result.returncode == 2
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
    assert not result.stdout


def test_a_process_of_its_own_ends_with_the_same_exit_code_and_line():
    arguments = ("--model", "lama")
    apart, here = _run_apart(*arguments), _run(*arguments)
    assert (apart.returncode, apart.stdout, apart.stderr) == (here.returncode, here.stdout, here.stderr)
    assert apart.returncode == 2


def test_import_prints_the_published_parameters_of_llama():
    result = _run("import", "llama")
    assert "8,030,261,248" in result.stdout
    assert "15.01 GB" in result.stdout
    assert "0.5 GiB" in result.stdout


def test_small_run_leaves_its_folder_and_says_that_numerics_passed(small_run):
    out, told = small_run
    front = told["pareto"]
    assert front
    assert {point["numerics"] for point in front} == {"passed"}
    left = {path.name for path in out.iterdir()}
    assert {
        "run.yaml", "evaluations.jsonl", "study.journal", "trials.parquet", "trials.csv", "pareto.csv", "report.html",
        "constraints.json", "provenance.json", "figures", "points",
    } <= left  # fmt: skip


def test_timeline_of_a_run_and_of_a_mapping_are_written_and_told(small_run, tiny_model, tmp_path):
    (out, answer), trace, table = small_run, tmp_path / "trace.json", tmp_path / "operators.csv"
    fastest = answer["pareto"][0]
    told = _run("timeline", str(out), "--out", str(trace), "--csv", str(table), "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["latency_ns"] == fastest["latency_ns"]
    assert json.loads(trace.read_text())["traceEvents"]
    assert table.read_text().startswith("operator,task,occurrence,start_cycle")
    arguments = ("--context", "300", "--mapping", "overlapped", "--detail", "none", "--out", f"{trace}.gz")
    told = _run("timeline", "--model", tiny_model, *arguments)
    assert told.returncode == 0, told.stderr
    assert "lm_head" in told.stdout
    missing = _run("timeline", str(out), "99", "--out", str(trace))
    assert missing.returncode == 2
    assert "a point from 0 to 11" in missing.stderr


def test_folder_of_another_run_is_not_overwritten(small_run, tiny_model):
    out, _ = small_run
    again = _run(*_small(tiny_model), "--out", str(out))
    assert again.returncode == 2
    assert "--resume" in again.stderr
    other = _run(*_small(tiny_model), "--context", "301", "--out", str(out), "--resume")
    assert other.returncode == 2
    assert "context" in other.stderr


def test_a_warm_start_from_nothing_leaves_no_run_that_blocks_the_next(tiny_model, tmp_path):
    out = tmp_path / "run"
    result = _run(*_small(tiny_model), "--out", str(out), "--warm-start", str(tmp_path / "missing"))
    assert result.returncode == 2
    assert "missing" in result.stderr
    assert not (out / "run.yaml").exists()


def test_same_seed_gives_the_same_front_byte_for_byte_whatever_the_workers(small_run, tiny_model, tmp_path):
    out, _ = small_run
    result = _run(*_small(tiny_model), "--out", str(tmp_path / "run"), "--workers", "1")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "run" / "pareto.csv").read_bytes() == (out / "pareto.csv").read_bytes()


def test_nothing_feasible_is_told_with_reasons_and_counts(tiny_model):
    result = _run(
        "--model", tiny_model, "--context", "300", "--budget", "4", "--quiet",
        "--set", "*.place=pim", "--set", "*.segment_columns=128", "--set", "row_bytes=1024", "--set", "lanes=64",
        "--set", "column_bytes=128", "--set", "*.context_segment_columns=128",
    )  # fmt: skip
    assert result.returncode == 2
    assert "wider than a row" in result.stderr


def test_a_requirement_that_nothing_meets_is_answered_with_no_and_a_ranking(tiny_model, tmp_path):
    few = ["--context", "300", "--budget", "4", "--quiet", "--set", "hardware=base", "--workers", "1"]
    scenario = ["--model", tiny_model, *few]
    told = _run(*scenario, "--max", "area_mm2=6", "--out", str(tmp_path / "run"), "--json")
    assert told.returncode == 1, told.stderr
    answer = json.loads(told.stdout)
    assert answer["pareto"] == []
    nearest = answer["nearest_to_feasible"]
    assert [item["violation"] for item in nearest] == sorted(item["violation"] for item in nearest)
    assert nearest[0]["misses"][0]["requirement"] == "area_mm2 <= 6"
    assert json.loads((tmp_path / "run" / "constraints.json").read_text())["feasible_points"] == 0
    shown = _run(*scenario, "--require", "area_mm2<=6", "--out", str(tmp_path / "run"), "--resume")
    assert shown.returncode == 1, shown.stderr
    assert "misses area_mm2 <= 6 by" in shown.stdout


def test_a_study_file_means_what_the_options_mean_and_options_go_before_it(tiny_model, tmp_path):
    study, run = tmp_path / "study.yaml", tmp_path / "run"
    lines = [
        f"model: {tiny_model}",
        "context: 300",
        "budget: 5",
        "objectives: [throughput, cost]",
        "require: [channels <= 16]",
        "set: {hardware: base, lanes: 16..32, channels: 8..32}",
    ]
    study.write_text("\n".join(lines), encoding="utf-8")
    told = _run("--study", str(study), "--budget", "4", "--out", str(run), "--workers", "1", "--quiet", "--json")
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    assert answer["evaluations"] == 4
    assert [item["name"] for item in answer["objectives"]] == ["throughput", "cost"]
    assert answer["requirements"][0]["requirement"] == "channels <= 16"
    options = ["--context", "300", "--budget", "4", "--objectives", "throughput,cost", "--max", "channels=16"]
    knobs = ["--set", "hardware=base", "--set", "lanes=16..32", "--set", "channels=8..32"]
    again = _run("--model", tiny_model, *options, *knobs, "--out", str(run), "--quiet", "--resume")
    assert again.returncode == 0, again.stderr
    other = _run("--study", str(study), "--budget", "4", "--min", "channels=8", "--out", str(run), "--resume")
    assert other.returncode == 2
    assert "requirements" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--devices", "99999999999999999999"], "--devices"),
        (["--set", "channels=²..³"], "--set"),
        (["--out", "x" * 300], "--out"),
        (["--out", "/proc/none"], "folder"),
        (["--out", __file__ + "/below"], "folder"),
    ],
)
def test_impossible_numbers_and_paths_are_users_mistakes(tiny_model, arguments, expected):
    result = _run("--model", tiny_model, "--context", "300", "--budget", "4", "--quiet", *arguments)
    assert result.returncode == 2, result.stderr
    assert expected in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("evaluations.jsonl", b"\xff\xfe\n"),
        ("evaluations.jsonl", b'{"codes": ["x"], "latency_ns": 1}\n'),
        ("run.yaml", b"[1]\n"),
        ("run.yaml", b"a: [1\n"),
    ],
)
def test_damaged_run_folder_is_told_in_one_line(tiny_model, tmp_path, name, damage):
    out = tmp_path / "run"
    out.mkdir()
    (out / "run.yaml").write_text("{}\n")
    (out / name).write_bytes(damage)
    result = _run("--model", tiny_model, "--context", "300", "--budget", "4", "--quiet", "--out", str(out), "--resume")
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr


def test_unreadable_journal_is_made_again(tmp_path):
    from autotune.study import StudyView
    from tests.small_workloads import small_problem

    problem = small_problem()
    evaluation = problem.evaluate(problem.baselines()[0])
    (tmp_path / "study.journal").write_text('{"op_code": 0\n')
    StudyView(tmp_path, problem).sync([evaluation])
    assert (tmp_path / "study.journal").read_text().count("\n") > 1


@pytest.mark.parametrize(
    ("timing", "expected"),
    [("nREFI: 1", "nRFC"), ("nRFC: 100000", "nRFC"), ("nRP: -5", "nRP"), ("nCCDMAX: 3", "names nCCDMAC")],
)
def test_impossible_timing_is_told_before_the_search(tiny_model, tmp_path, timing, expected):
    from configs.device import HARDWARE_FOLDER

    name = timing.split(":")[0]
    text = (HARDWARE_FOLDER / "gddr6-aim.yaml").read_text(encoding="utf-8")
    changed = re.sub(rf"\b{name}: \d+", timing, text) if name in text else text.replace("nCCDMAC: 2", timing)
    device = tmp_path / "device.yaml"
    device.write_text(changed, encoding="utf-8")
    result = _run("--model", tiny_model, "--context", "300", "--budget", "4", "--quiet", "--hardware", str(device))
    assert result.returncode == 2, result.stderr
    assert expected in result.stderr
    assert "Traceback" not in result.stderr
